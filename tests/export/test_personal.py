"""A personal model to take home: it predicts as its node does."""

from __future__ import annotations

import json

import numpy as np
import pytest
from taken_models import KINDS, fitted, personal

from oneway.errors import ConfigError, DataError
from oneway.export import FittedModel, PersonalModel
from oneway.export.formats import FORMATS
from oneway.models import RidgeRegression, standardised
from oneway.personal.personal import scores_of
from oneway.tables import Encoder, Number

SHARED = [
    *(fitted(*kind) for kind in KINDS),
    FittedModel(fitted(*KINDS[3]).encoder, RidgeRegression(center=250.0, scale=8.0), np.ones(4)),
]
ROWS = [
    dict(zip(("age", "pressure", "plain"), row, strict=True))
    for row in np.random.default_rng(3).normal([45, -3, 0], [20, 1, 2], (50, 3)).tolist()
]


@pytest.mark.parametrize("shared", SHARED, ids=repr)
def test_a_prediction_is_the_answer_of_the_mixture(shared):
    """By `Personal` itself: the class of the highest probability, the sign or the scaled score."""
    taken = personal(shared)
    model, labels = shared.model, []
    for row in ROWS:
        features = shared.encoder.vector(row)[None, :]
        given = scores_of(model, shared.params[None, :], features)[:, None]
        answer = taken.personal.predict(taken.memory, given, features).answer[0]
        if taken.says_probabilities:
            assert list(taken.predict_proba_one(row).values()) == answer.tolist()
            labels.append(shared.classes[int(answer.argmax())])
        elif model.classifies:
            labels.append(shared.classes[int(answer[0] >= 0)])
        else:
            labels.append(model.center + model.scale * answer[0])
    assert taken.predict_many(ROWS) == labels
    assert labels != shared.predict_many(ROWS)
    assert taken.shared.predict_many(ROWS) == shared.predict_many(ROWS)


def test_before_the_first_sample_it_believes_those_alone_most():
    taken = personal(SHARED[0], num_samples=0)
    assert taken.weights.tolist() == pytest.approx([0.1, 0.5, 0.4])
    # The shared model takes no part yet; adapted says the same, and alone says 1/2.
    known = SHARED[0].predict_proba_one(ROWS[0])["well"]
    assert taken.predict_proba_one(ROWS[0])["well"] == pytest.approx((4 * known + 5 / 2) / 9)


def test_what_a_personal_model_cannot_be_is_refused(huber, tmp_path):
    taken = personal(SHARED[0])
    encoder = Encoder((Number("age"),), "state", "binary", ("ill", "well"))
    with pytest.raises(ConfigError, match="memory"):
        PersonalModel(encoder, taken.model, np.zeros(2), taken.memory)
    facts = json.loads(taken.save(tmp_path / "mine.json").read_bytes())
    del facts["memory"]["norms"]
    (tmp_path / "changed.json").write_text(json.dumps(facts))
    with pytest.raises(DataError, match="changed"):
        PersonalModel.load(tmp_path / "changed.json")
    with pytest.raises(ConfigError, match="hinge"):
        personal(SHARED[2]).predict_proba_one(ROWS[0])
    with pytest.raises(ConfigError, match="state dict"):
        FORMATS["state-dict"].write(taken)
    unknown = standardised(huber(), 5.0, 2.0)
    with pytest.raises(ConfigError, match="no personal predictions"):
        PersonalModel(SHARED[3].encoder, unknown, np.zeros(4), {})


def test_a_shared_model_is_written_without_anything_personal():
    """Whatever the node has learned for itself: a shared export has the parameters alone."""
    taken = personal(SHARED[0])
    for name in ("json", "onnx"):
        written = FORMATS[name].write(taken.shared)
        assert written == FORMATS[name].write(SHARED[0])
        assert b"memory" not in written
        assert b"personal" not in written
