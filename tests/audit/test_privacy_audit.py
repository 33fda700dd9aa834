"""The audit has teeth where nothing is protected, and finds nothing where something is."""

from __future__ import annotations

import json

import numpy as np
import pytest

from oneway.audit.page import page_of
from oneway.audit.privacy import audit
from oneway.audit.simulation import watch
from oneway.errors import ConfigError
from oneway.privacy.reconstruction import steps_between
from oneway.task.assembly import assemble
from oneway.task.settings import read_settings

OPEN = {"privacy": "none", "samples_per_push": 1}


def settings_with(**changes):
    small = {"data": "synthetic", "nodes": 6, "rounds": 320}
    return read_settings(None, small | changes)


def test_without_batches_and_noise_the_others_read_nearly_every_row():
    found = audit(settings_with(**OPEN), canaries=500)
    score = found.worst.score
    assert found.worst.attacker == "everybody else together"
    assert score.rows == 320
    assert score.rows_read_exactly > 0.9 * score.rows
    assert all(example.exact for example in found.worst.examples)
    assert found.epsilon_promised is None
    assert found.evidence.epsilon_lower_bound > 20


@pytest.mark.parametrize("model", ["logistic", "ridge", "hinge"])
@pytest.mark.parametrize("method", ["ops", "dol-asymm", "col"])
def test_every_method_that_sends_gives_its_rows_away(model, method):
    found = audit(settings_with(**OPEN, model=model, method=method), canaries=100)
    # A hinge learns nothing from what it knows well, and so says nothing about it.
    least = 0.4 if model == "hinge" else 0.9
    assert found.worst.score.rows_read_exactly > least * found.worst.score.rows


def test_batches_without_noise_hide_every_digit_and_promise_nothing():
    found = audit(settings_with(privacy="none", samples_per_push=16), canaries=500)
    assert found.worst.score.rows_read_exactly == 0
    assert found.is_kept is None
    assert found.evidence.epsilon_lower_bound > 20


def test_the_defaults_let_nothing_be_read():
    found = audit(settings_with(), canaries=2000)
    assert found.worst.score.rows_read_exactly == 0
    assert abs(found.worst.score.cosine - found.worst.score.cosine_by_chance) < 0.05
    assert found.is_kept


@pytest.mark.parametrize("samples", [1, 16])
def test_epsilon_one_is_at_most_one(samples):
    found = audit(settings_with(epsilon=1.0, samples_per_push=samples))
    assert found.worst.score.rows_read_exactly == 0
    assert 0.0 < found.evidence.epsilon_lower_bound <= 1.0


def test_what_the_coalition_computes_is_what_follows_from_the_pushes_alone():
    parts = assemble(settings_with(**OPEN))
    receiver, coalition = watch(parts.method, parts.model, parts.stream, parts.graph, 0, 0)
    assert len(receiver.masses) == len(coalition.masses) - 1
    after = coalition.steps.estimates - coalition.steps.values / coalition.masses[:, None]
    kept = float(parts.graph.mixing()[0, 0])
    inflow = np.zeros(len(after))
    inflow[1:] = coalition.masses[1:] - kept * coalition.masses[:-1]
    before = coalition.steps.estimates * coalition.masses[:, None]
    handed = before[1:] - kept * coalition.masses[:-1, None] * after[:-1]
    means = np.vstack([np.zeros((1, handed.shape[1])), handed / inflow[1:, None]])
    found = steps_between(after, coalition.masses, inflow, means)
    np.testing.assert_allclose(found.values, coalition.steps.values[1:], atol=1e-10)


def test_real_peers_without_batches_and_noise_are_read():
    found = audit(settings_with(**OPEN, nodes=2, rounds=200), "lab", canaries=100)
    score = found.worst.score
    assert score.rows == 200
    assert score.rows_read_exactly > 0.9 * score.rows


@pytest.mark.parametrize("changes", [{}, {"privacy": "none"}])
def test_real_peers_with_batches_are_not(changes):
    found = audit(settings_with(**changes, nodes=2, rounds=160), "lab", canaries=100)
    assert found.worst.score.rows_read_exactly == 0


def test_the_report_shows_the_promise_the_bound_and_what_is_not_covered():
    found = audit(settings_with(epsilon=2.0), canaries=1000)
    page = page_of(found)
    for words in ("at most <b>2</b>", "at least <b>", "not covered", "withstood", "everybody else"):
        assert words in page
    assert "<script" not in page
    assert "http" not in page


def test_all_numbers_fit_into_json():
    assert json.loads(json.dumps(audit(settings_with(), canaries=500).numbers))["rows"] == 320


@pytest.mark.parametrize(
    ("changes", "arguments", "culprit"),
    [
        ({}, {"against": "moon"}, "moon"),
        ({}, {"canaries": 3}, "canaries is 3"),
        ({"method": "local"}, {}, "local"),
        ({"nodes": 3}, {"against": "lab"}, "3 nodes"),
        ({"nodes": 2, "method": "dol-asymm"}, {"against": "lab"}, "dol-asymm"),
    ],
)
def test_what_cannot_be_audited_gets_a_sentence(changes, arguments, culprit):
    with pytest.raises(ConfigError, match=culprit):
        audit(settings_with(**changes), **arguments)
