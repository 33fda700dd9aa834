"""The shape in which a module takes samples is found from the shape that the data has."""

from __future__ import annotations

import numpy as np
import pytest

import oneway as ow
from oneway.errors import ConfigError
from oneway.models import Torch
from oneway.task.task import Task

torch = pytest.importorskip("torch", reason="the extra torch is not installed")
nn = torch.nn

CONVOLUTION = "oneway.models.examples:image_network"


def flat():
    return nn.Sequential(nn.Linear(64, 10))


def flattening():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def image(channels: int = 1):
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
        (image, (1, 8, 8), (1, 8, 8)),
        (image, (8, 8), (1, 8, 8)),
        (image, (8, 8, 1), (1, 8, 8)),
        (Pooled, (8, 8), (1, 8, 8)),
        (lambda: image(3), (3, 8, 8), (3, 8, 8)),
        (lambda: image(7), (7, 8, 8), (7, 8, 8)),
        (series, (64,), (1, 64)),
        (series, (1, 64), (1, 64)),
        (flattening, (1, 8, 8), (1, 8, 8)),
        (flat, (1, 8, 8), None),
        (flat, (64,), None),
    ],
)
def test_a_module_sees_the_array_with_channels_first_or_a_flat_row(module, shape, seen):
    model = Torch(module, "cross-entropy").shaped(shape)
    assert model.shape == seen
    assert model.dim(64 * (shape[0] if len(shape) == 3 and shape[0] in (3, 7) else 1)) > 0


def test_a_shape_that_is_said_stays():
    assert Torch(image, "cross-entropy", (1, 4, 16)).shaped((1, 8, 8)).shape == (1, 4, 16)


@pytest.mark.parametrize(
    ("module", "shape", "culprit"),
    [(lambda: image(3), (8, 8, 3), "moveaxis"), (image, (3, 8, 8), "(3, 8, 8)")],
)
def test_a_module_that_takes_samples_in_no_shape_is_refused(module, shape, culprit):
    with pytest.raises(ConfigError) as refused:
        Torch(module, "cross-entropy").shaped(shape)
    assert culprit in str(refused.value)


def test_trying_shapes_leaves_the_module_of_the_user_as_it_is():
    module = image().train()
    module[1].eval()
    Torch(module, "cross-entropy").shaped((8, 8))
    assert [part.training for part in module] == [True, False, True, True, True]


def test_a_run_on_arrays_needs_no_shape_and_gives_the_same_bits():
    rng = np.random.default_rng(1)
    images, labels = rng.random((64, 8, 8)), np.arange(64) % 10
    table = ow.Table.from_arrays(images, labels, task="classes")
    graph = ow.TrustGraph.random(4, max_receivers=2, seed=0)
    told, found = (
        ow.simulate(ow.OnlinePushSum(0.1), Torch(CONVOLUTION, shape=shape), table.deal(4), graph)
        for shape in ((1, 8, 8), None)
    )
    assert found.model.shape == (1, 8, 8)
    np.testing.assert_array_equal(told.numerators, found.numerators)


def test_a_task_made_of_arrays_has_the_shape_and_one_without_it_sees_flat_rows():
    table = ow.Table.from_arrays(np.eye(64).reshape(64, 8, 8), np.arange(64) % 10, task="classes")
    task = Task.of(table, model="torch", options={"torch": {"module": CONVOLUTION}})
    assert task.options["torch"]["shape"] == [1, 8, 8]
    assert Task.parse(task.to_toml()).build_model().shape == (1, 8, 8)
    dense = Task.of(
        table,
        model="torch",
        options={"torch": {"module": "oneway.models.examples:digits_network"}},
    )
    assert dense.build_model().shape == (8, 8)
    older = dense.to_toml().replace("\nshape = [8, 8]\n", "\n")
    assert Task.parse(older).build_model().shape is None
