"""PyTorch modules and losses that are no function of one sample: looped over, or refused."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oneway as ow
from oneway.errors import ConfigError
from oneway.models import Torch
from oneway.records import Batch

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
nn = torch.nn


def linear():
    return nn.Linear(4, 1)


class With(nn.Module):
    """A linear layer of what a function makes of layer and rows."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function, self.layer = function, nn.Linear(4, 1)
        self.calls = 0

    def forward(self, rows):
        self.calls += 1
        return self.function(self, rows)


class Scaled(nn.Module):
    """Has parameters that are single numbers, one without elements, and a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.factor, self.shift = (nn.Parameter(torch.tensor(it)) for it in (0.5, 0.1))
        self.nothing = nn.Parameter(torch.zeros(0))
        self.fixed = nn.Parameter(torch.tensor(2.0), requires_grad=False)

    def forward(self, rows):
        return self.fixed * self.factor * rows.sum(1) + self.shift


def samples(rows: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1.0, 1.0], rows).astype(np.float32)
    return Batch(rng.standard_normal((rows, 4)).astype(np.float32), labels)


@pytest.mark.parametrize("backend", ["loop", "vmap"])
def test_parameters_that_are_single_numbers_are_learned(backend):
    model, batch = Torch(Scaled, "squared", l2=0.0, backend=backend), samples(5)
    stack = np.random.default_rng(1).standard_normal((5, 2)).astype(np.float32)
    sums = batch.features.sum(1)
    errors = 2 * stack[:, 0] * sums + stack[:, 1] - batch.labels
    expected = np.column_stack([2 * errors * sums, errors])
    np.testing.assert_allclose(model.gradients(stack, batch), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.losses(stack, batch), errors**2 / 2, rtol=1e-4)
    assert list(model.init(4, np.random.default_rng(0))) == pytest.approx([0.5, 0.1])


# Losses.


def perceptron(outputs, label):
    """With a branch on a value, of which one side is a constant."""
    margin = label * outputs[0]
    return torch.zeros(()) if margin.item() >= 0 else -margin


def hinge(outputs, label):
    return 1 - label * outputs[0] if label * outputs[0] < 1 else outputs[0] * 0


BRANCHING = {perceptron: lambda m: -m * (m < 0), hinge: lambda m: (1 - m) * (m < 1)}


@pytest.mark.parametrize("loss", BRANCHING)
def test_a_loss_that_branches_on_a_value_is_looped_over(loss):
    model = Torch(linear, loss, labels="binary", l2=0.0)
    batch, start = samples(6), model.init(4, np.random.default_rng(0))
    stack = np.tile(start, (6, 1))
    margins = batch.labels * (batch.features @ start[:4] + start[4])
    expected = BRANCHING[loss](margins)
    assert 0 < (expected > 0).sum() < 6
    np.testing.assert_allclose(model.losses(stack, batch), expected, rtol=1e-5, atol=1e-6)
    slopes = -1.0 * (expected > 0) * batch.labels
    rows = np.column_stack([batch.features, np.ones(6)])
    np.testing.assert_allclose(model.gradients(stack, batch), slopes[:, None] * rows, rtol=1e-5)
    np.testing.assert_allclose(
        model.gradient(start, batch), (slopes[:, None] * rows).mean(0), rtol=1e-5, atol=1e-6
    )
    right = Batch(batch.features, np.sign(batch.features @ start[:4] + start[4]))
    if loss is perceptron:
        assert not model.gradient(start, right).any()
    for backend in ("vmap", "compile"):
        with pytest.raises(ConfigError, match=f"{loss.__name__}.*loop"):
            Torch(linear, loss, labels="binary", backend=backend).dim(4)


def test_a_loss_that_branches_is_learned_in_a_simulation():
    stream = ow.streams.synthetic(num_samples=40, num_features=4, seed=1).table.deal(num_nodes=4)
    graph = ow.TrustGraph.random(num_nodes=4, max_receivers=2, seed=1)
    runs = [
        ow.simulate(ow.Relay(0.1), Torch(linear, hinge, backend=it), stream, graph, progress=False)
        for it in ("auto", "loop")
    ]
    assert np.array_equal(runs[0].numerators, runs[1].numerators)


def test_a_loss_that_warns_is_batched():
    def warned(outputs, label):
        warnings.warn("as nn.functional.mse_loss does of shapes", UserWarning, stacklevel=2)
        return (outputs[0] - label) ** 2

    with pytest.warns(UserWarning, match="mse_loss"):
        Torch(linear, warned, labels="number", backend="vmap").dim(4)


def test_a_loss_in_float64_has_a_mean_gradient():
    model, batch = Torch(linear, lambda o, y: (o[0].double() - y) ** 2, labels="number"), samples(3)
    params = model.init(4, np.random.default_rng(0))
    each = model.gradients(np.tile(params, (3, 1)), batch)
    np.testing.assert_allclose(model.gradient(params, batch), each.mean(axis=0), rtol=1e-4)


@pytest.mark.parametrize("backend", ["auto", "loop"])
@pytest.mark.parametrize(
    ("loss", "culprit"),
    [
        (lambda o, y: (o - y).detach().pow(2).sum(), "gradient"),
        (lambda *_: torch.tensor(1.0), "gradient"),
        (lambda *_: torch.tensor(1.0, requires_grad=True), "gradient"),
        (lambda o, y: torch.tensor((o - y).sum().item(), requires_grad=True), "gradient"),
        (lambda o, y: (o - y).sum().long(), "int64"),
        (lambda o, _: o.sum() > 0, "bool"),
        (lambda o, _: o.sum() * (1 + 1j), "complex64"),
        (lambda o, _: (o * torch.randn(1)).sum(), "random"),
        (lambda o, y: (o * torch.randn(1)).sum() if y.item() else o, "random"),
        (lambda o, y: o.sum() if y > 0 else o, r"shape \(1,\)"),
    ],
)
def test_a_loss_that_nothing_could_be_learned_from_is_refused(loss, culprit, backend):
    with pytest.raises(ConfigError, match=f"loss <lambda>.*{culprit}"):
        Torch(linear, loss, labels="binary", backend=backend).dim(4)


# Modules.


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        (lambda: nn.LazyLinear(1), r"LazyLinear.*weight"),
        (lambda: nn.Sequential(nn.LazyBatchNorm1d(), linear()), r"Sequential.*0\.weight"),
        (lambda: nn.Linear(4, 1, device="meta"), "weight.*cpu|meta.*weight"),
        (lambda: torch.jit.script(linear()), "torch.jit"),
        (lambda: nn.Sequential(torch.jit.script(linear())), "part 0 of module Sequential"),
        (lambda: nn.utils.weight_norm(linear()), "weight.*parametrizations"),
        (lambda: nn.Sequential(nn.utils.weight_norm(linear())), "part 0 of module Sequential"),
    ],
)
def test_a_module_that_cannot_be_called_with_other_parameters_is_refused(make, culprit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, that they are old or new
        for asked in (
            lambda it: it.dim(4),
            lambda it: it.init(4, np.random.default_rng(0)),
            lambda it: it.dtype,
            lambda it: it.fingerprint,
        ):
            with pytest.raises(ConfigError, match=culprit):
                asked(Torch(make, "logistic"))


@pytest.mark.parametrize(
    ("function", "culprit"),
    [
        (lambda it, x: it.layer(x - x.mean(0)), "other samples"),
        (lambda it, x: torch.softmax(it.layer(x), 0), "other samples"),
        (lambda it, x: it.layer(x).cumsum(0), "other samples"),
        (lambda it, x: it.layer(x.flip(0)), "other samples"),
        (lambda it, x: it.layer(x) * it.calls, "called again"),
        (lambda it, x: it.layer(nn.functional.dropout(x)), "called again"),
        (lambda it, x: it.layer(x.reshape(1, 4)), "two samples"),
    ],
)
@pytest.mark.parametrize("start", [0.0, 0.3])
def test_a_module_whose_output_is_not_of_its_sample_alone_is_refused(function, culprit, start):
    module = With(function)
    nn.init.constant_(module.layer.weight, start)  # at 0 it gives the same for all
    with pytest.raises(ConfigError, match=f"module With .*{culprit}"):
        Torch(module, "logistic").dim(4)


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(0, 2), st.booleans(), st.floats(-6, 6))
def test_no_network_of_single_samples_is_refused(width, hidden, double, log_size):
    layers = [nn.Linear(4, width), nn.LayerNorm(width), nn.Dropout(0.5)]
    for _ in range(hidden):
        layers += [nn.Linear(width, width), nn.GroupNorm(1, width), nn.ReLU()]
    module = nn.Sequential(*layers, nn.Linear(width, 1))
    nn.init.normal_(module[-1].weight, std=10.0**log_size)
    assert Torch(module.double() if double else module, "logistic").dim(4) > 0


def test_codes_that_an_embedding_takes_are_no_reason_to_refuse_it():
    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.codes = nn.Embedding(1, 1)

        def forward(self, rows):
            assert not rows.any(), "of all codes there is only 0"
            return self.codes(rows.long()).sum(1)

    assert Torch(Embedded, "logistic").dim(4) == 1
