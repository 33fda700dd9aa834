from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from plain import PLAIN_FLAGS

import oneway as ow
from oneway.cli.main import command_line
from oneway.methods import SCHEDULES, Batches, InverseSqrt
from oneway.methods.transforms import AdaGrad
from oneway.task.privacy import PRIVACY_KEYS, Privacy
from oneway.task.settings import Settings, flag_names

SMALL = ("simulate", "--data", "synthetic", "--rounds", 30)
REFERENCE = ("--engine", "reference")
"""Without a kernel to compile."""


def test_json_holds_the_numbers_and_everything_that_determines_them(oneway):
    result = oneway(*SMALL, "--seed", 4, "--json")
    assert result.code == 0
    assert result.err == ""
    answer = result.json
    assert set(answer) == {
        "average_loss", "accuracy", "disagreement", "smallest_mass", "base_loss", "alone_loss",
        "measures", "regret", "seconds", "complete", "config", "versions", "privacy",
        "yours", "shared", "weights", "believes", "verdict",
    }  # fmt: skip
    assert answer["privacy"] == {
        "epsilon": 8.0, "delta": 1e-5, "clip": "auto", "unit": "sample", "band": 32,
    }  # fmt: skip
    assert answer["complete"] is True
    assert answer["regret"] is None
    assert 0.2 < answer["average_loss"] < 0.7
    assert 0 < answer["smallest_mass"] < 1
    config = answer["config"]
    assert (config["method"], config["learning_rate"]) == ("relay", "auto")
    assert (config["num_nodes"], config["num_rounds"]) == (20, 30)
    assert config["graph"]["seed"] == config["stream"]["seed"] == 4
    assert answer["versions"]["oneway"] == ow.__version__


def test_any_directed_graph_is_simulated_and_what_it_means_is_said_in_a_sentence(oneway):
    Path("chain.csv").write_text("0,1\n1,2\n2,3\n3,2\n")
    few = ("--graph", "chain.csv", *REFERENCE, "--no-personal", "--json")
    result = oneway(*SMALL, *few)
    assert result.err.count("not strongly connected") == 1
    assert result.json["config"]["bounds"] == list(ow.Relay.usual_bounds)
    largest = oneway(*SMALL, *few, "--largest-component")
    assert largest.err == ""
    assert largest.json["config"]["num_nodes"] == 2


def test_the_command_computes_what_the_library_computes(oneway):
    """By default with noise and in batches; without them if that is written out."""
    few = (*SMALL, *REFERENCE, "--nodes", 6, "--max-receivers", 3, "--learning-rate", 0.3, "--json")
    for flags, batches in (
        ((), Privacy().batches(16, 31)),
        (("--epsilon", 1, "--samples-per-push", 5), Privacy(epsilon=1.0).batches(5, 31)),
        (("--clip", 2, "--delta", 1e-6), Privacy(clip=2.0, delta=1e-6).batches(16, 31)),
        (("--privacy", "none"), Batches(16)),
        (("--privacy", "none", "--samples-per-push", 1), None),
    ):
        check_same(oneway(*few, *flags), ow.Relay(0.3, step="curvature", batches=batches))
    check_same(
        oneway(*few, *PLAIN_FLAGS, "--transforms", "adagrad"),
        ow.OnlinePushSum(0.3, step="curvature", transforms=(AdaGrad(),)),
    )


def check_same(shown, method):
    stream = ow.datasets.load("synthetic").deal(6, seed=0).head(30)
    run = ow.simulate(
        method,
        ow.models.LogisticRegression(l2=1e-4),
        stream,
        ow.TrustGraph.random(6, max_receivers=3, seed=0),
        engine="reference",
    )
    assert shown.json["average_loss"] == run.average_loss
    assert shown.json["smallest_mass"] == run.masses.min()


def test_what_answers_is_personal_and_measured_unless_told_otherwise(oneway):
    few = (*SMALL, *REFERENCE, "--nodes", 6, "--max-receivers", 3, "--json")
    own, shared = oneway(*few).json, oneway(*few, "--no-personal").json
    assert own["average_loss"] == shared["average_loss"]
    assert own["alone_loss"] == pytest.approx(shared["alone_loss"], rel=1e-9)
    assert own["measures"]["log_loss"] == pytest.approx(own["yours"], rel=1e-9)
    assert shared["measures"]["so_far"]["loss"] == shared["average_loss"]
    assert (shared["yours"], shared["shared"], shared["believes"]) == (None, None, None)
    assert sum(own["weights"].values()) == pytest.approx(1.0)
    assert own["verdict"].startswith("not decided yet")
    alone = oneway(*few, "--method", "local").json
    assert (alone["yours"], alone["alone_loss"], alone["verdict"]) == (None, None, None)


def test_a_toml_file_holds_settings_and_flags_win(oneway):
    Path("run.toml").write_text(
        'data = "synthetic"\nnodes = 6\nrounds = 40\ngraph = "ring"\nlearning_rate = 1\n'
        'schedule = "inverse-sqrt"\nstep = "capped"\nintercept = false\nengine = "reference"\n'
    )
    config = oneway("simulate", "--config", "run.toml", "--json").json["config"]
    assert (config["num_nodes"], config["num_rounds"]) == (6, 40)
    assert config["learning_rate"] == "InverseSqrt(scale=1.0)"
    assert config["step"] == {"name": "capped", "cap": 1.0}
    assert config["model"]["intercept"] is False
    config = oneway(
        "simulate", "--config", "run.toml", "--nodes", 7, "--learning-rate", 0.5, "--intercept",
        "--schedule", "constant", "--json",
    ).json["config"]  # fmt: skip
    assert (config["num_nodes"], config["num_rounds"]) == (7, 40)
    assert config["learning_rate"] == 0.5
    assert config["model"]["intercept"] is True


def test_transforms_and_options_are_flags(oneway):
    flags = ("--transforms", "clip,momentum", "--options", "momentum.beta=0.5")
    config = oneway(*SMALL, *flags, "--json").json["config"]
    assert config["engine"] == "reference"
    assert config["transforms"] == [
        {"name": "clip", "norm": 1.0},
        {"name": "momentum", "beta": 0.5},
    ]


def test_ctrl_c_prints_the_rounds_that_were_done_and_exits_130(oneway, monkeypatch):
    """A real SIGINT, sent in round 100 by a schedule that otherwise does nothing."""

    class Interrupting(InverseSqrt):
        def __call__(self, round_index: int) -> float:
            if round_index == 100:
                os.kill(os.getpid(), signal.SIGINT)
            return super().__call__(round_index)

    monkeypatch.setitem(SCHEDULES._entries, "inverse-sqrt", Interrupting)
    result = oneway(
        "simulate", "--data", "synthetic", "--resample", 400_000, "--schedule", "inverse-sqrt",
        "--learning-rate", 0.1, *REFERENCE, "--out", "partial", "--json",
    )  # fmt: skip
    assert result.code == 130
    assert result.err == "Interrupted: these are the rounds that were done.\n"
    assert result.json["complete"] is False
    assert result.json["average_loss"] > 0
    run = ow.Run.load("partial")
    assert not run.complete
    assert 100 < run.record.num_rounds < 20_000


def test_owners_and_an_edge_list_are_matched_by_name(oneway, here):
    """The edge list names nodes in another order than the table's owners are sorted in."""
    rng = np.random.default_rng(0)
    cells = zip(rng.standard_normal(90), rng.choice(["no", "yes"], 90), "cba" * 30, strict=True)
    lines = [f"{x:.4f},{y},{owner}" for x, y, owner in cells]
    (here / "my.csv").write_text("x,late,airport\n" + "\n".join(lines))
    edges = ["sender,receiver", "c,a", "a,b", "b,c", "a,c"]
    losses = []
    for order in (edges, [edges[0], *reversed(edges[1:])]):
        (here / "edges.csv").write_text("\n".join(order))
        result = oneway(
            "simulate", "--data", "my.csv", "--label", "late", "--owner", "airport",
            "--graph", "edges.csv", "--learning-rate", 0.5, "--json", *PLAIN_FLAGS, *REFERENCE,
        )  # fmt: skip
        assert result.code == 0, result.err
        losses.append(result.json["average_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    table = ow.streams.load(here / "my.csv", label="late", owner="airport")
    graph = ow.TrustGraph.from_edges([(2, 0), (0, 1), (1, 2), (0, 2)], num_nodes=3)
    stream = table.deal_by("airport")
    assert stream.node_names == ("a", "b", "c")
    method = ow.OnlinePushSum(0.5, step="curvature")
    run = ow.simulate(method, ow.models.LogisticRegression(), stream, graph, engine="reference")
    assert losses[0] == pytest.approx(run.average_loss, rel=1e-12)


def test_flags_show_the_defaults_of_the_specification():
    """The defaults in the help are only shown; `Settings` has the real ones."""
    command = command_line().get_command(None, "simulate")
    options = {option.name: option for option in command.params}
    assert {"mixes", "density", "band"}.isdisjoint(options)
    for name in flag_names():
        flag = "features" if name == "columns" else name.replace("_", "-")
        assert f"--{flag}" in options[name].opts
        settings = Settings()
        default = getattr(settings.privacy if name in PRIVACY_KEYS else settings, name)
        if isinstance(default, str | int | float) and not isinstance(default, bool):
            assert type(default)(options[name].show_default) == default
