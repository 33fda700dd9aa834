"""A peer as a learner of river."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from plain import PLAIN_TOML
from river import checks, evaluate, metrics

import oneway as ow
from oneway.errors import ConfigError, MissingExtraError
from oneway.peer.home.free_address import free_address
from oneway.peer.home.home import Home


def peer_with(folder: Path, keys: str) -> ow.Peer:
    (folder / "task.toml").write_text(
        f'{PLAIN_TOML}label = "y"\nlearning_rate = 0.3\n{keys}\n[features]\na = {{}}\nb = {{}}\n'
    )
    home = Home.create(folder / "alice", "alice", folder / "task.toml", free_address(folder))
    return ow.Peer(home.folder)


@pytest.fixture
def classifier(tmp_path: Path) -> Iterator[ow.RiverClassifier]:
    with peer_with(tmp_path, 'classes = ["false", "true"]\nmodel = "logistic"') as peer:
        yield ow.RiverClassifier(peer)


@pytest.fixture
def regressor(tmp_path: Path) -> Iterator[ow.RiverRegressor]:
    with peer_with(tmp_path, 'model = "ridge"') as peer:
        yield ow.RiverRegressor(peer)


def samples(count: int) -> Iterator[tuple[dict[str, float], float]]:
    rng = np.random.default_rng(0)
    for row in rng.standard_normal((count, 2)):
        yield dict(zip("ab", row.tolist(), strict=True)), row[0] + 0.3 * row[1]


def test_a_classifier_learns_and_predicts_through_its_peer(classifier):
    labelled = ((x, y > 0) for x, y in samples(300))
    score = evaluate.progressive_val_score(labelled, classifier, metrics.Accuracy()).get()
    assert score > 0.85
    assert classifier.peer.status().samples == 300
    assert classifier.predict_one({"a": 2.0, "b": 0.0}) is True
    assert classifier.clone().peer is classifier.peer
    checks.common.check_repr(classifier)
    with pytest.raises(ConfigError, match="RiverClassifier"):
        ow.RiverRegressor(classifier.peer)


def test_a_regressor_learns_and_predicts_through_its_peer(regressor):
    evaluate.progressive_val_score(samples(300), regressor, metrics.MAE())
    assert regressor.predict_one({"a": 1.0, "b": 0.0}) == pytest.approx(1.0, abs=0.05)


def test_without_river_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "oneway.estimators.river", raising=False)
    with pytest.raises(MissingExtraError, match=r"\.\[river\]"):
        _ = ow.RiverClassifier
    assert ow.OnewayClassifier is not None
