"""What an asynchronous network costs: paired by seed, timed by a falling curve, and remembered."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from oneway.errors import ConfigError
from oneway.paper import async_network
from oneway.paper.async_claims import SLOWLY, judged
from oneway.paper.async_network import (
    ALONE,
    BUSY,
    CALM,
    CONDITIONS,
    FULL,
    METHODS,
    QUICK,
    STEADY,
    Answers,
    Extent,
    Setting,
    Trial,
    batched,
    conditioned,
    lied_to,
    settings,
    sized,
    trial,
)
from oneway.paper.async_section import async_section
from oneway.paper.beyond_section import markdown
from oneway.paper.reproduce import CATALOGUE, plan, reproduce
from oneway.simulator.result_folder import ResultFolder

TINY = Extent(6, 20, (6, 12, 24), 8)
SEEDS = range(3)


def made(**losses: list[float]) -> Answers:
    """Losses per seed of some settings, by a name each; all others are 0.5 and a bit."""
    sleepy = "30 % sleep half of the time"
    known = {
        "sleepy": conditioned(TINY, sleepy, "relay"),
        "sleepy_alone": conditioned(TINY, sleepy, ALONE),
        "small_batches": batched(TINY, 4),
        "lied": lied_to(TINY, 0.5, True),
        "lied_unclipped": lied_to(TINY, math.inf, True),
    }
    given = {known[name]: values for name, values in losses.items()}
    trials = {
        it: [Trial(loss, [10.0] * 20, [10] * 20, 2.0) for loss in given.get(it, [0.5, 0.51, 0.52])]
        for it in settings(TINY)
    }
    for it in TINY.sizes:  # time grows as the cube root of the size
        bins = round(3 * (it / 6) ** (1 / 3) * 100)
        sums = [10.0] * bins + [1.0] * (1000 - bins)
        trials[sized(TINY, it)] = [Trial(0.5, sums, [10] * 1000, 2.0) for _ in SEEDS]
    return Answers(TINY, trials)


def claim(answers: Answers, beginning: str):
    (found,) = (it for it in judged(answers) if it.text.startswith(beginning))
    return found


def test_a_cost_is_paired_by_seed_with_the_same_network_without_the_condition():
    answers = made(sleepy=[0.55, 0.612, 0.572])
    cost = answers.cost("30 % sleep half of the time", "relay")
    np.testing.assert_allclose(cost, [0.1, 0.2, 0.1], rtol=1e-12)
    assert answers.cost("delay x 10", "relay").tolist() == [0, 0, 0]


def test_every_condition_is_compared_at_its_own_rate_of_samples():
    for title, (rate, told) in CONDITIONS.items():
        setting = conditioned(TINY, title, "relay")
        assert (setting.rate, setting.told) == (rate, told)
        assert Setting("relay", TINY.num_nodes, TINY.rounds, rate) in settings(TINY)
        assert setting.conditions() != Setting("relay", 6, 20, rate).conditions()
    assert {rate for rate, _ in CONDITIONS.values()} == {CALM, BUSY}


def test_verdicts_follow_the_numbers():
    answers = made(
        sleepy=[0.60, 0.62, 0.61],
        sleepy_alone=[0.70, 0.73, 0.71],
        small_batches=[0.45, 0.455, 0.46],
        lied=[0.501, 0.511, 0.521],
        lied_unclipped=[0.9, 0.95, 1.0],
    )
    cheap = claim(answers, "No condition costs Relay")
    assert {it.setting for it in cheap.findings if it.verdict == "fails"} == {
        "30 % sleep half of the time"
    }
    together = claim(answers, "Under every condition Relay")
    (found,) = (it for it in together.findings if it.verdict == "holds")
    assert found.setting == "30 % sleep half of the time"
    words = " ".join(async_section(answers, judged(answers)).text)
    assert "under these conditions: batches of 4 (10" in words
    choices = claim(answers, "No other window")
    assert [it.setting for it in choices.findings if it.verdict == "fails"] == ["batches of 4"]
    assert claim(answers, "With the clip").verdict == "holds"
    assert claim(answers, "Without the clip").verdict == "holds"


def test_the_exponent_is_that_of_the_times_to_a_loss():
    answers = made()
    assert answers.seconds(6).tolist() == [301.0 / STEADY] * 3
    np.testing.assert_allclose(answers.exponents(), 1 / 3, atol=0.002)
    growth = claim(answers, "Time to a given loss")
    assert (growth.findings[0].effect > SLOWLY, growth.verdict) == (True, "fails")


def test_a_loss_is_reached_when_the_falling_curve_is_there_not_by_one_lucky_bin():
    lucky = Trial(0.5, [9.0, 1.0, 9.0, 8.0, 4.0, 4.0, 0.0, 3.0], [10] * 6 + [0, 10], 1.0)
    assert lucky.bins_to(0.4) == 5
    assert lucky.bins_to(0.3) == 8
    assert lucky.bins_to(0.2) == math.inf
    assert lucky.end == pytest.approx(0.3)
    assert Trial(math.inf, [], [], 0.0).bins_to(1.0) == math.inf


def test_a_network_that_never_gets_there_takes_for_ever():
    answers = made()
    high = Trial(0.9, [10.0] * 1000, [10] * 1000, 1.0)
    trials = {**answers.trials, sized(TINY, 24): [high] * 3}
    answers = Answers(TINY, trials)
    assert np.isinf(answers.exponents()).all()
    assert "not reached" in markdown([async_section(answers, judged(answers))])


def test_a_larger_network_may_have_fewer_seeds():
    answers = made()
    trials = {**answers.trials, sized(TINY, 24): answers.trials[sized(TINY, 24)][:1]}
    np.testing.assert_allclose(Answers(TINY, trials).exponents(), 1 / 3, atol=0.01)


def test_tables_have_every_question_with_intervals():
    answers = made(sleepy=[0.55, 0.561, 0.572], lied=[0.75, 0.765, 0.78])
    text = markdown([async_section(answers, judged(answers))])
    alike = " | 0.0% ± 0.0%" * 3
    assert f"| 30 % sleep half of the time | 10.0% ± 0.0%{alike} |" in text
    assert "| 0.5 | 0.5100 ± 0.0248 | 0.7650 ± 0.0373 | 50.0% ± 0.0% |" in text
    assert "| 16 | 0.5100 ± 0.0248 | 2.00 | 0.5100 ± 0.0248 | 2.00 |" in text
    assert "p = 0.33" in text


class Here:
    """An executor in this process."""

    def results(self, jobs, **_):
        return (job() for job in jobs)


def test_a_trial_is_remembered(tmp_path, monkeypatch):
    place = (conditioned(QUICK, "30 % of messages lost", "relay"), 1)
    memory, here = ResultFolder(tmp_path, Trial), Here()
    [first] = async_network._trials([place], memory, here)
    assert first == (place, trial(*place))
    assert sum(first[1].counts) > 0.5 * QUICK.num_nodes * QUICK.rounds
    assert sum(first[1].sums) / sum(first[1].counts) == pytest.approx(first[1].loss)
    (path,) = tmp_path.glob("*.json")
    assert json.loads(path.read_bytes())["pushes"] > 0
    monkeypatch.setattr(async_network, "_placed", None)
    assert list(async_network._trials([place], memory, here)) == [first]


def test_the_page_answers_every_question(tmp_path, monkeypatch):
    monkeypatch.setattr(async_network, "Local", Here)
    quick = plan(["async"], None, None, True)
    assert quick.async_extent == QUICK
    monkeypatch.setattr("oneway.paper.reproduce.opened", OpenedHere)
    outcome = reproduce(quick, tmp_path, lambda *_: None)
    assert {it.where for it in outcome.claims} == {"async"}
    page = outcome.page.read_text()
    for word in ("window", "samples in a batch", "presumed dead after", "peers", "clip"):
        assert f"<th>{word}</th>" in page
    assert "What follows for the defaults" in page
    assert (tmp_path / "panels" / "async.csv").read_text().count("\n") == 1 + 9 * len(METHODS)
    assert (tmp_path / "async.md").read_text() == outcome.markdown


class OpenedHere:
    """An executor that is open already."""

    def __init__(self, _: str) -> None:
        pass

    def __enter__(self) -> Here:
        return Here()

    def __exit__(self, *_: object) -> None:
        pass


def test_a_larger_network_is_asked_for():
    assert "async" in CATALOGUE
    assert plan(["async"], None, None, False).async_extent == FULL
    large = plan(["async"], None, None, False, 100_000).async_extent
    assert large.sizes == (*FULL.sizes, 100_000)
    with pytest.raises(ConfigError, match="--peers"):
        plan(["async"], None, None, True, 100_000)
