"""Functions of one's own: the same numbers for table and row; sites notice another version."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.errors import ConfigError, DataError, TaskError
from oneway.tables import Feature, Table
from oneway.tables.functions import find_function, probed
from oneway.tables.inference import parse_functions
from oneway.task.merging import merge_tasks
from oneway.task.task import Task

CODE = """
import random
import numpy as np

calls = []

def letters(text):
    return np.bincount([ord(letter) % 5 for letter in text], minlength=5)

def grid(text):
    return [[len(text), 1.5], [0, -1]]

def long(text):
    return [1.0] * len(text)

def chance(text):
    return [random.random()]

def gap(text):
    return [float("nan"), 1.0]

def words(text):
    return text

def strict(text):
    return [float(text), 1.0]

def number(text):
    return len(text)

nothing = 5
"""


@pytest.fixture(autouse=True)
def site(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "my_words.py").write_text(CODE)
    (folder / "my_broken.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(str(folder))
    find_function.cache_clear()
    probed.cache_clear()
    return folder


@pytest.fixture
def letters() -> Feature:
    return Feature("text", function="my_words:letters")


# Not what stands for an empty cell, nor spaces around it, which both leave out.
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20)


@given(st.lists(texts, min_size=4, max_size=8))
def test_a_whole_table_and_a_single_row_give_the_same_numbers(cells):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(
                [("text", "n", "y"), *((cell, n, n % 2) for n, cell in enumerate(cells))]
            )
        table = load(path, label="y", function={"text": "my_words:letters"}, numeric=["n"])
        with path.open(encoding="utf-8", newline="") as file:
            for row, sample in enumerate(csv.DictReader(file)):
                vector = table.encoder.vector(sample).astype(np.float32)
                np.testing.assert_array_equal(vector, table.features[row])


def test_shape_and_hash_are_told_from_what_the_function_gives(letters):
    assert (letters.kind, letters.shape, letters.width) == ("transform", (5,), 5)
    assert len(letters.hash) == 16
    assert Feature("text", function="my_words:letters", shape=5).hash == "", "nobody asked for it"
    assert Feature("text", function="my_words:grid").shape == (2, 2)
    assert Feature("text", function="my_words:number").shape == (1,)
    assert Feature("text", 1.0, 2.0, function="my_words:number").encode(" abc ").tolist() == [1.0]
    assert Feature("text", function="my_words:letters", gaps=True).encode("") == (0.0,) * 5 + (1.0,)
    assert list(Feature("text", function="my_words:grid").outputs)[1] == "text[0, 1]"


def test_a_task_names_the_function_and_its_version(letters):
    task = Task("ridge", "y", (letters,))
    assert Task.parse(task.to_toml()) == task
    text = task.to_toml()
    assert 'function = "my_words:letters"' in text
    with pytest.raises(TaskError, match=f"my_words:letters has the hash {letters.hash} here"):
        Task.parse(text.replace(letters.hash, "0" * 16))


def test_a_site_with_another_version_notices(letters, site, monkeypatch):
    text = Task("ridge", "y", (letters,)).to_toml()
    module = __import__("my_words")
    monkeypatch.setattr(module, "letters", lambda _: np.ones(5))
    find_function.cache_clear()
    probed.cache_clear()
    with pytest.raises(TaskError, match="my_words:letters has the hash"):
        Task.parse(text)
    # Last digits differ from machine to machine.
    monkeypatch.undo()
    monkeypatch.syspath_prepend(str(site))
    was = module.letters
    monkeypatch.setattr(module, "letters", lambda text: was(text) * (1 + 1e-9))
    find_function.cache_clear()
    probed.cache_clear()
    assert Task.parse(text).features == (letters,)


@pytest.mark.parametrize(
    ("function", "culprit"),
    [
        ("nowhere.at_all:f", "No module named 'nowhere'"),
        ("my_broken:f", "not today"),
        ("my_words:none", "has no none"),
        ("my_words:nothing", "must be a function"),
        ("my_words", "package.module:function"),
        ("my_words:letters()", "package.module:function"),
        ("../my_words:letters", "package.module:function"),
        ("os:remove", "Python's own library"),
        ("builtins:eval", "Python's own library"),
        ("my_words:long", "6 and 24"),
        ("my_words:chance", "chance"),
        ("my_words:words", "numbers"),
        ("my_words:strict", "raises ValueError"),
        ("my_words:gap", "finite"),
    ],
)
def test_a_function_that_breaks_a_rule_is_named_in_one_sentence(function, culprit):
    with pytest.raises(TaskError, match="feature 'text'") as refused:
        Feature("text", function=function)
    assert culprit in str(refused.value)
    assert "\n" not in str(refused.value)


def test_other_kinds_have_no_function():
    for told in ({"kind": "time"}, {"values": ("a", "b")}):
        with pytest.raises(TaskError, match="'text'"):
            Feature("text", function="my_words:letters", **told)
    with pytest.raises(TaskError, match="'text'"):
        Feature("text", kind="transform", shape=(2,))


@pytest.mark.parametrize(
    ("function", "shape", "cell"),
    [
        ("my_words:long", (3,), "abcd"),
        ("my_words:gap", (2,), "a"),
        ("my_words:strict", (2,), "no number"),
        ("my_words:strict", (2,), "1e60"),
        ("my_words:words", (2,), "ab"),
    ],
)
def test_a_sample_of_which_it_makes_nothing_is_refused_and_not_the_task(function, shape, cell):
    feature = Feature("text", function=function, shape=shape)
    with pytest.raises(DataError, match="feature 'text'"):
        feature.encode(cell)


def test_a_table_says_where_the_cell_is_and_what_the_column_became(letters):
    frame = pl.DataFrame({"text": ["12", "x", "7"] * 4, "y": [0, 1, 0] * 4})
    said = {"function": {"text": "my_words:letters"}}
    table = Table.from_frame(frame, label="y", **said)
    assert table.encoder.features == (letters,)
    assert table.notes[1].used == "transform to 5 by my_words:letters"
    assert "my_words:letters" in table._repr_html_()
    path = "nowhere:f"
    with pytest.raises(DataError, match=r"'text'.*nowhere"):
        Table.from_frame(frame, label="y", function={"text": path})
    with pytest.raises(DataError, match="'text'"):
        Table.from_frame(frame, label="y", category=["text"], **said)


def test_rows_written_as_text_are_read_back_as_the_same_numbers(tmp_path):
    frame = pl.DataFrame({"text": ["some", "words", "", "more"] * 3, "y": [0, 1, 0, 1] * 3})
    table = Table.from_frame(frame, label="y", function={"text": "my_words:letters"})
    table.write_csv(tmp_path / "a.csv", np.arange(12))
    again = load(tmp_path / "a.csv", encoder=table.encoder)
    np.testing.assert_array_equal(again.features, table.features)
    np.testing.assert_array_equal(table.recoded(table.encoder).features, table.features)


def test_sites_merge_only_the_same_version(letters):
    one = Task("ridge", "y", (letters,), rows=10)
    assert merge_tasks({"a": one, "b": one}).task.features == (letters,)
    other = Task("ridge", "y", (Feature("text", function="my_words:letters", shape=5),), rows=10)
    with pytest.raises(TaskError, match="'text' of b"):
        merge_tasks({"a": one, "b": other})
    arrays = [
        Task("ridge", "y", (Feature("x", center, 1.0, shape=(2,)),), rows=rows)
        for center, rows in ((0.0, 30), (4.0, 10))
    ]
    [pooled] = merge_tasks({"a": arrays[0], "b": arrays[1]}).task.features
    assert (pooled.shape, pooled.center) == ((2,), 1.0)


def test_flags_name_a_column_and_its_function():
    assert parse_functions(["a=b=pack.mod:f", " c = m:g"]) == {"a=b": "pack.mod:f", "c": "m:g"}
    for text in ("pack.mod:f", "=m:f", "a="):
        with pytest.raises(ConfigError, match="function is"):
            parse_functions([text])
