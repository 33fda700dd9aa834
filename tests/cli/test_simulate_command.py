from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import typer
from plain import PLAIN_FLAGS

import oneway as ow
from oneway import simulator
from oneway.cli.main import command_line
from oneway.errors import ConfigError, GraphError, StoreError
from oneway.methods import SCHEDULES, Batches, InverseSqrt
from oneway.methods.transforms import AdaGrad
from oneway.task.privacy import PRIVACY_KEYS, Privacy
from oneway.task.settings import Settings, flag_names

SMALL = ("simulate", "--data", "synthetic", "--rounds", 60)
ROWS = [f"{x},{x % 7},{'no' if x % 3 else 'yes'},{'abc'[x % 3]}" for x in range(1, 61)]


def test_precision_is_a_flag(oneway):
    plain = ("--method", "ops", "--privacy", "none", "--learning-rate", 0.1, "--json")
    rounded = oneway(*SMALL, *plain, "--precision", "float32").json
    exact = oneway(*SMALL, *plain).json
    assert rounded["config"]["precision"] == "float32"
    assert rounded["average_loss"] == pytest.approx(exact["average_loss"], rel=1e-6)
    assert rounded["average_loss"] != exact["average_loss"]
    refused = oneway(*SMALL, "--precision", "half")
    assert refused.code != 0
    assert "float32" in refused.err


def test_json_holds_the_numbers_and_everything_that_determines_them(oneway):
    result = oneway(*SMALL, "--seed", 4, "--json")
    assert result.code == 0
    assert result.err == ""
    answer = result.json
    assert set(answer) == {
        "average_loss",
        "accuracy",
        "disagreement",
        "smallest_mass",
        "base_loss",
        "alone_loss",
        "measures",
        "regret",
        "seconds",
        "complete",
        "config",
        "versions",
        "privacy",
    }
    assert answer["privacy"] == {
        "epsilon": 8.0, "delta": 1e-5, "clip": "auto", "unit": "sample", "band": 32,
    }  # fmt: skip
    assert answer["complete"] is True
    assert answer["regret"] is None
    assert 0.2 < answer["average_loss"] < 0.7
    assert 0 < answer["smallest_mass"] < 1
    config = answer["config"]
    assert (config["algorithm"], config["learning_rate"]) == ("relay", "auto")
    assert (config["num_nodes"], config["num_rounds"]) == (20, 60)
    assert config["graph"]["seed"] == config["stream"]["seed"] == 4
    assert answer["versions"]["oneway"] == ow.__version__


def test_the_command_computes_what_the_library_computes(oneway):
    """By default with noise and in batches; without them if that is written out."""
    few = (*SMALL, "--nodes", 8, "--max-receivers", 3, "--learning-rate", 0.3, "--json")
    for flags, batches in (
        ((), Privacy().batches(16, 11)),
        (("--epsilon", 1, "--samples-per-push", 5), Privacy(epsilon=1.0).batches(5, 11)),
        (
            ("--clip", 2, "--band", 1, "--delta", 1e-6),
            Privacy(clip=2.0, band=1, delta=1e-6).batches(16, 11),
        ),
        (("--clip", "auto"), Privacy().batches(16, 11)),
        (("--privacy", "none"), Batches(16)),
        (("--privacy", "none", "--samples-per-push", 1), None),
    ):
        check_same(oneway(*few, *flags), ow.Relay(0.3, step="curvature", batches=batches))
    check_same(oneway(*few, *PLAIN_FLAGS), ow.OnlinePushSum(0.3, step="curvature"))
    check_same(
        oneway(*few, *PLAIN_FLAGS, "--mixes", 2, "--transforms", "adagrad"),
        ow.OnlinePushSum(0.3, step="curvature", mixes=2, transforms=(AdaGrad(),)),
    )


def check_same(shown, method):
    stream = ow.streams.synthetic(20_000, 10, seed=0).table.deal(8, seed=0).head(60)
    run = ow.simulate(
        method,
        ow.models.LogisticRegression(l2=1e-4),
        stream,
        ow.TrustGraph.random(8, max_receivers=3, seed=0),
    )
    assert shown.json["average_loss"] == run.average_loss
    assert shown.json["smallest_mass"] == run.masses.min()


def test_people_get_facts_one_a_line(oneway):
    shown = oneway(*SMALL, "--regret")
    names = [line[:12].strip() for line in shown.out.splitlines()]
    assert names == [
        "relay, 60 ro",
        "average loss",
        "base rate",
        "alone",
        "accuracy",
        "ROC AUC",
        "log loss",
        "Brier score",
        "disagreement",
        "masses",
        "nodes",
        "engine",
        "regret",
        "privacy",
    ]
    assert "epsilon 8, delta 1e-05 per sample" in shown.out
    assert "samples can be read" in oneway(*SMALL, "--privacy", "none").out
    assert "against the best fixed model in hindsight" in shown.out


def test_a_regression_has_no_accuracy(oneway):
    shown = oneway(*SMALL, "--model", "ridge", "--algorithm", "col", "--engine", "reference")
    assert "accuracy" not in shown.out
    assert oneway(*SMALL, "--model", "ridge", "--json").json["accuracy"] is None


def test_regret_is_the_final_one(oneway):
    assert oneway(*SMALL, "--regret", "--json").json["regret"] > 0


@pytest.mark.parametrize("algorithm", ["ops", "dol-symm", "dol-asymm", "col", "local"])
def test_every_method_runs_by_its_short_name(oneway, algorithm):
    answer = oneway(*SMALL, "--algorithm", algorithm, "--json").json
    assert answer["config"]["algorithm"] == algorithm


@pytest.mark.parametrize("graph", ["random", "ring", "complete", "erdos-renyi"])
def test_every_kind_of_graph_is_made(oneway, graph):
    assert oneway(*SMALL, "--graph", graph, "--density", 0.5).code == 0


def test_the_largest_component_says_how_many_nodes_there_are(oneway):
    answer = oneway(
        *SMALL, "--graph", "scale-free", "--nodes", 50, "--largest-component", "--json"
    ).json
    component = ow.TrustGraph.scale_free(50, seed=0).largest_strong_component()
    assert answer["config"]["num_nodes"] == component.num_nodes < 50


def test_a_graph_file_says_how_many_nodes_there_are(oneway):
    Path("edges.csv").write_text("a,b\nb,c\nc,a\n")
    assert oneway(*SMALL, "--graph", "edges.csv", "--json").json["config"]["num_nodes"] == 3


def test_owners_are_the_nodes(oneway):
    Path("mine.csv").write_text("\n".join(["x,y,late,who", *ROWS]))
    answer = oneway(
        "simulate", "--data", "mine.csv", "--label", "late", "--owner", "who", "--json",
        "--engine", "reference",
    ).json  # fmt: skip
    assert answer["config"]["num_nodes"] == 3
    assert answer["config"]["stream"]["deal"] == "by owner"


def test_softmax_learns_the_classes_of_a_file(oneway):
    Path("mine.csv").write_text("\n".join(["x,y,late,who", *ROWS]))
    answer = oneway(
        "simulate", "--data", "mine.csv", "--label", "who", "--model", "softmax", "--nodes", 4,
        "--json",
    ).json  # fmt: skip
    assert answer["config"]["engine"] == "reference"
    assert answer["config"]["model"]["num_classes"] == 3


def test_a_saved_run_is_read_back_and_replaced_by_the_next_if_that_is_forced(oneway):
    for seed in (1, 2):
        saved = oneway(*SMALL, "--out", "runs/mine", "--force", "--seed", seed, "--json")
        run = ow.Run.load("runs/mine")
        assert run.average_loss == saved.json["average_loss"]
        assert run.record.config["graph"]["seed"] == seed
    assert [path.name for path in Path("runs").iterdir()] == ["mine"]


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


def test_every_setting_has_a_flag_and_its_help_shows_the_default():
    """The defaults in the help are only shown; `Settings` has the real ones."""
    command = typer.main.get_command(command_line()).commands["simulate"]
    options = {option.name: option for option in command.params}
    for name in flag_names():
        flag = "features" if name == "columns" else name.replace("_", "-")
        assert f"--{flag}" in options[name].opts
        settings = Settings()
        default = getattr(settings.privacy if name in PRIVACY_KEYS else settings, name)
        if isinstance(default, str | int | float) and not isinstance(default, bool):
            assert type(default)(options[name].show_default) == default


def test_former_flags_work_and_say_what_they_are_called_now(oneway):
    former = oneway(*SMALL, "--algorithm", "ops", "--cap-step", "--json")
    assert "method" in former.err
    assert "step" in former.err
    now = oneway(*SMALL, "--method", "ops", "--step", "capped", "--json")
    assert now.err == ""
    assert former.json["average_loss"] == now.json["average_loss"]


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
        "simulate", "--data", "synthetic", "--resample", 2_000_000, "--schedule", "inverse-sqrt",
        "--learning-rate", 0.1, "--out", "partial", "--json",
    )  # fmt: skip
    assert result.code == 130
    assert result.err == "Interrupted: these are the rounds that were done.\n"
    assert result.json["complete"] is False
    assert result.json["average_loss"] > 0
    run = ow.Run.load("partial")
    assert not run.complete
    assert 100 < run.record.num_rounds < 100_000


def test_ctrl_c_before_the_first_round_prints_nothing(oneway, monkeypatch):
    run_all = simulator.simulate

    def interrupted_at_once(*args: object, **settings: object) -> ow.Run:
        run = run_all(*args, **settings)
        nothing = {"loss_sums": np.zeros(0), "disagreement": np.zeros(0)}
        return ow.Run(dataclasses.replace(run.record, **nothing, complete=False))

    monkeypatch.setattr(simulator, "simulate", interrupted_at_once)
    result = oneway(*SMALL, "--out", "partial")
    assert (result.code, result.out) == (130, "")
    assert result.err == "Interrupted before the first round was done.\n"
    assert not Path("partial").exists()


def test_owners_and_an_edge_list_are_matched_by_name(oneway, here):
    """The edge list names nodes in another order than the table's owners are sorted in."""
    rng = np.random.default_rng(0)
    lines = [
        f"{x:.4f},{y},{owner}"
        for x, y, owner in zip(
            rng.standard_normal(90), rng.choice(["no", "yes"], 90), "cba" * 30, strict=True
        )
    ]
    (here / "my.csv").write_text("x,late,airport\n" + "\n".join(lines))
    edges = ["sender,receiver", "c,a", "a,b", "b,c", "a,c"]
    losses = []
    for order in (edges, [edges[0], *reversed(edges[1:])]):
        (here / "edges.csv").write_text("\n".join(order))
        result = oneway(
            "simulate", "--data", "my.csv", "--label", "late", "--owner", "airport",
            "--graph", "edges.csv", "--learning-rate", 0.5, "--json", *PLAIN_FLAGS,
        )  # fmt: skip
        assert result.code == 0, result.err
        losses.append(result.json["average_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-12)
    table = ow.streams.load(here / "my.csv", label="late", owner="airport")
    graph = ow.TrustGraph.from_edges([(2, 0), (0, 1), (1, 2), (0, 2)], num_nodes=3)
    stream = table.deal_by("airport")
    assert stream.node_names == ("a", "b", "c")
    method = ow.OnlinePushSum(0.5, step="curvature")
    run = ow.simulate(method, ow.models.LogisticRegression(), stream, graph)
    assert losses[0] == pytest.approx(run.average_loss, rel=1e-12)


def test_a_checkpoint_is_written_and_gone_on_from(oneway, tmp_path):
    """Same numbers, also when it is started again; another run is told whose checkpoint it is."""
    kept = ("--checkpoint", tmp_path / "kept", "--checkpoint-seconds", 0, "--json")
    first, second, plain = (oneway(*SMALL, *flags).json for flags in (kept, kept, ("--json",)))
    for name in ("average_loss", "disagreement", "measures", "config"):
        assert first[name] == second[name] == plain[name]
    assert "one process" in plain["config"]["engine_reason"]
    oneway(*SMALL, *kept, "--seed", 9).check_refused(StoreError, "another run", "seed")
    oneway(*SMALL, "--checkpoint", "").check_refused(ConfigError, "checkpoint is ''")


def test_parts_are_for_the_engine_ray(oneway, tmp_path):
    oneway(*SMALL, "--parts", 2).check_refused(ConfigError, "parts", "one process")
    ray = (*SMALL, "--engine", "ray", "--parts")
    oneway(*ray, 0).check_refused(GraphError, "parts is 0")
    file = tmp_path / "parts.txt"
    file.write_text("0\n" * 3)
    oneway(*ray, file).check_refused(GraphError, "(3,)", "20 nodes")
