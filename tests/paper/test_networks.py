"""Neural networks over one-way graphs: better than alone, close to a server, and judged as such."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from oneway.datasets import info
from oneway.paper import networks
from oneway.paper.beyond_section import markdown
from oneway.paper.figures import Scale
from oneway.paper.methods import label
from oneway.paper.networks import (
    ALONE,
    DIGITS,
    METHODS,
    MNIST,
    SERVER,
    TOGETHER,
    Learned,
    Measured,
    Trial,
    judged,
    measure,
    settings,
    trial,
)
from oneway.paper.networks_section import networks_section
from oneway.paper.reproduce import plan, reproduce
from oneway.paper.verdict import below, paired
from oneway.simulator.result_folder import ResultFolder

SEEDS = range(3)
CLOSE = 0.2
"""After few rounds, the average loss is close to a server's if it is larger by less of it."""
SMALL = replace(DIGITS, num_nodes=8, rounds=120, held=400, rates=(0.1,))
DEALINGS = {"alike": SMALL, "few classes": replace(SMALL, classes_per_node=2)}
TINY = replace(MNIST, num_nodes=6, rounds=100, held=1000, rates=(0.03,), most_images=1000)


def needs_torch():
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("sklearn", reason="digits come with scikit-learn")


_FOUND: dict[tuple[networks.Setting, str], list[Trial]] = {}


def per_seed(setting: networks.Setting, method: str, name: str) -> np.ndarray:
    """A number of the trials, one per seed; each is run once."""
    if method == ALONE:
        setting = replace(setting, rates=(0.03,))  # there it is better than at 0.1, alike or not
    if (setting, method) not in _FOUND:
        _FOUND[setting, method] = [trial(setting, method, seed) for seed in SEEDS]
    return np.array([getattr(it, name)[0] for it in _FOUND[setting, method]])


def gain(setting: networks.Setting, method: str) -> np.ndarray:
    """Of accuracy on images that nobody learned from, over learning alone."""
    return per_seed(setting, method, "accuracies") - per_seed(setting, ALONE, "accuracies")


def excess(setting: networks.Setting, method: str) -> np.ndarray:
    """Of the average loss over that of a server at the same rate, as a part of that."""
    return per_seed(setting, method, "losses") / per_seed(setting, SERVER, "losses") - 1


def learns_together(setting: networks.Setting, method: str) -> bool:
    """Whether it is better than alone and close to a server, by the intervals over seeds."""
    better = paired("accuracy", gain(setting, method))
    close = below("loss", excess(setting, method), CLOSE, "excess")
    return (better.verdict, close.verdict) == ("holds", "holds")


@pytest.mark.parametrize("dealing", DEALINGS)
@pytest.mark.parametrize(("method", "rate"), [("relay-plain", 0.1), ("ops-published", 0.03)])
def test_a_network_learns_better_than_alone_and_close_to_a_server(method, rate, dealing):
    """Push-sum, which is SGP, at a smaller rate: nodes with little mass make long steps."""
    needs_torch()
    assert learns_together(replace(DEALINGS[dealing], rates=(rate,)), method)


@pytest.mark.parametrize("dealing", DEALINGS)
@pytest.mark.parametrize("wrong", [ALONE, "dol-asymm-published"])
def test_without_exchange_or_without_mass_a_network_does_not_learn_so(wrong, dealing):
    needs_torch()
    assert not learns_together(DEALINGS[dealing], wrong)


@pytest.mark.parametrize("dealing", DEALINGS)
def test_gossip_that_ignores_mass_is_far_from_a_server(dealing):
    needs_torch()
    assert excess(DEALINGS[dealing], "dol-asymm-published").mean() > 1.5 * CLOSE
    assert excess(DEALINGS[dealing], "relay-plain").mean() < CLOSE


def test_a_convolutional_network_learns_mnist_better_than_alone():
    needs_torch()
    if not info("mnist").present:
        pytest.skip("needs the data set mnist in ONEWAY_DATA")
    assert paired("mnist", gain(TINY, "relay-plain")).verdict == "holds"
    assert paired("mnist", gain(TINY, ALONE)).verdict != "holds"
    assert per_seed(TINY, "relay-plain", "accuracies").min() > 0.6


def test_nobody_learns_from_the_images_that_judge():
    needs_torch()
    images, choosing, judging = SMALL.split(seed=1)
    table = networks.data_table("digits")
    assert (len(choosing), len(judging)) == (200, 200)
    rows = {row.tobytes() for row in table.features[np.concatenate([choosing, judging])]}
    assert not rows & {row.tobytes() for row in images.features}
    assert len(images) == len(table) - 400
    assert len(replace(SMALL, most_images=50).split(seed=1)[0]) == 50


# What is judged and shown, from numbers that are given.


def made(title: str = "digits, alike", **accuracies: list[float]) -> Measured:
    """Accuracies per seed at the middle one of three rates, which is the one to choose."""
    trials = {}
    for method in METHODS:
        given = accuracies.get(method.partition("-")[0], [0.5, 0.51, 0.52])
        trials[method] = [
            Trial([1, 0.5, math.inf], [0.1, 0.6, 0], [0.1, 0.9, 0], [0.99, own, 0], [0, own, 0])
            for own in given
        ]
    return Measured(replace(SMALL, title=title, rates=(0.1, 0.2, 0.3)), trials)


def test_a_rate_is_chosen_by_other_images_than_those_that_judge():
    found = made(relay=[0.9, 0.91, 0.92])
    assert found.best("relay-plain") == 1
    assert found.values("relay-plain", "accuracies").tolist() == [0.9, 0.91, 0.92]


def test_every_method_is_judged_against_alone_and_against_the_server():
    near, far = [0.94, 0.946, 0.951], [0.80, 0.812, 0.825]
    found = made(col=[0.95, 0.955, 0.961], relay=near, ops=far, local=[0.6, 0.61, 0.62])
    claims = judged(Learned([found], []))
    assert len(claims) == 2 * len(TOGETHER)
    verdicts = {
        method: [claim.verdict for claim in claims if claim.text.startswith(label(method).title)]
        for method in TOGETHER
    }
    assert verdicts == {
        "ops-published": ["holds", "fails"],
        "relay-plain": ["holds", "holds"],
        "tracking-plain": ["fails", "fails"],
    }
    np.testing.assert_allclose(found.closed("relay-plain"), [34 / 35, 0.336 / 0.345, 331 / 341])


def test_the_table_has_intervals_and_the_share_of_the_gap():
    found = made(col=[0.9] * 3, relay=[0.8] * 3, local=[0.4] * 3)
    text = markdown([networks_section(Learned([found], []))])
    row = (
        "| Relay | 0.2 | 0.5000 ± 0.0000 | 60.0% ± 0.0% | 80.0% ± 0.0% | 80.0% ± 0.0% | 80% ± 0% "
        "| 10.0% ± 0.0% |"
    )
    assert row in text
    assert "8 nodes with 1 to 4 receivers, 120 images each, 200 held-out images, 3 seeds" in text


def test_without_torch_or_data_a_sentence_takes_the_place_of_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    monkeypatch.setattr(networks, "find_spec", lambda _: None)
    found = measure(Scale(), None, 2, tmp_path / "cells", lambda *_: None)
    assert (found.settings, judged(found)) == ([], [])
    outcome = reproduce(plan(["networks"], 2, None, False), tmp_path, lambda *_: None)
    assert "oneway[torch]" in outcome.markdown
    assert "oneway[torch]" in outcome.page.read_text()
    monkeypatch.setattr(networks, "find_spec", lambda name: name)
    found, absent = settings(Scale())
    assert {it.data for it in found} <= {"digits"}
    assert "mnist" in absent[-1]


class Here:
    """An executor in this process."""

    def results(self, jobs, **_):
        return (job() for job in jobs)


def test_a_trial_is_remembered(tmp_path, monkeypatch):
    needs_torch()
    brief = replace(SMALL, rounds=3, held=20)
    place = (brief, "relay-plain", 0)
    memory, here = ResultFolder(tmp_path, Trial), Here()
    [first] = networks._trials([place], memory, here)
    assert first == (place, networks.trial(*place))
    (path,) = tmp_path.glob("*.json")
    content = json.loads(path.read_bytes())
    monkeypatch.setattr(networks, "_placed", None)
    assert list(networks._trials([place], memory, here)) == [first]
    del content["key"]  # as releases before wrote it
    path.write_text(json.dumps(content))
    assert list(networks._trials([place], memory, here)) == [first]


def test_networks_are_a_part_of_beyond_and_have_a_name_of_their_own():
    assert plan(["networks"], None, None, False).network_rates is None
    assert plan(["networks"], None, None, True).network_rates == networks.QUICK_RATES
    assert "networks" in plan(["all"], None, None, False).figures
