"""A PyTorch module as a model: gradients, starts, dropout, what is refused."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError, DataError
from oneway.models import HasCurvature, HasProbabilities, Torch
from oneway.records import Batch
from oneway.testing import check_model

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
nn = torch.nn


def small(outputs: int = 3, dropout: float = 0.0, double: bool = False):
    """A network for rows of four numbers."""
    layers = [nn.Linear(4, 5), nn.Tanh(), nn.Dropout(dropout), nn.Linear(5, outputs)]
    module = nn.Sequential(*layers if dropout else [layers[0], layers[1], layers[3]])
    return module.double() if double else module


def images():
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.GroupNorm(3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)
    )


class Recurrent(nn.Module):
    """Cannot be batched over nodes by vmap."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.cell = nn.LSTM(2, 3, num_layers=2, dropout=dropout, batch_first=True)
        self.last = nn.Linear(3, 1)

    def forward(self, rows):
        return self.last(self.cell(rows)[0][:, -1])


def samples(rows: int, width: int = 4, kind: str = "classes", seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    labels = {
        "classes": rng.integers(0, 3, rows),
        "binary": rng.choice([-1.0, 1.0], rows),
        "number": rng.standard_normal(rows),
    }[kind]
    return Batch(rng.standard_normal((rows, width)).astype(np.float32), labels.astype(np.float32))


def stack_for(model: Torch, rows: int, width: int = 4, spread: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(1)
    start = model.init(width, rng)
    return start + spread * rng.standard_normal((rows, len(start))).astype(start.dtype)


LOSSES = {"logistic": 1, "cross-entropy": 3, "squared": 1}


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_keeps_the_promises_of_a_model(loss, double):
    check_model(Torch(lambda: small(LOSSES[loss], double=double), loss, l2=1e-2))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.compile's own
@pytest.mark.parametrize("backend", ["vmap", "compile"])
@pytest.mark.parametrize(("make", "shape"), [(small, None), (images, (1, 4, 4))])
def test_gradients_of_all_backends_equal_those_of_the_loop(backend, make, shape):
    width = 16 if shape else 4
    batch = samples(7, width)
    loop = Torch(make, "cross-entropy", shape, backend="loop")
    other = Torch(make, "cross-entropy", shape, backend=backend)
    stack = stack_for(loop, 7, width)
    expected, found = (model.gradients(stack, batch) for model in (loop, other))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        other.losses(stack, batch), loop.losses(stack, batch), rtol=1e-6, atol=1e-6
    )


def test_a_literal_backward_pass_gives_the_same_gradient():
    model, batch = Torch(small, "cross-entropy", l2=0.1), samples(5)
    stack = stack_for(model, 5)
    found = model.gradients(stack, batch)
    for row in range(5):
        module = small()
        torch.nn.utils.vector_to_parameters(torch.from_numpy(stack[row]), module.parameters())
        outputs = module(torch.from_numpy(batch.features[row : row + 1]))
        label = torch.from_numpy(batch.labels[row : row + 1]).long()
        nn.functional.cross_entropy(outputs, label).backward()
        grads = [it.grad for it in module.parameters()]
        parts = torch.nn.utils.parameters_to_vector(grads).numpy()
        np.testing.assert_allclose(found[row], parts + 0.1 * stack[row], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_mean_gradient_is_the_mean_of_the_gradients(loss):
    model = Torch(lambda: small(LOSSES[loss], double=True), loss)
    batch = samples(6, kind=model.labels)
    params = stack_for(model, 1)[0]
    each = model.gradients(np.tile(params, (6, 1)), batch)
    np.testing.assert_allclose(model.gradient(params, batch), each.mean(axis=0), atol=1e-12)
    counts = np.arange(6.0)
    weighted = counts @ each / counts.sum()
    np.testing.assert_allclose(model.gradient(params, batch, counts), weighted, atol=1e-12)


def test_a_loss_of_ones_own_is_a_function_of_outputs_and_label():
    def absolute(outputs, label):
        return (outputs[0] - label).abs()

    model = Torch(lambda: small(1, double=True), absolute, l2=0.0, labels="number")
    batch, params = samples(6, kind="number"), stack_for(model, 1)[0]
    expected = np.abs(model.predict(params, batch.features) - batch.labels)
    np.testing.assert_allclose(model.losses(params, batch), expected, rtol=1e-12)
    check_model(model)


def test_classes_reach_a_function_as_whole_numbers():
    model = Torch(small, nn.functional.cross_entropy, labels="classes", l2=0.0)
    named = Torch(small, "cross-entropy", l2=0.0)
    batch = samples(6)
    stack = stack_for(model, 6)
    np.testing.assert_allclose(model.losses(stack, batch), named.losses(stack, batch), rtol=1e-5)
    assert not isinstance(model, HasProbabilities)
    assert model.answers(stack, batch.features).probabilities is None


def test_a_function_that_takes_classes_only_is_told_that_labels_are_classes():
    labels = np.array([0.0, 2.0, 1.0])
    model = Torch(small, nn.functional.cross_entropy).told(4, labels)
    assert isinstance(model, Torch)
    assert (model.labels, model.dim(4)) == ("classes", Torch(small).dim(4))
    with pytest.raises(ConfigError, match="loss"):
        Torch(small, lambda outputs, _: outputs).told(4, labels).dim(4)


def test_probabilities_belong_to_losses_of_probabilities():
    having = {
        loss: isinstance(Torch(lambda loss=loss: small(LOSSES[loss]), loss), HasProbabilities)
        for loss in LOSSES
    }
    assert having == {"logistic": True, "cross-entropy": True, "squared": False}
    assert not isinstance(Torch(small, "cross-entropy"), HasCurvature)


@pytest.mark.parametrize("loss", ["logistic", "cross-entropy"])
def test_answers_to_a_batch_are_those_to_its_rows(loss):
    model = Torch(lambda: small(LOSSES[loss]), loss)
    rows = samples(6).features
    stack = stack_for(model, 6)
    found = model.answers(stack, rows)
    for row in range(6):
        chances = model.probabilities(stack[row], rows[row : row + 1])
        np.testing.assert_allclose(found.probabilities[row], chances[0], atol=1e-6)
        assert found.predicted[row] == model.predict(stack[row], rows[row : row + 1])[0]


def test_numbers_are_learned_in_units_of_center_and_scale():
    plain, scaled = (
        Torch(lambda: small(1), "squared", center=c, scale=s) for c, s in [(0, 1), (5, 2)]
    )
    batch = samples(4, kind="number")
    stack = stack_for(plain, 4)
    shifted = Batch(batch.features, 5 + 2 * batch.labels)
    np.testing.assert_allclose(
        scaled.losses(stack, shifted), plain.losses(stack, batch), rtol=1e-5, atol=1e-6
    )
    expected = 5 + 2 * plain.predict(stack[0], batch.features)
    np.testing.assert_allclose(scaled.predict(stack[0], batch.features), expected)


# Starts.


def test_a_function_starts_from_the_seed_and_a_module_from_its_values():
    made = Torch(small, "cross-entropy")
    first, again, other = (made.init(4, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    module = small()
    given = Torch(module, "cross-entropy").init(4, np.random.default_rng(9))
    assert np.array_equal(given, torch.cat([it.reshape(-1) for it in module.parameters()]).detach())


def test_a_start_leaves_the_generators_of_numpy_and_torch_as_they_were():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    rng = np.random.default_rng(1)
    Torch(small, "cross-entropy").init(4, rng)
    assert torch.equal(torch.rand(3), expected)
    assert rng.standard_normal() == np.random.default_rng(1).standard_normal()


def test_parameters_without_a_gradient_are_constants():
    module = small()
    module[0].requires_grad_(False)
    model = Torch(module, "cross-entropy")
    assert model.dim(4) == 5 * 3 + 3
    stack = stack_for(model, 3)
    assert np.isfinite(model.gradients(stack, samples(3))).all()


def test_the_module_that_is_given_is_not_changed():
    module = small().train()
    before = copy.deepcopy(module.state_dict())
    model = Torch(module, "cross-entropy")
    model.gradients(stack_for(model, 3), samples(3))
    assert module.training
    assert all(it.requires_grad for it in module.parameters())
    assert all(torch.equal(before[name], it) for name, it in module.state_dict().items())


def test_the_number_of_threads_is_as_before_after_every_call():
    before = torch.get_num_threads()
    seen = []

    def watched(outputs, label):
        seen.append(torch.get_num_threads())
        return (outputs[0] - label) ** 2

    model = Torch(lambda: small(1), watched, labels="number")
    model.gradients(stack_for(model, 1), samples(1, kind="number"))
    assert torch.get_num_threads() == before
    assert set(seen[1:]) == {1}


# Dropout.


@pytest.mark.parametrize("backend", ["loop", "vmap"])
def test_dropout_differs_from_node_to_node_and_comes_back_with_its_seed(backend):
    model = Torch(lambda: small(dropout=0.5), "cross-entropy", backend=backend)
    one = samples(1)
    batch = Batch(np.repeat(one.features, 8, 0), np.repeat(one.labels, 8))
    stack = np.tile(model.init(4, np.random.default_rng(0)), (8, 1))
    first, again, other = (
        model.drawn_gradients(stack, batch, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first, axis=0)) > 1
    plain = model.gradients(stack, batch)
    assert len(np.unique(plain, axis=0)) == 1


def test_predictions_and_losses_are_without_dropout():
    model, plain = (
        Torch(lambda dropout=dropout: small(dropout=dropout), "cross-entropy")
        for dropout in (0.5, 0.0)
    )
    batch = samples(6)
    stack = stack_for(model, 6)
    lesson = model.lesson(stack, batch, np.random.default_rng(0))
    np.testing.assert_allclose(lesson.losses, plain.losses(stack, batch), rtol=1e-6)
    assert np.array_equal(lesson.correct, plain.correct(stack, batch))
    assert not np.allclose(lesson.gradients, plain.gradients(stack, batch))


def test_a_lesson_is_what_three_methods_say():
    model, batch = Torch(small, "cross-entropy"), samples(6)
    stack = stack_for(model, 6)
    lesson = model.lesson(stack, batch, np.random.default_rng(0))
    np.testing.assert_allclose(lesson.losses, model.losses(stack, batch), rtol=1e-6)
    np.testing.assert_allclose(lesson.gradients, model.gradients(stack, batch))
    assert np.array_equal(lesson.correct, model.correct(stack, batch))


def test_dropout_of_what_cannot_be_batched_is_found_too():
    model = Torch(Recurrent, "squared", (2, 2), arguments={"dropout": 0.5})
    batch, stack = samples(3, kind="number"), stack_for(model, 3)
    drawn = [model.drawn_gradients(stack, batch, np.random.default_rng(s)) for s in (1, 1, 2)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


# What else there is.


def test_what_cannot_be_batched_is_looped():
    model = Torch(Recurrent, "squared", (2, 2))
    batch = samples(3, kind="number")
    stack = stack_for(model, 3)
    looped = Torch(Recurrent, "squared", (2, 2), backend="loop")
    np.testing.assert_allclose(model.gradients(stack, batch), looped.gradients(stack, batch))
    with pytest.raises(ConfigError, match="Recurrent"):
        Torch(Recurrent, "squared", (2, 2), backend="vmap").gradients(stack, batch)


def test_it_can_be_pickled_and_copied_after_it_was_used():
    model = Torch(small(), "cross-entropy")
    batch = samples(3)
    stack = stack_for(model, 3)
    expected = model.gradients(stack, batch)
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert np.array_equal(other.gradients(stack, batch), expected)
        assert isinstance(other, HasProbabilities)


def test_it_describes_itself_in_terms_json_can_hold():
    import json

    said = Torch(small, "cross-entropy", l2=0.5, arguments={"outputs": 4}).describe()
    assert json.loads(json.dumps(said)) == said
    assert said["parameters"] == 4 * 5 + 5 + 5 * 4 + 4
    assert said["module"].endswith(":small")
    assert said["arguments"] == {"outputs": 4}


def test_nothing_imports_torch_before_a_model_is_made():
    code = (
        "import sys, oneway, oneway.models; from oneway.models import MODELS; MODELS['torch']; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ow.MissingExtraError, match=r"oneway\[torch\]"):
        Torch(small)


# What is refused.


def test_buffers_are_refused_with_what_to_use_instead():
    model = Torch(lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), "cross-entropy")
    with pytest.raises(ConfigError, match=r"running_mean.*GroupNorm.*LayerNorm"):
        model.dim(4)


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"module": "nowhere.at_all:network"}, "nowhere.at_all:network"),
        ({"module": "oneway.models:no_such"}, "no_such"),
        ({"module": "oneway.models"}, "package.module:function"),
        ({"module": 3}, "module is 3"),
        ({"module": lambda: 3}, "returns 3"),
        ({"module": small, "arguments": {"width": 3}}, "width"),
        ({"module": lambda: nn.ReLU()}, "ReLU"),
        ({"module": lambda: nn.Linear(4, 3).half()}, "float16"),
        ({"module": small, "shape": (3, 3)}, r"\(3, 3\)"),
        ({"module": small, "shape": (2, 2)}, r"\(2, 2\)"),
        ({"module": small, "loss": "logistic"}, "3 outputs"),
        ({"module": small, "loss": "cross-entropy", "num_classes": 7}, "7 classes"),
        ({"module": lambda: small(1), "loss": "cross-entropy"}, "1 outputs"),
        ({"module": small, "device": "cuda:99"}, "cuda:99"),
        ({"module": small, "device": "moon"}, "moon"),
        ({"module": small, "device": "meta"}, "meta"),
        ({"module": small, "loss": lambda outputs, _: outputs}, r"shape \(3,\)"),
        ({"module": small, "loss": lambda *_: 1.0}, "1.0"),
        ({"module": small, "loss": lambda _, label: label[7]}, "loss"),
        ({"module": small, "hash": "43-aaaaaaaa-bbbb"}, "other shapes"),
    ],
)
def test_a_module_that_cannot_be_learned_is_refused(options, culprit):
    with pytest.raises(ConfigError, match=culprit):
        Torch(**{"loss": "cross-entropy", **options}).dim(4)


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"loss": "hinge"}, "hinge"),
        ({"loss": 3}, "loss"),
        ({"loss": "logistic", "labels": "number"}, "labels"),
        ({"labels": "words"}, "words"),
        ({"backend": "warp"}, "warp"),
        ({"shape": ()}, "shape"),
        ({"shape": (0, 2)}, "shape"),
        ({"threads": 0}, "threads"),
        ({"l2": -1.0}, "l2"),
        ({"scale": 0.0}, "scale"),
        ({"arguments": "x"}, "arguments"),
        ({"arguments": [["width", 3]]}, "arguments"),
        ({"hash": 5}, "hash"),
    ],
)
def test_options_that_break_their_rule_are_refused(options, culprit):
    with pytest.raises(ConfigError, match=culprit):
        Torch(small, **options)


def test_a_missing_cuda_device_is_refused():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    with pytest.raises(ConfigError, match="cuda"):
        Torch(small, "cross-entropy", device="cuda").dim(4)


def test_classes_beyond_the_outputs_are_refused():
    model = Torch(small, "cross-entropy")
    model.dim(4)
    model.check_labels(np.array([0.0, 2.0]))
    with pytest.raises(DataError, match="label 3"):
        model.check_labels(np.array([0.0, 3.0]))


def test_a_fingerprint_is_of_shapes_and_first_values():
    prints = {
        name: Torch(make, "cross-entropy").fingerprint
        for name, make in {"a": small, "again": small, "wider": lambda: small(4)}.items()
    }
    assert prints["a"] == prints["again"] != prints["wider"]
    smooth, edged = (
        lambda it=it: nn.Sequential(nn.Linear(4, 3), it()) for it in (nn.Tanh, nn.ReLU)
    )
    assert Torch(smooth).fingerprint != Torch(edged).fingerprint
    Torch(small, "cross-entropy", hash=prints["a"]).dim(4)

    def shifted():
        module = small()
        nn.init.ones_(module[0].bias)
        return module

    with pytest.raises(ConfigError, match="other values"):
        Torch(shifted, "cross-entropy", hash=prints["a"]).dim(4)
