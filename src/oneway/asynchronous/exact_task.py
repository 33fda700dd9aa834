"""Task of simulated peers: the method, model and stream of a simulation, as peers are told them."""

from __future__ import annotations

import json
from functools import cached_property
from hashlib import blake2b
from typing import Any

from oneway.errors import ConfigError
from oneway.methods import METHODS, Method
from oneway.models import LabelKind, Model, typical_sample
from oneway.simulator.raw_rows import encoder_of, is_registered
from oneway.streams import Stream
from oneway.task.privacy import NO_PRIVACY, Privacy
from oneway.task.task import Task


def task_for(method: Method, model: Model, stream: Stream) -> Task:
    """The task that peers would have to learn the same in the same way.

    Its method and model are the ones given, to the last option: what noise a method adds stands in
    its batches, whatever promise they follow from.

    Raises:
        ConfigError: Peers cannot: a task names methods and models, and these have no known name;
            or their labels come later than the samples.
        TaskError: Peers cannot: the method needs a server.
    """
    for what, given, is_known in (
        ("method", method, type(method) in METHODS.values()),
        ("model", model, is_registered(model)),
    ):
        if not is_known:
            raise ConfigError(
                f"{type(given).__name__} is no registered {what}, and the exact level runs peers, "
                f"whose task names their {what}; register it first"
            )
    if stream.late is not None:
        raise ConfigError(
            "the labels of the stream come later than its samples, which the asynchronous levels "
            "do not do; give a stream without `delayed`"
        )
    method = method.suited(*typical_sample(model, stream.dim))
    encoder = encoder_of(stream, model)

    # Made here: whoever changes a task gets another one of this class, with the same two.
    class SimulatedTask(Task):
        """A task whose method and model were given, not built."""

        @property
        def label_kind(self) -> LabelKind:
            return model.labels

        def build_model(self) -> Model:
            return model

        def build_method(self, dim: int | None = None) -> Method:
            return method

        def fields(self) -> dict[str, Any]:
            return {"simulated": [method.describe(), model.describe(), stream.dim]}

        @cached_property
        def fingerprint(self) -> bytes:
            text = json.dumps(self.fields(), sort_keys=True, default=str)
            return blake2b(text.encode(), digest_size=16, person=b"oneway task").digest()

    batches = method.batches
    task = SimulatedTask(
        model.name,
        encoder.label,
        encoder.features,
        encoder.classes,
        method=method.name,
        samples_per_push=batches.samples if batches else 1,
        privacy=Privacy() if batches and batches.noise else NO_PRIVACY,
    )
    task.require_without_server()
    return task
