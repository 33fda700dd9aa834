"""State dict and ONNX graph of a PyTorch module predict what the model predicts."""

from __future__ import annotations

import io

import numpy as np
import onnxruntime
import pytest

from oneway.errors import ConfigError
from oneway.export import FittedModel, PersonalModel
from oneway.export.formats import FORMATS
from oneway.export.personal import NETWORK
from oneway.models import Torch
from oneway.personal import Personal, link_of
from oneway.personal.experts import LinearExperts
from oneway.tables import Array, Category, Encoder, Feature, Number

torch = pytest.importorskip("torch", reason="the extra torch is not installed")

DIGITS = "oneway.models.examples:digits_network"
IMAGES = "oneway.models.examples:image_network"
PIXELS = Array("image", (1, 8, 8), 5.0, 6.0, missing_indicator=False)
COLUMNS = (Number("age", 40.0, 12.5), Category("place", values=("north", "south")))


def net(features: int, outputs: int = 1) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(features, 5), torch.nn.Tanh(), torch.nn.Linear(5, outputs)
    )


def taken(model: Torch, features: tuple[Feature, ...], classes: tuple[str, ...]) -> FittedModel:
    encoder = Encoder(features, "digit", model.labels, classes, "torch")
    start = model.init(encoder.width, np.random.default_rng(3)).astype(np.float64)
    return FittedModel(encoder, model, 1.5 * start)


def of_images(module: str = IMAGES, shape: tuple[int, ...] | None = (1, 8, 8)) -> FittedModel:
    model = Torch(module, "cross-entropy", shape)
    return taken(model, (PIXELS,), tuple("0123456789"))


def images(count: int = 7) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 17, (count, 1, 8, 8)).astype(np.float64)


def run_onnx(content: bytes, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [it.name for it in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


@pytest.mark.parametrize(("module", "shape"), [(IMAGES, (1, 8, 8)), (DIGITS, None)])
def test_a_state_dict_predicts_what_the_model_does(module, shape):
    from oneway.models import examples

    model = of_images(module, shape)
    own = getattr(examples, module.partition(":")[2])()
    content = io.BytesIO(FORMATS["state-dict"].write(model))
    own.load_state_dict(torch.load(content, weights_only=True))
    scaled = torch.from_numpy((images() - PIXELS.center) / PIXELS.scale).float()
    shares = torch.softmax(own.eval()(scaled), 1).detach().numpy()
    for image, row in zip(images(), shares, strict=True):
        said = model.predict_proba_one({"image": image})
        np.testing.assert_allclose(list(said.values()), row, atol=1e-6)


def test_onnxruntime_predicts_what_a_convolutional_network_does():
    model = of_images()
    found = run_onnx(FORMATS["onnx"].write(model), {"image": images()})
    said = [model.predict_proba_one({"image": image}) for image in images()]
    assert found["label"].tolist() == model.predict_many({"image": it} for it in images())
    shares = np.array([list(one.values()) for one in said])
    np.testing.assert_allclose(found["probabilities"], shares, atol=1e-5)


def test_onnxruntime_predicts_numbers_and_two_classes_from_raw_columns():
    feed = {
        "age": np.array([[30.0], [np.nan], [77.0]]),
        "place": np.array([["north"], ["elsewhere"], ["south"]], dtype=object),
    }
    rows = [dict(zip(feed, (a[0], p[0]), strict=True)) for a, p in zip(*feed.values(), strict=True)]
    width = Encoder(COLUMNS, "y", "number", ()).width
    numbers = Torch(net(width), "squared", labels="number", center=200.0, scale=30.0)
    two = Torch(net(width).double(), "logistic")
    for model, classes in ((numbers, ()), (two, ("no", "yes"))):
        mine = taken(model, COLUMNS, classes)
        found = run_onnx(FORMATS["onnx"].write(mine), feed)
        if classes:
            assert found["label"].tolist() == mine.predict_many(rows)
            shares = [list(mine.predict_proba_one(row).values()) for row in rows]
            np.testing.assert_allclose(found["probabilities"], shares, atol=1e-5)
        else:
            np.testing.assert_allclose(found["label"], mine.predict_many(rows), rtol=1e-5)


def test_a_module_that_onnx_cannot_say_is_refused():
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(64, 10)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.layer(rows) if rows.sum() > 0 else -self.layer(rows)  # looks at values

    model = taken(Torch(Odd(), "cross-entropy"), (PIXELS,), tuple("0123456789"))
    with pytest.raises(ConfigError, match="Odd"):
        FORMATS["onnx"].write(model)


@pytest.mark.parametrize("has_network", [True, False])
def test_a_personal_model_of_a_module_is_written_as_onnx_and_not_as_a_state_dict(
    has_network, tmp_path
):
    """With a network that was learned alone beside it, or without one."""
    shared = taken(Torch(net(4), "logistic"), COLUMNS, ("no", "yes"))
    link = link_of(shared.model)
    experts = Personal(link, LinearExperts(link, 4, ("adapted",), np.zeros(1)), network_alone=True)
    memory = experts.begin(1)
    memory["params"] = memory["params"] + 0.3
    if has_network:
        memory[NETWORK] = -shared.params[None, :]
    model = PersonalModel(shared.encoder, shared.model, shared.params, memory)
    rows = [{"age": age, "place": "north"} for age in (20.0, 45.0, 80.0)]
    wanted = [list(model.predict_proba_one(row).values()) for row in rows]
    feed = {"age": np.array([[20.0], [45.0], [80.0]]), "place": np.array([["north"]] * 3, object)}
    found = run_onnx(FORMATS["onnx"].write(model), feed)
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=0, atol=1e-6)
    assert found["label"].tolist() == model.predict_many(rows)
    with pytest.raises(ConfigError, match="state dict"):
        model.save(tmp_path / "mine.pt")
