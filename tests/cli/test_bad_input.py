"""Bad input gets one sentence on stderr, exit code 2, no traceback, and leaves nothing behind."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

HEADER = "x,y,late"
ROWS = [f"{row},{row % 7},{'yes' if row % 3 else 'no'}" for row in range(40)]
MINE = ("simulate", "--data", "mine.csv", "--label", "late")
MADE = ("simulate", "--data", "synthetic", "--rounds", 200)


def with_cell(row: int, text: str) -> str:
    return "\n".join([HEADER, *ROWS[:row], text, *ROWS[row + 1 :]])


@pytest.fixture(autouse=True)
def files(here: Path) -> None:
    """Inputs, good and bad, in the working directory."""
    packed = gzip.compress("\n".join([HEADER, *ROWS * 500]).encode())
    edges = gzip.compress(b"".join(b"%d %d\n" % (i, i * 7919 % 10007) for i in range(1, 10007)))
    for name, content in {
        "mine.csv": "\n".join([HEADER, *ROWS]),
        "nan.csv": with_cell(7, "7,nan,yes"),
        "infinite.csv": with_cell(12, "-inf,5,yes"),
        "three.csv": with_cell(7, "7,0,perhaps"),
        "few.csv": "\n".join([HEADER, *ROWS[:3] * 20]),
        "cut.csv.gz": packed[: len(packed) // 2],
        "cut.txt.gz": edges[: len(edges) // 2],
        "ring.csv": "0,1\n1,2\n2,0\n",
        "chain.csv": "0,1\n1,2\n2,3\n3,2\n",
        "negative.csv": "sender,receiver,weight\nann,bob,1\nbob,cem,-2\ncem,ann,1\n",
        "malformed.toml": "nodes = = 3\n",
        "unknown.toml": "lerning_rate = 3\n",
        "type.toml": 'nodes = "three"\n',
        "nested.toml": "[graph]\nnodes = 3\n",
        "range.toml": "rounds = 0\n",
        "choice.toml": 'engine = "fats"\n',
        "latin.toml": b'data = "\xe9"\n',
    }.items():
        (here / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (here / "folder").mkdir()


BAD_INPUT = {
    "a NaN feature": (
        ("simulate", "--data", "nan.csv", "--label", "late", "--nodes", 3),
        r"nan.csv: row 7, column 'y' is nan; features must be finite",
    ),
    "an infinite feature": (
        ("simulate", "--data", "infinite.csv", "--label", "late", "--nodes", 3),
        r"row 12, column 'x' is -inf; features must be finite",
    ),
    "a label with three values": (
        ("simulate", "--data", "three.csv", "--label", "late"),
        r"label column 'late' has 3 distinct values \('no', 'perhaps', 'yes'\), but .* exactly two"
        r".*--model softmax",
    ),
    "no label": (("simulate", "--data", "mine.csv"), r"needs --label COLUMN.* x, y, late"),
    "a label that is no column": (
        ("simulate", "--data", "mine.csv", "--label", "lat"),
        r"no column 'lat', did you mean 'late'\?",
    ),
    "a label for data that has one": (
        ("simulate", "--data", "flights", "--label", "late"),
        r"label = 'late' is for files, and flights has its own label; leave it out",
    ),
    "an owner that is no column": ((*MINE, "--owner", "z"), r"no column 'z'; it has: x, y"),
    "owners and a number of nodes": (
        (*MINE, "--owner", "x", "--nodes", 3),
        r"owner = 'x' says whose every row is, so nodes = 3 cannot be set as well; leave one",
    ),
    "owners and clusters": ((*MINE, "--owner", "x", "--adversarial", 0.5), r"adversarial = 0\.5"),
    "owners and too small a graph": (
        (*MINE, "--owner", "y", "--graph", "ring.csv"),
        r"the graph has 3 nodes and column 'y' has 7 owners",
    ),
    "a graph that is not strongly connected": (
        (*MINE, "--graph", "chain.csv"),
        r"not strongly connected: it has 3 strong components, the largest with 2 of 4 nodes; "
        r"--largest-component \(in Python: graph.largest_strong_component\(\)\) keeps that one",
    ),
    "a negative weight": (
        (*MINE, "--graph", "negative.csv"),
        r"edge bob -> cem has weight -2; a weight must be finite and at least 0",
    ),
    "a negative weight to look at": (("graph", "negative.csv"), r"bob -> cem has weight -2"),
    "more nodes than samples": (
        (*MINE, "--nodes", 41),
        r"41 nodes but only 40 samples.*use fewer nodes, or --resample NUM_SAMPLES",
    ),
    "more nodes than clusters": (
        ("simulate", "--data", "few.csv", "--label", "late", "--nodes", 5, "--adversarial", 1),
        r"5 nodes.* 3 distinct",
    ),
    "other nodes than the graph has": (
        (*MINE, "--nodes", 5, "--graph", "ring.csv"),
        r"the graph ring.csv has 3 nodes and nodes is 5; leave nodes out, or choose 3",
    ),
    "missing data": (
        ("simulate", "--data", "occupancy"),
        r"data/occupancy/datatest.txt is missing; .*`oneway data fetch occupancy`.*put it there by "
        r"hand.*ONEWAY_DATA",
    ),
    "a missing network": (
        (*MADE, "--graph", "advogato"),
        r"data/trust/out.advogato is missing; .*`oneway data fetch advogato`",
    ),
    "a missing network to look at": (("graph", "epinions"), r"`oneway data fetch epinions`"),
    "a missing file": (("simulate", "--data", "no.csv", "--label", "late"), r"no.csv is not there"),
    "a missing edge list": (("graph", "no.csv"), r"no edge list at no.csv; check the path"),
    "an unknown data set": (("simulate", "--data", "susie"), r"'susie', did you mean 'susy'\?"),
    "an unknown graph": ((*MADE, "--graph", "rng"), r"no graph 'rng'; did you mean 'ring'\?"),
    "a truncated table": (
        ("simulate", "--data", "cut.csv.gz", "--label", "late"),
        r"cut.csv.gz ends early: its compressed data is cut off; download it again",
    ),
    "a truncated edge list": ((*MADE, "--graph", "cut.txt.gz"), r"cut.txt.gz is truncated"),
    "words where a number is to be predicted": (
        (*MINE, "--model", "ridge"),
        r"label column 'late' is not numeric, as --model ridge needs",
    ),
    "a diverging run": (
        (*MADE, "--model", "ridge", "--learning-rate", 50, "--out", "new"),
        r"diverged in round \d+ at node \d+ \(the smallest mass in the network is 0\.\d+\); use a "
        r"smaller learning rate than 50, for example a tenth of it, or --cap-step \(in "
        r"Python: OnlinePushSum\(cap_step=True\)\)",
    ),
    "malformed TOML": (
        ("simulate", "--config", "malformed.toml"),
        r"malformed.toml is not valid TOML: .*line 1",
    ),
    "TOML that is not UTF-8": (("simulate", "--config", "latin.toml"), r"is not valid TOML"),
    "an unknown TOML key": (
        ("simulate", "--config", "unknown.toml"),
        r"'lerning_rate' in unknown.toml is not a setting; did you mean 'learning_rate'\?",
    ),
    "a TOML value of a wrong type": (
        ("simulate", "--config", "type.toml"),
        r"nodes in type.toml is 'three'; it must be a whole number of at least 1",
    ),
    "a TOML table": (
        ("simulate", "--config", "nested.toml"),
        r"graph in nested.toml is \{'nodes': 3\}; it must be text in quotes",
    ),
    "a TOML value out of range": (
        ("simulate", "--config", "range.toml"),
        r"rounds in range.toml is 0; it must be a whole number of at least 1",
    ),
    "a TOML choice there is not": (
        ("simulate", "--config", "choice.toml"),
        r"engine in choice.toml is 'fats'; did you mean 'fast'\?",
    ),
    "a missing TOML file": (
        ("simulate", "--config", "no.toml"),
        r"cannot read no.toml: No such file or directory; check the path",
    ),
    "a folder as TOML": (("simulate", "--config", "folder"), r"cannot read folder"),
    "an unknown engine": (
        (*MADE, "--engine", "warp"),
        r"engine is 'warp'; choose from auto, fast, reference",
    ),
    "an unknown algorithm": (
        (*MADE, "--algorithm", "opt"),
        r"algorithm is 'opt'; did you mean 'ops'\?",
    ),
    "an unknown model": ((*MADE, "--model", "tree"), r"model is 'tree'; choose from hinge"),
    "a model for classes": ((*MADE, "--model", "softmax"), r"'softmax' needs a file"),
    "no nodes": ((*MADE, "--nodes", 0), r"nodes is 0; it must be a whole number of at least 1"),
    "a negative seed": ((*MADE, "--seed", -1), r"seed is -1; it must be a whole number of at"),
    "a negative rate": ((*MADE, "--learning-rate", -1), r"learning rate of ops is -1\.0"),
    "a rate that is none": ((*MADE, "--learning-rate", "nan"), r"learning rate of ops is nan"),
    "a share above 1": ((*MADE, "--adversarial", 2), r"adversarial is 2\.0; it is a share"),
    "a density above 1": (
        (*MADE, "--graph", "erdos-renyi", "--density", 2),
        r"density is 2\.0; it is a probability",
    ),
    "a cap without mass": (
        (*MADE, "--algorithm", "col", "--cap-step"),
        r"col has no mass, so leave it out",
    ),
    "a run saved over a file": ((*MADE, "--out", "mine.csv"), r"mine.csv is a file; choose"),
    "a run saved below a file": ((*MADE, "--out", "mine.csv/run"), r"mine.csv is a file; choose"),
    "a run saved over a folder": (
        (*MADE, "--out", "folder"),
        r"folder exists and is not a stored run; choose another name",
    ),
    "an unknown data set to describe": (("data", "info", "susie"), r"did you mean 'susy'\?"),
    "an unknown data set to fetch": (("data", "fetch", "susie"), r"did you mean 'susy'\?"),
}


@pytest.mark.parametrize(("arguments", "sentence"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_named_in_one_sentence(oneway, tmp_path, arguments, sentence):
    before = everything_in(tmp_path)
    result = oneway(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("Error: ")
    assert result.err.count("\n") == 1
    assert result.err.endswith("\n")
    assert re.search(sentence, result.err), result.err
    assert everything_in(tmp_path) == before


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
