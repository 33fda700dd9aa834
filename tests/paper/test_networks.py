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
from oneway.paper.reproduce import plan
from oneway.paper.verdict import below, paired

SEEDS = range(3)
CLOSE = 0.04
"""Of the accuracy of a server after few rounds, a method may lack so much."""
SMALL = replace(DIGITS, num_nodes=8, rounds=120, held=800, rates=(0.1,))
DEALINGS = {"alike": SMALL, "few classes": replace(SMALL, classes_per_node=2)}
TINY = replace(MNIST, num_nodes=6, rounds=100, held=1000, rates=(0.03,), most_images=1000)


def needs_torch():
    pytest.importorskip("torch", reason="the extra torch is not installed")
    pytest.importorskip("sklearn", reason="digits come with scikit-learn")


_FOUND: dict[tuple[networks.Setting, str], np.ndarray] = {}


def accuracies(setting: networks.Setting, method: str) -> np.ndarray:
    """On images that nobody learned from, mean over nodes, per seed; each is run once."""
    # At 0.03 nodes alone are better than at 0.1, alike or not.
    own = replace(setting, rates=(0.03,)) if method == ALONE else setting
    if (own, method) not in _FOUND:
        found = [trial(own, method, seed).accuracies[0] for seed in SEEDS]
        _FOUND[own, method] = np.array(found)
    return _FOUND[own, method]


def better_than_alone(setting: networks.Setting, method: str) -> str:
    gain = accuracies(setting, method) - accuracies(setting, ALONE)
    return paired("digits", gain).verdict


def close_to_server(setting: networks.Setting, method: str) -> str:
    lack = accuracies(setting, SERVER) - accuracies(setting, method)
    return below("digits", lack, CLOSE, "lack of accuracy").verdict


@pytest.mark.parametrize("dealing", DEALINGS)
def test_relay_learns_a_network_better_than_alone_and_close_to_a_server(dealing):
    needs_torch()
    assert better_than_alone(DEALINGS[dealing], "relay-plain") == "holds"
    assert close_to_server(DEALINGS[dealing], "relay-plain") == "holds"


@pytest.mark.parametrize("dealing", DEALINGS)
def test_push_sum_learns_a_network_better_than_alone(dealing):
    """That is SGP. So early it is not yet close to a server: nodes with little mass step far."""
    needs_torch()
    assert better_than_alone(DEALINGS[dealing], "ops-published") == "holds"


@pytest.mark.parametrize("wrong", [ALONE, "dol-asymm-published"])
@pytest.mark.parametrize("dealing", DEALINGS)
def test_without_exchange_or_without_mass_a_network_is_far_from_a_server(dealing, wrong):
    needs_torch()
    setting = DEALINGS[dealing]
    assert close_to_server(setting, wrong) != "holds"
    lack = accuracies(setting, SERVER) - accuracies(setting, wrong)
    assert lack.mean() > 2 * CLOSE


def test_mass_is_what_makes_gossip_learn_where_nodes_see_few_classes():
    """The same graph and shares; the one that ignores mass is worse with every seed."""
    needs_torch()
    few = DEALINGS["few classes"]
    corrected, naive = (accuracies(few, it) for it in ("ops-published", "dol-asymm-published"))
    assert (corrected > naive + 0.05).all()


def test_a_convolutional_network_learns_mnist_better_than_alone():
    needs_torch()
    if not info("mnist").present:
        pytest.skip("needs the data set mnist in ONEWAY_DATA")
    gain = accuracies(TINY, "relay-plain") - accuracies(TINY, ALONE)
    assert paired("mnist", gain).verdict == "holds"
    assert accuracies(TINY, "relay-plain").min() > 0.6


def test_nobody_learns_from_the_images_that_judge():
    needs_torch()
    images, choosing, judging = SMALL.split(seed=1)
    table = networks.data_table("digits")
    assert (len(choosing), len(judging)) == (400, 400)
    rows = {row.tobytes() for row in table.features[np.concatenate([choosing, judging])]}
    assert not rows & {row.tobytes() for row in images.features}
    assert len(images) == len(table) - 800
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
        "| Relay | 0.2 | 0.5000 ± 0.0000 | 60.0% ± 0.0% | 80.0% ± 0.0% | 80.0% ± 0.0% | 80% ± 0% |"
    )
    assert row in text
    assert "8 nodes with 1 to 4 receivers, 120 images each, 400 held-out images, 3 seeds" in text


def test_without_torch_or_data_a_sentence_takes_the_place_of_numbers(tmp_path, monkeypatch):
    monkeypatch.setenv("ONEWAY_DATA", str(tmp_path))
    monkeypatch.setattr(networks, "find_spec", lambda _: None)
    found = measure(Scale(), None, 2, tmp_path / "cells", lambda *_: None)
    assert (found.settings, judged(found)) == ([], [])
    assert "oneway[torch]" in networks_section(found).text[-1]
    monkeypatch.setattr(networks, "find_spec", lambda name: name)
    found, absent = settings(Scale())
    assert {it.data for it in found} <= {"digits"}
    assert "mnist" in absent[-1]


def test_a_trial_is_remembered(tmp_path, monkeypatch):
    needs_torch()
    brief = replace(SMALL, rounds=3, held=20)
    job = (brief, "relay-plain", 0)
    first = networks._remembered(job, tmp_path)
    (path,) = tmp_path.glob("*.json")
    assert first == (job, Trial(**json.loads(path.read_bytes())))
    monkeypatch.setattr(networks, "trial", None)
    assert networks._remembered(job, tmp_path) == first


def test_networks_are_a_part_of_beyond_and_have_a_name_of_their_own():
    assert plan(["networks"], None, None, False).network_rates is None
    assert plan(["networks"], None, None, True).network_rates == networks.QUICK_RATES
    assert "networks" in plan(["all"], None, None, False).figures
