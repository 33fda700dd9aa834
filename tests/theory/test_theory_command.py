from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import oneway as ow
from oneway.cli.main import command_line
from oneway.errors import ConfigError
from oneway.paper.methods import WatchedPushSum
from oneway.paper.theorem import evaluate, measure
from oneway.task.settings import Settings
from oneway.theory import Problem, graph_constants, printed_bound, tight_bound

SMALL = Settings(data="synthetic", nodes=6, max_receivers=3, rounds=200)


def theory(*arguments: str) -> str:
    result = CliRunner().invoke(command_line(), ["theory", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


@pytest.fixture(scope="module")
def measured():
    return measure(SMALL, learning_rate=0.5)


def test_json_holds_the_constants_and_for_each_step_size_the_bounds():
    answer = json.loads(theory("--graph", "ring", "--nodes", "5", "--rounds", "50", "--json"))
    constants = graph_constants(ow.TrustGraph.ring(5).mixing())
    assert answer["C_1"] == constants.gradient_constant
    assert answer["C_2"] == constants.noise_constant
    assert answer["delta_min"] == pytest.approx(0.2, rel=1e-8)
    assert answer["ergodicity"]["proven"]
    printed, best, tight = answer["step_sizes"]
    problem = Problem(50, 1.0, 1.0, 1.0)
    assert printed["printed_bound"] >= best["printed_bound"]
    assert best["printed_bound"] == pytest.approx(printed_bound(constants, problem).smallest)
    assert tight["tight_bound"] == pytest.approx(tight_bound(constants, problem).smallest)
    assert best["measured"] is None


def test_people_see_the_constants_both_step_sizes_and_the_bound():
    shown = theory("--nodes", "8", "--rounds", "300", "--noise", "0.5")
    for words in ("C_1, C_2", "delta_min", "as printed", "best, printed", "best, tight"):
        assert words in shown


def test_with_data_the_measured_regret_stands_beside_the_bound():
    shown = theory("--data", "synthetic", "--nodes", "5", "--rounds", "50")
    assert "certain   measured" in shown
    assert "…" not in shown
    assert "norm of the best fixed model in hindsight" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "ridge"], "--model ridge"),
        (["--data", "synthetic", "--radius", "2"], "--radius 2.0"),
        (["--radius", "0"], "radius is 0"),
    ],
)
def test_flags_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        CliRunner().invoke(command_line(), ["theory", *arguments], catch_exceptions=False)


def test_measured_regret_and_disagreement_are_below_their_bounds(measured):
    names = [step.name for step in measured.steps]
    assert names == ["as printed", "best, printed", "best, tight", "given"]
    for step in measured.steps:
        assert step.measured.regret <= step.measured.certain_bound
        assert step.measured.regret <= step.tight_bound <= step.printed_bound
        assert step.measured.disagreement <= step.measured.disagreement_bound


def test_the_run_is_the_one_that_simulate_makes(measured):
    stream = ow.streams.synthetic(20_000, 10, 0).table.deal(6).head(200)
    graph = ow.TrustGraph.random(6, 3, 0)
    run = ow.simulate(ow.OnlinePushSum(0.5), ow.models.LogisticRegression(), stream, graph)
    assert measured.steps[-1].measured.regret == pytest.approx(run.regret()[-1], rel=1e-9)
    assert measured.steps[-1].problem.radius == pytest.approx(np.linalg.norm(run.comparator))


def test_expected_gradients_are_smaller_than_the_largest_met_and_noise_is_seen(measured):
    """With features of length about sqrt(11), single gradients are long and their means short."""
    for step in measured.steps:
        assert 0.1 < step.problem.gradient_bound < 2
        assert 1 < step.problem.noise < 3.5


def test_without_data_only_the_graph_counts():
    problem = Problem(100, 1.0, 0.0, 2.0)
    result = evaluate(Settings(graph="complete", nodes=4), problem, learning_rate=None)
    assert result.constants.gradient_constant == 1.0
    assert result.steps[0].learning_rate == pytest.approx(2.0 / 10)


def test_a_watched_run_is_push_sum_with_notes():
    stream = ow.streams.synthetic(600, 3, 1).table.deal(6)
    graph = ow.TrustGraph.random(6, 3, 0)
    model = ow.models.LogisticRegression()
    watched = WatchedPushSum(0.3, checkpoints=frozenset({0, 99}))
    run = ow.simulate(watched, model, stream, graph)
    plain = ow.simulate(ow.OnlinePushSum(0.3), model, stream, graph, engine="reference")
    np.testing.assert_array_equal(run.estimates, plain.estimates)
    assert len(watched.notes.estimates) == 2
    np.testing.assert_array_equal(watched.notes.estimates[0], 0.0)
    assert watched.notes.squared_gradients <= 600 * watched.notes.largest_gradient**2
