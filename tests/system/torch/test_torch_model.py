"""A PyTorch module as a model: gradients, starts, dropout, shapes, what is refused."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError
from oneway.models import Torch
from oneway.records import Batch
from oneway.task.task import Task
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


def absolute(outputs, label):
    return (outputs[0] - label).abs()


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("loss", [*LOSSES, absolute])
def test_it_keeps_the_promises_of_a_model(loss, double):
    labels = "number" if loss is absolute else None
    made = Torch(lambda: small(LOSSES.get(loss, 1), double=double), loss, l2=1e-2, labels=labels)
    check_model(made)


@pytest.fixture
def looped(monkeypatch):
    """Makes networks differentiate one sample after the other."""
    return lambda: monkeypatch.setattr("oneway.models.torch.LARGEST_BATCHED", 0)


@pytest.mark.parametrize(("make", "shape"), [(small, None), (images, (1, 4, 4))])
def test_batched_gradients_equal_those_of_the_loop(make, shape, looped):
    width = 16 if shape else 4
    batch, model = samples(7, width), Torch(make, "cross-entropy", shape)
    stack = stack_for(model, 7, width)
    gradients, losses = model.gradients(stack, batch), model.losses(stack, batch)
    assert gradients.dtype == np.float32
    looped()
    np.testing.assert_allclose(gradients, model.gradients(stack, batch), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(losses, model.losses(stack, batch), rtol=1e-6, atol=1e-6)


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


# Starts.


def test_a_function_starts_from_the_seed_and_a_module_from_its_values():
    made = Torch(small, "cross-entropy")
    first, again, other = (made.init(4, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    module = small()
    given = Torch(module, "cross-entropy").init(4, np.random.default_rng(9))
    assert np.array_equal(given, torch.cat([it.reshape(-1) for it in module.parameters()]).detach())


def test_the_module_that_is_given_is_not_changed():
    module = small().train()
    before = copy.deepcopy(module.state_dict())
    model = Torch(module, "cross-entropy").for_samples((2, 2))
    model.gradients(stack_for(model, 3), samples(3))
    assert module.training
    assert all(it.requires_grad for it in module.parameters())
    assert all(torch.equal(before[name], it) for name, it in module.state_dict().items())


# Dropout.


@pytest.mark.parametrize("kind", ["batched", "looped", "recurrent"])
def test_dropout_differs_from_node_to_node_and_comes_back_with_its_seed(kind, looped):
    model = Torch(lambda: small(dropout=0.5), "cross-entropy")
    if kind == "recurrent":
        model = Torch(Recurrent, "squared", (2, 2), arguments={"dropout": 0.5})
    if kind == "looped":
        looped()
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
    lesson = model.learning_pass(stack, batch, np.random.default_rng(0))
    without = plain.learning_pass(stack, batch, np.random.default_rng(0))
    for it in (lesson, without):
        np.testing.assert_allclose(it.losses, plain.losses(stack, batch), rtol=1e-6)
        assert np.array_equal(it.correct, plain.correct(stack, batch))
    np.testing.assert_allclose(without.gradients, plain.gradients(stack, batch))
    assert not np.allclose(lesson.gradients, without.gradients)


# What else there is.


def hinge(outputs, label):
    """Branches on a value, which cannot be batched."""
    return 1 - label * outputs[0] if label * outputs[0] < 1 else outputs[0] * 0


def test_what_cannot_be_batched_is_looped(looped):
    batch = samples(6, kind="binary")
    models = [
        Torch(Recurrent, "logistic", (2, 2)),
        Torch(lambda: small(1), hinge, labels="binary", l2=0.0),
    ]
    stacks = [stack_for(model, 6) for model in models]
    found = [model.gradients(*it, batch) for model, *it in zip(models, stacks, strict=True)]
    margins = batch.labels * models[1].outputs(stacks[1], batch.features)[:, 0]
    np.testing.assert_allclose(
        models[1].losses(stacks[1], batch), (1 - margins) * (margins < 1), rtol=1e-5, atol=1e-6
    )
    looped()
    for model, stack, gradients in zip(models, stacks, found, strict=True):
        np.testing.assert_array_equal(model.gradients(stack, batch), gradients)


class Scaled(nn.Module):
    """Has parameters that are single numbers, one without elements, and a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.factor, self.shift = (nn.Parameter(torch.tensor(it)) for it in (0.5, 0.1))
        self.nothing = nn.Parameter(torch.zeros(0))
        self.fixed = nn.Parameter(torch.tensor(2.0), requires_grad=False)

    def forward(self, rows):
        return self.fixed * self.factor * rows.sum(1) + self.shift


@pytest.mark.parametrize("batched", [True, False])
def test_parameters_that_are_single_numbers_are_learned(batched, looped):
    if not batched:
        looped()
    model, batch = Torch(Scaled, "squared", l2=0.0), samples(5, kind="number")
    stack = np.random.default_rng(1).standard_normal((5, 2)).astype(np.float32)
    sums = batch.features.sum(1)
    errors = 2 * stack[:, 0] * sums + stack[:, 1] - batch.labels
    expected = np.column_stack([2 * errors * sums, errors])
    np.testing.assert_allclose(model.gradients(stack, batch), expected, rtol=1e-4, atol=1e-5)
    assert list(model.init(4, np.random.default_rng(0))) == pytest.approx([0.5, 0.1])


def test_it_can_be_pickled_and_copied_after_it_was_used():
    model, batch = Torch(small(), "cross-entropy"), samples(3)
    stack = stack_for(model, 3)
    expected = model.gradients(stack, batch)
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert np.array_equal(other.gradients(stack, batch), expected)


def test_nothing_imports_torch_before_a_model_is_made():
    code = (
        "import sys, oneway, oneway.models; from oneway.models import MODELS; MODELS['torch']; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ow.MissingExtraError, match=r"\.\[torch\]"):
        Torch(small)


# What is refused.


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"module": "nowhere.at_all:network"}, "nowhere.at_all:network"),
        ({"module": "oneway.models:no_such"}, "no_such"),
        ({"module": 3}, "module is 3"),
        ({"module": lambda: 3}, "returns 3"),
        ({"module": small, "arguments": {"width": 3}}, "width"),
        ({"module": lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))}, "running_mean"),
        ({"module": nn.ReLU}, "ReLU"),
        ({"module": lambda: nn.Linear(4, 3).half()}, "float16"),
        ({"module": small, "shape": (2, 2)}, r"\(2, 2\)"),
        ({"module": small, "loss": "logistic"}, "3 outputs"),
        ({"module": small, "loss": "cross-entropy", "num_classes": 7}, "need 7"),
        ({"module": small, "loss": lambda outputs, _: outputs}, "<lambda>"),
        ({"module": lambda: nn.LazyLinear(3)}, "LazyLinear"),
        ({"module": lambda: nn.Linear(4, 3, device="meta")}, "Linear"),
        ({"module": small, "loss": lambda _, label: label[7]}, "loss"),
        ({"module": small, "hash": "43-aaaaaaaa-bbbb"}, "other shapes"),
    ],
)
def test_a_module_that_cannot_be_learned_is_refused(options, culprit):
    model = Torch(**{"loss": "cross-entropy", **options})
    for _ in range(2):  # also after it was refused once
        with pytest.raises(ConfigError, match=culprit):
            model.dim(4)


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


# Shapes: found from the shape that the data has.

CONVOLUTION = "oneway.models.examples:image_network"


def flat():
    return nn.Sequential(nn.Linear(64, 10))


def flattening():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def convolution(channels: int = 1):
    parts = (nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(*parts, nn.Linear(4, 10))


def series():
    return nn.Sequential(nn.Conv1d(1, 2, 3), nn.Flatten(), nn.Linear(124, 10))


class Pooled(nn.Module):
    """Takes an image without channels for one, too: 4 numbers for each of its rows' channels."""

    def __init__(self):
        super().__init__()
        self.convolution, self.last = nn.Conv2d(1, 4, 3), nn.Linear(4, 10)

    def forward(self, rows):
        return self.last(self.convolution(rows).mean((-2, -1)))


@pytest.mark.parametrize(
    ("module", "shape", "seen"),
    [
        (convolution, (1, 8, 8), (1, 8, 8)),
        (convolution, (8, 8), (1, 8, 8)),
        (convolution, (8, 8, 1), (1, 8, 8)),
        (Pooled, (8, 8), (1, 8, 8)),
        (lambda: convolution(3), (3, 8, 8), (3, 8, 8)),
        (series, (64,), (1, 64)),
        (series, (1, 64), (1, 64)),
        (flattening, (1, 8, 8), (1, 8, 8)),
        (flat, (1, 8, 8), None),
        (flat, (64,), None),
    ],
)
def test_a_module_sees_the_array_with_channels_first_or_a_flat_row(module, shape, seen):
    model = Torch(module, "cross-entropy").for_samples(shape)
    assert model.shape == seen
    assert Torch(module, "cross-entropy", (2, 2)).for_samples(shape).shape == (2, 2)
    assert model.dim(64 * (shape[0] if len(shape) == 3 and shape[0] == 3 else 1)) > 0


@pytest.mark.parametrize(
    ("module", "shape", "culprit"),
    [(lambda: convolution(3), (8, 8, 3), "moveaxis"), (convolution, (3, 8, 8), "(3, 8, 8)")],
)
def test_a_module_that_takes_samples_in_no_shape_is_refused(module, shape, culprit):
    with pytest.raises(ConfigError) as refused:
        Torch(module, "cross-entropy").for_samples(shape)
    assert culprit in str(refused.value)


def test_a_task_made_of_arrays_has_the_shape():
    table = ow.Table.from_arrays(np.eye(64).reshape(64, 8, 8), np.arange(64) % 10, task="classes")
    task = Task.of(table, model="torch", options={"torch": {"module": CONVOLUTION}})
    assert task.options["torch"]["shape"] == [1, 8, 8]
    assert Task.parse(task.to_toml(), allow=[CONVOLUTION]).build_model().shape == (1, 8, 8)
