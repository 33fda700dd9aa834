"""One table in all encodings, with separators and decimal commas: alike for a peer and a table."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oneway.datasets import load
from oneway.peer.samples import has_place
from oneway.tables.encodings import split_lines
from oneway.tables.format import with_point
from oneway.tables.rows import Row, RowReader
from oneway.task.task_from_file import derive_task

TEXT = "größe;stadt;y\n1,5;Köln;ja\n2,25;Zürich;nein\n-1.234,5;Köln;ja\n4;Zürich;nein\n"
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-be-bom", "cp1252"]


def encoded(text: str, encoding: str) -> bytes:
    if encoding.endswith("-bom"):
        plain = encoding.removesuffix("-bom")
        return "\ufeff".encode(plain) + text.encode(plain)
    return text.encode(encoding)


def rows_of(data: bytes, *cuts: int) -> list[Row]:
    reader = RowReader("the data")
    ends = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = [data[start:end] for start, end in itertools.pairwise(ends)]
    found = [row for piece in pieces for row in reader.feed(piece)] + list(reader.finish())
    assert all(isinstance(row, Row) for row in found), found
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("separator", [";", "\t"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_table_is_the_same_in_every_encoding(tmp_path, encoding, separator, quote):
    text = TEXT.replace(";", separator).replace("Zürich", f"Zürich {quote}Nord{quote}")
    path = tmp_path / "x.csv"
    path.write_bytes(encoded(text, encoding))
    table = load(path, label="y")
    values = ("Köln", f"Zürich {quote}Nord{quote}")
    assert table.feature_names[0] == "größe"
    assert table.encoding[1].values == values
    assert table.means[0] == np.mean([1.5, 2.25, -1234.5, 4.0])
    rows = rows_of(path.read_bytes())
    vectors = np.array([table.encoder.vector(row.values) for row in rows])
    np.testing.assert_array_equal(vectors.astype(np.float32), table.features)
    assert [row.line for row in rows] == [2, 3, 4, 5]
    task = derive_task(path, "y").task
    assert (task.encoder.names, task.features[1].values) == (("größe", "stadt"), values)


lines = st.lists(
    st.tuples(st.text("aöß€ĊÐ ", max_size=3), st.sampled_from(["1", "2,5", '"x\ny"', "Ċ"])),
    min_size=1,
    max_size=6,
)


@given(lines=lines, cuts=st.lists(st.integers(0, 500), max_size=6))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le-bom", "utf-16-be-bom"])
def test_rows_and_places_do_not_depend_on_encoding_or_pieces(encoding, lines, cuts):
    """Ċ has the byte of a line end in UTF-16, and is none."""
    text = "a;b;c\n" + "".join(f"{a};{b};1\n" for a, b in lines)
    data = encoded(text, encoding)
    rows, plain = rows_of(data, *cuts), rows_of(text.encode())
    assert [(row.values, row.line) for row in rows] == [(row.values, row.line) for row in plain]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.csv"
        path.write_bytes(data)
        for row in rows:
            assert has_place(str(path), row.position), "a restarted peer finds its place"
            assert data[: row.position.offset].decode(encoding.removesuffix("-bom"))
        assert rows[-1].position.offset == len(data)


def test_a_line_that_is_not_utf_8_is_windows_1252_and_its_neighbours_are_not():
    data = b"a;b\n" + "ö;1\n".encode() + "ö€;2\n".encode("cp1252")
    assert [row.values["a"] for row in rows_of(data)] == ["ö", "ö€"]


def test_only_a_number_with_a_decimal_comma_changes(tmp_path):
    changed = {"1,5": "1.5", " -3,25e2 ": " -3.25e2 ", "1.234.567,8": "1234567.8"}
    kept = ("1,2,3", "1.5", "12.34,5", "a,5", ",5")
    for cell, text in (changed | dict(zip(kept, kept, strict=True))).items():
        assert with_point(cell) == text
    path = tmp_path / "x.csv"
    path.write_text('a,b,y\n"1,5",1,0\n"2,5",2,1\n"1,5",2,1\n"2,5",2,0\n')
    assert load(path, label="y").encoding[0].values == ("1,5", "2,5"), "commas between cells"
    assert rows_of(path.read_bytes())[0].values["a"] == "1,5"


def test_half_a_letter_is_no_line_end():
    text = "Ċ\nĀ\n"  # U+010A: bytes 0a 01, and U+0100 after a line end: 0a 00 00 01
    for encoding in ("utf-16-le", "utf-16-be"):
        lines = split_lines(text.encode(encoding), encoding)
        assert [line.decode(encoding) for line in lines] == ["Ċ\n", "Ā\n"]
