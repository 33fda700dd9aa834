"""Bad input gets one sentence on stderr, exit code 2, no traceback, and leaves nothing behind."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from plain import PLAIN_FLAGS

from oneway.errors import (
    ConfigError,
    DataError,
    DivergenceError,
    GraphError,
    MissingDataError,
    OnewayError,
    StoreError,
)

HEADER = "x,y,late"
ROWS = [f"{row},{row % 7},{'yes' if row % 3 else 'no'}" for row in range(40)]
MINE = ("simulate", "--data", "mine.csv", "--label", "late")
MADE = ("simulate", "--data", "synthetic", "--rounds", 200)
TASK = ("peer", "task", "mine.csv", "--label", "late", "--out", "t.toml")
TUNE = ("tune", "--data", "synthetic", "--rounds", 20)
AUDIT = ("audit", "privacy", "--data", "synthetic")
LAB = ("lab", "--data", "synthetic", "--nodes", 3, "--out", "made")


def with_cell(row: int, text: str) -> str:
    return "\n".join([HEADER, *ROWS[:row], text, *ROWS[row + 1 :]])


@pytest.fixture(autouse=True)
def files(here: Path) -> None:
    """Inputs, good and bad, in the working directory."""
    packed = gzip.compress("\n".join([HEADER, *ROWS * 500]).encode())
    edges = gzip.compress(b"".join(b"%d %d\n" % (i, i * 7919 % 10007) for i in range(1, 10007)))
    for name, content in {
        "mine.csv": "\n".join([HEADER, *ROWS]),
        "infinite.csv": with_cell(12, "-inf,5,yes"),
        "three.csv": with_cell(7, "7,0,perhaps"),
        "few.csv": "\n".join([HEADER, *ROWS[:3] * 20]),
        "cut.csv.gz": packed[: len(packed) // 2],
        "cut.txt.gz": edges[: len(edges) // 2],
        "ring.csv": "0,1\n1,2\n2,0\n",
        "negative.csv": "sender,receiver,weight\nann,bob,1\nbob,cem,-2\ncem,ann,1\n",
        "malformed.toml": "nodes = = 3\n",
        "privacy.toml": "[privacy]\nepsilon = 0\n",
        "unknown.toml": "lerning_rate = 3\n",
        "type.toml": 'nodes = "three"\n',
        "nested.toml": "[graph]\nnodes = 3\n",
        "range.toml": "rounds = 0\n",
        "choice.toml": 'engine = "fats"\n',
        "dense.toml": "density = 2\n",
        "latin.toml": b'data = "\xe9"\n',
    }.items():
        (here / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (here / "folder").mkdir()
    (here / "folder" / "mine.txt").touch()


BAD_INPUT: dict[str, tuple[tuple[object, ...], type[OnewayError], tuple[str, ...]]] = {
    "an infinite feature": (
        ("simulate", "--data", "infinite.csv", "--label", "late", "--nodes", 3),
        DataError,
        ("line 14", "'x'", "-inf"),
    ),
    "a label with three values": (
        ("simulate", "--data", "three.csv", "--label", "late", "--model", "logistic"),
        DataError,
        ("'late'", "'no', 'perhaps', 'yes'", "--model softmax"),
    ),
    "no label": (
        ("simulate", "--data", "mine.csv"),
        DataError,
        ("mine.csv", "x, y, late", "--label COLUMN"),
    ),
    "a label that is no column": (
        ("simulate", "--data", "mine.csv", "--label", "lat"),
        DataError,
        ("'lat'", "'late'"),
    ),
    "a label for data that has one": (
        ("simulate", "--data", "flights", "--label", "late"),
        ConfigError,
        ("'late'", "flights"),
    ),
    "an owner that is no column": ((*MINE, "--owner", "z"), DataError, ("'z'", "x, y")),
    "owners and a number of nodes": (
        (*MINE, "--owner", "x", "--nodes", 3),
        ConfigError,
        ("'x'", "nodes = 3"),
    ),
    "owners and clusters": (
        (*MINE, "--owner", "x", "--adversarial", 0.5),
        ConfigError,
        ("'x'", "adversarial = 0.5"),
    ),
    "owners and too small a graph": (
        (*MINE, "--owner", "y", "--graph", "ring.csv", "--numeric", "x"),
        GraphError,
        ("3 nodes", "'y'", "7 owners"),
    ),
    "a negative weight": (
        (*MINE, "--graph", "negative.csv"),
        GraphError,
        ("bob -> cem", "-2"),
    ),
    "a negative weight to look at": (("graph", "negative.csv"), GraphError, ("bob -> cem", "-2")),
    "more nodes than samples": (
        (*MINE, "--nodes", 41),
        DataError,
        ("41 nodes", "40 samples", "--resample NUM_SAMPLES"),
    ),
    "more nodes than clusters": (
        ("simulate", "--data", "few.csv", "--label", "late", "--nodes", 5, "--adversarial", 1),
        DataError,
        ("5 nodes", "3 distinct"),
    ),
    "other nodes than the graph has": (
        (*MINE, "--nodes", 5, "--graph", "ring.csv"),
        GraphError,
        ("ring.csv", "3 nodes", "nodes is 5"),
    ),
    "missing data": (
        ("simulate", "--data", "occupancy"),
        MissingDataError,
        ("data/occupancy/datatest.txt", "oneway data fetch occupancy", "ONEWAY_DATA"),
    ),
    "a missing network": (
        (*MADE, "--graph", "advogato"),
        MissingDataError,
        ("data/trust/out.advogato", "oneway data fetch advogato"),
    ),
    "a missing network to look at": (
        ("graph", "epinions"),
        MissingDataError,
        ("oneway data fetch epinions",),
    ),
    "a missing file": (
        ("simulate", "--data", "no.csv", "--label", "late"),
        MissingDataError,
        ("no.csv",),
    ),
    "a missing edge list": (("graph", "no.csv"), MissingDataError, ("no.csv",)),
    "an unknown data set": (
        ("simulate", "--data", "susie"),
        DataError,
        ("'susie'", "'susy'"),
    ),
    "an unknown graph": ((*MADE, "--graph", "rng"), ConfigError, ("'rng'", "'ring'")),
    "a truncated table": (
        ("simulate", "--data", "cut.csv.gz", "--label", "late"),
        DataError,
        ("cut.csv.gz", "download it again"),
    ),
    "a truncated edge list": ((*MADE, "--graph", "cut.txt.gz"), DataError, ("cut.txt.gz",)),
    "words where a number is to be predicted": (
        (*MINE, "--model", "ridge"),
        DataError,
        ("'late'", "not numeric"),
    ),
    "a diverging run": (
        (
            *MADE,
            "--model",
            "ridge",
            "--learning-rate",
            50,
            "--step",
            "paper",
            "--engine",
            "reference",
            "--no-personal",
            "--out",
            "new",
            *PLAIN_FLAGS,
        ),
        DivergenceError,
        ("round ", "node ", "smallest mass", "than 50"),
    ),
    "an epsilon of zero": ((*MADE, "--epsilon", 0), ConfigError, ("epsilon is 0", "0.001 to 1000")),
    "a negative epsilon": (
        (*MADE, "--epsilon", -1),
        ConfigError,
        ("epsilon is -1", "0.001 to 1000"),
    ),
    "a delta of zero": ((*MADE, "--delta", 0), ConfigError, ("delta is 0", "1e-12 to 0.01")),
    "a delta of one": ((*MADE, "--delta", 1), ConfigError, ("delta is 1", "1e-12 to 0.01")),
    "a delta above one in the number of samples": (
        (*MADE, "--delta", 0.01),
        ConfigError,
        ("delta is 0.01", "200 samples", "1/200", "0.001"),
    ),
    "a clip of zero": ((*MADE, "--clip", 0), ConfigError, ("clip is 0",)),
    "a clip that is another word": ((*MADE, "--clip", "much"), ConfigError, ("'much'", "auto")),
    "a group without a column": ((*MADE, "--unit", "group"), ConfigError, ("group is empty",)),
    "a group column that is missing": (
        (*MINE, "--nodes", 3, "--unit", "group", "--group", "patient"),
        DataError,
        ("'patient'",),
    ),
    "a group column without groups": (
        (*MADE, "--group", "patient"),
        ConfigError,
        ("'patient'", 'unit = "group"'),
    ),
    "no privacy with an epsilon": (
        (*MADE, "--privacy", "none", "--epsilon", 1),
        ConfigError,
        ('privacy is "none"', "epsilon is 1"),
    ),
    "another word for none": ((*MADE, "--privacy", "off"), ConfigError, ("'off'", '"none"')),
    "a push of no samples": (
        (*MADE, "--samples-per-push", 0),
        ConfigError,
        ("samples_per_push is 0", "1 to 1e+06"),
    ),
    "privacy in a file": (
        ("simulate", "--config", "privacy.toml"),
        ConfigError,
        ("epsilon in [privacy] of privacy.toml is 0", "0.001 to 1000"),
    ),
    "malformed TOML": (
        ("simulate", "--config", "malformed.toml"),
        ConfigError,
        ("malformed.toml", "line 1"),
    ),
    "TOML that is not UTF-8": (
        ("simulate", "--config", "latin.toml"),
        ConfigError,
        ("latin.toml",),
    ),
    "an unknown TOML key": (
        ("simulate", "--config", "unknown.toml"),
        ConfigError,
        ("unknown.toml", "'lerning_rate'", "'learning_rate'"),
    ),
    "a TOML value of a wrong type": (
        ("simulate", "--config", "type.toml"),
        ConfigError,
        ("type.toml", "nodes", "'three'"),
    ),
    "a TOML table": (
        ("simulate", "--config", "nested.toml"),
        ConfigError,
        ("nested.toml", "graph"),
    ),
    "a TOML value out of range": (
        ("simulate", "--config", "range.toml"),
        ConfigError,
        ("range.toml", "rounds", "0"),
    ),
    "a TOML choice there is not": (
        ("simulate", "--config", "choice.toml"),
        ConfigError,
        ("choice.toml", "engine", "'fats'", "fast"),
    ),
    "a missing TOML file": (("simulate", "--config", "no.toml"), ConfigError, ("no.toml",)),
    "a folder as TOML": (("simulate", "--config", "folder"), ConfigError, ("folder",)),
    "an unknown engine": ((*MADE, "--engine", "warp"), ConfigError, ("engine", "'warp'")),
    "an unknown method": ((*MADE, "--method", "opt"), ConfigError, ("'opt'", "'ops'")),
    "an unknown model": ((*MADE, "--model", "tree"), ConfigError, ("model", "'tree'", "hinge")),
    "a model for classes": ((*MADE, "--model", "softmax"), OnewayError, ("classes", "file")),
    "no nodes": ((*MADE, "--nodes", 0), ConfigError, ("nodes is 0",)),
    "a negative seed": ((*MADE, "--seed", -1), ConfigError, ("seed is -1",)),
    "a negative rate": ((*MADE, "--learning-rate", -1), ConfigError, ("-1.0",)),
    "a rate that is none": ((*MADE, "--learning-rate", "nan"), ConfigError, ("is nan",)),
    "a share above 1": ((*MADE, "--adversarial", 2), DataError, ("adversarial", "2.0")),
    "a density above 1": (
        (*MADE, "--graph", "erdos-renyi", "--config", "dense.toml"),
        GraphError,
        ("density", "2.0"),
    ),
    "a lab that loses more than everything": (
        (*LAB, "--loss", 1.5),
        ConfigError,
        ("--loss is 1.5",),
    ),
    "a lab with a negative rate": ((*LAB, "--rate", -1), ConfigError, ("--rate is -1",)),
    "a lab without samples": ((*LAB, "--samples", 0), ConfigError, ("--samples is 0",)),
    "a lab without peers": ((*LAB, "--nodes", 0), ConfigError, ("nodes is 0",)),
    "a time that is none": ((*LAB, "--kill-every", "often"), ConfigError, ("'often'",)),
    "a graph there is not": ((*LAB, "--graph", "rnig"), ConfigError, ("'rnig'", "'ring'")),
    "the flag of a page without one": ((*LAB, "--listen", 0), ConfigError, ("--dashboard",)),
    "a run saved over a file": ((*MADE, "--out", "mine.csv"), StoreError, ("mine.csv",)),
    "a run saved below a file": ((*MADE, "--out", "mine.csv/run"), StoreError, ("mine.csv",)),
    "a run saved over a folder": ((*MADE, "--out", "folder"), ConfigError, ("folder",)),
    "an unknown data set to describe": (("data", "info", "susie"), ConfigError, ("'susy'",)),
    "an unknown data set to fetch": (("data", "fetch", "susie"), ConfigError, ("'susy'",)),
    "a task of a missing file": (
        ("peer", "task", "no.csv", "--label", "late"),
        MissingDataError,
        ("no.csv",),
    ),
    "a task in no folder": ((*TASK[:-1], "no/t.toml"), ConfigError, ("no/t.toml",)),
    "a range without ends": ((*TASK, "--range", "x"), ConfigError, ("'x'", "COLUMN=LOW..HIGH")),
    "a range upside down": ((*TASK, "--range", "x=5..1"), ConfigError, ("'x'", "5", "1")),
    "a range of no column": ((*TASK, "--range", "z=0..1"), ConfigError, ("'z'",)),
    "a task whose delta is too large": ((*TASK, "--delta", 0.9), ConfigError, ("delta is 0.9",)),
    "a rate to tune that is none": ((*TUNE, "--rates", "fast"), ConfigError, ("'fast'",)),
    "no rate to tune": ((*TUNE, "--rates", ","), ConfigError, ("','",)),
    "a method to tune there is not": ((*TUNE, "--methods", "sned"), ConfigError, ("'sned'",)),
    "an epsilon to audit of zero": ((*AUDIT, "--epsilon", 0), ConfigError, ("epsilon",)),
    "a lab without time between kills": ((*LAB, "--kill-every", "0s"), ConfigError, ("'0s'",)),
    "a page at an impossible port": (("runs", ".", "--listen", 70000), ConfigError, ("70000",)),
}


@pytest.mark.parametrize(("arguments", "kind", "culprits"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_named_in_one_sentence(oneway, tmp_path, arguments, kind, culprits):
    before = everything_in(tmp_path)
    result = oneway(*arguments)
    result.check_refused(kind, *culprits)
    assert result.out == ""
    assert result.err.count("Error: ") == 1
    assert result.err.endswith("\n")
    assert everything_in(tmp_path) == before


def test_a_python_caller_is_not_told_about_flags(oneway):
    """The same error has its remedy for Python in its text, and as a flag on stderr."""
    result = oneway(*MINE, "--nodes", 41)
    assert "resample=" in str(result.error)
    assert "--" not in str(result.error)
    assert "()" not in result.err


@pytest.mark.parametrize(
    "arguments",
    [("simulate", "--nodes", "three"), ("simulate", "--nodez", 3), ("nothing",), ("graph",)],
    ids=str,
)
def test_a_wrong_flag_points_to_the_help(oneway, arguments):
    result = oneway(*arguments)
    assert (result.code, result.out) == (2, "")
    assert "-h' for help" in result.err
    assert "Traceback" not in result.err


def everything_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
    }
