"""Torch models in the simulator: the convex case is logistic regression, float32 stays float32."""

from __future__ import annotations

import numpy as np
import pytest

import oneway as ow
from oneway.errors import DivergenceError
from oneway.methods import METHODS, Batches, Method, State
from oneway.methods.transforms import AdaGrad, Clip, Momentum, Restart
from oneway.models import LogisticRegression, Torch

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
nn = torch.nn

NODES, ROUNDS, WIDTH = 9, 60, 5
GRAPH = ow.TrustGraph.random(NODES, max_receivers=3, seed=2)


def linear(double: bool = True):
    """Logistic regression as a module: starts from zeros, as that does."""
    module = nn.Linear(WIDTH, 1)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    return module.double() if double else module


def network(outputs: int = 1, dropout: float = 0.0):
    return nn.Sequential(nn.Linear(WIDTH, 6), nn.Tanh(), nn.Dropout(dropout), nn.Linear(6, outputs))


def stream(holes: float = 0.0, seed: int = 0, classes: int = 2) -> ow.Stream:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((ROUNDS, NODES, WIDTH)).astype(np.float32)
    scores = features @ rng.standard_normal((WIDTH, classes))
    labels = scores.argmax(axis=2).astype(np.float32)
    dealt = ow.Stream.from_arrays(features, 2 * labels - 1 if classes == 2 else labels)
    rows = np.where(rng.random(dealt.rows.shape) < holes, -1, dealt.rows)
    return ow.Stream(dealt.features, dealt.labels, rows)


METHODS_TO_TRY = {
    "ops": ow.OnlinePushSum(0.3),
    "relay": METHODS["relay"](0.3),
    "tracking": METHODS["tracking"](0.3),
    "pull": METHODS["pull"](0.3, mixes=2),
    "col": METHODS["col"](0.3),
    "local": METHODS["local"](0.3),
    "transforms": ow.OnlinePushSum(0.3, "mass", (Clip(0.5), Momentum(), AdaGrad(), Restart())),
    "private": ow.OnlinePushSum(0.1, batches=Batches(3, 1.0, 0.7, band=3)),
    "private relay": METHODS["relay"](0.1, batches=Batches(3, 1.0, 0.7)),
}


@pytest.mark.parametrize("name", METHODS_TO_TRY)
def test_a_linear_module_is_logistic_regression(name):
    method, data = METHODS_TO_TRY[name], stream(0.0 if name == "ops" else 0.4)
    found = ow.simulate(method, Torch(linear, l2=1e-3), data, GRAPH)
    expected = ow.simulate(method, LogisticRegression(l2=1e-3), data, GRAPH, engine="reference")
    np.testing.assert_allclose(found.estimates, expected.estimates, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-6)
    assert found.accuracy == expected.accuracy


@pytest.mark.parametrize(
    ("rate", "conditions"), [(0.3, ow.Conditions(rate=1.0, liars=0.1)), ("auto", None)]
)
@pytest.mark.parametrize("name", METHODS_TO_TRY)
def test_float32_stays_float32_and_mass_float64(name, rate, conditions, monkeypatch):
    kinds = set()
    learn = Method.learn

    def watched(self, state: State, *rest) -> State:
        after = learn(self, state, *rest)
        for part in (after.segments, after.memory):
            wide = [it for it in part.values() if it.shape[1] >= WIDTH + 1 and it.shape[1] != 8]
            kinds.update(it.dtype for it in wide)
        return after

    monkeypatch.setattr(Method, "learn", watched)
    method = METHODS_TO_TRY[name]
    method = type(method)(
        rate, method.step, method.transforms, batches=method.batches, mixes=method.mixes
    )
    conditions = None if name == "col" else conditions  # it has a server
    model = Torch(lambda: linear(False))
    run = ow.simulate(method, model, stream(0.3), GRAPH, conditions=conditions)
    assert kinds == {np.dtype(np.float32)}
    assert run.numerators.dtype == run.estimates.dtype == np.float32
    assert run.masses.dtype == np.float64


def test_a_network_learns_together_what_is_not_linear():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((700, NODES, WIDTH)).astype(np.float32)
    labels = np.sign(features[..., 0] * features[..., 1])
    data = ow.Stream.from_arrays(features, labels)
    runs = {
        name: ow.simulate(ow.OnlinePushSum(0.5), model, data, GRAPH)
        for name, model in {
            "network": Torch(lambda: nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))),
            "linear": LogisticRegression(),
        }.items()
    }
    late = {name: run.losses[-150:].mean() for name, run in runs.items()}
    assert late["network"] < 0.6 < 0.68 < late["linear"]


class Rooted(nn.Module):
    """Has no gradient where the first feature is 0, and not even an output where it is below."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.last = nn.Parameter(torch.ones(1)), nn.Linear(WIDTH, 1)

    def forward(self, rows):
        return torch.sqrt(rows[:, :1] * self.scale) + self.last(rows)


def stream_with(bad: float, rows: list[int]) -> ow.Stream:
    data = stream()
    features = np.abs(data.features) + 0.5
    features[rows, 0] = bad
    return ow.Stream(features=features, labels=data.labels, rows=data.rows)


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_a_sample_without_a_gradient_is_skipped_and_counted(bad, noise, tmp_path):
    data = stream_with(bad, [3, 10 * NODES + 3])
    batches = Batches(2, 1.0, noise) if noise else None
    method = ow.OnlinePushSum(1e-3, batches=batches)
    run = ow.simulate(method, Torch(Rooted, l2=0.0), data, GRAPH, measure=True)
    assert run.skipped == 2
    assert run.record.skipped_counts[10] == 1
    assert np.isfinite(run.estimates).all()
    assert np.isfinite(run.losses).all()
    assert "2 samples skipped" in repr(run)
    assert run.record.sample_counts[10] == (NODES - 1 if bad < 0 else NODES)
    run.save(tmp_path / "run")
    assert ow.Run.load(tmp_path / "run").skipped == 2


@pytest.mark.parametrize(("rate", "remedy"), [(0.01, "smaller learning rate"), ("auto", "scale")])
def test_a_loss_that_never_has_a_gradient_is_named_and_not_the_rate_alone(rate, remedy):
    lost = Torch(network, lambda outputs, _: outputs.sum() * float("nan"), labels="binary")
    with pytest.raises(DivergenceError, match=f"no finite gradient.*{remedy}") as told:
        ow.simulate(ow.OnlinePushSum(rate), lost, stream(), GRAPH)
    assert (told.value.round_index, told.value.node) == (9, 0)
