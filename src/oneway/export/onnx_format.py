"""ONNX graph of a fitted model: raw columns in, label and probabilities out, in float64.

The graph does what encoder and model do, step by step and in the same order, so that a runtime
predicts what the peer does. It is written with the package `onnx` alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from oneway.errors import ConfigError, needs_extra
from oneway.export.fitted import FittedModel
from oneway.export.json_format import facts
from oneway.models import HasModule
from oneway.sentences import listed, shown
from oneway.tables.cells import EMPTY, label_key
from oneway.tables.features import Feature

with needs_extra("an ONNX file", "export"):
    import onnx
    import onnx.compose
    from onnx import TensorProto, helper, numpy_helper

LABEL, PROBABILITIES = "label", "probabilities"
"""The outputs: `[row]` and, where the model says them, `[row, class]`."""
OPSET = 18
_OPSETS = {"": OPSET, "ai.onnx.ml": 3}
_IR_VERSION = 8
_PROBES = 64
_NEVER_SEEN = "\N{REPLACEMENT CHARACTER}"
_GAPS = {
    *EMPTY,
    *(word.upper() for word in EMPTY),
    *(word.capitalize() for word in EMPTY),
    "NaN",
    "NaT",
}
"""Texts that say that a cell holds nothing."""


def to_onnx(fitted: FittedModel) -> bytes:
    """Return the graph, checked; every raw column is an input `[row, 1]`.

    Numbers are float64, booleans 1 and 0 likewise, and nan is a gap; categories are text as in the
    data, without spaces around it. An array is an input `[row, ...]`, and so is what a function
    makes of a cell: the graph does not call it. Of a time the graph wants the columns that the
    model sees.

    Raises:
        ConfigError: The model is neither linear nor a module that PyTorch can export, or columns
            are called as the outputs are.
        MissingExtraError: The package `onnx` is not installed.
    """
    _check_names(fitted)
    scores_of = _scores_of_module if isinstance(fitted.model, HasModule) else _linear_scores
    graph = _Graph()
    columns = [_ENCODERS[feature.kind](graph, feature) for feature in fitted.encoder.features]
    encoded = graph.add("Concat", columns, axis=1) if len(columns) > 1 else columns[0]
    scores = scores_of(graph, fitted, encoded)
    _HEADS[fitted.model.labels](graph, fitted, scores)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            f"{fitted.encoder.label}, {fitted.model.name}",
            graph.inputs,
            graph.outputs,
            graph.constants,
        ),
        producer_name="oneway",
        ir_version=_IR_VERSION,
        opset_imports=[helper.make_opsetid(*it) for it in {**graph.opsets, **_OPSETS}.items()],
        functions=graph.functions,
        doc_string=_about(fitted),
    )
    told = facts(fitted)
    if isinstance(fitted.model, HasModule):
        del told["parameters"]  # they are in the graph, which has no place for a million as text
    helper.set_model_props(model, {"oneway": json.dumps(told)})
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _about(fitted: FittedModel) -> str:
    """What to feed the graph with."""
    times = [feature.name for feature in fitted.encoder.features if feature.kind == "time"]
    asked = "One input [row, 1] per column, in the units of the data; nan, or empty text, is a gap."
    if not times:
        return asked
    return (
        f"{asked} No operator reads dates: of {listed(times)} give the sines and cosines that the "
        "model sees, as FittedModel.encoder.vector makes them."
    )


class _Graph:
    """Nodes and constants of a graph as they are added; values are known by name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.functions: list[Any] = []
        self.opsets: dict[str, int] = {}

    def input(self, name: str, kind: int, shape: Sequence[int] = (1,)) -> str:
        """A raw column."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["rows", *shape]))
        return name

    def constant(self, values: ArrayLike) -> str:
        """An array that is part of the graph."""
        name = f"oneway/{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def add(self, operator: str, inputs: Sequence[str], name: str = "", **attributes: Any) -> str:
        """The result of an operator."""
        result = name or f"oneway/{operator} {len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [result], **attributes))
        return result

    def splice(self, model: Any, given: str) -> str:
        """The output of a graph with one input, and all that it is made of."""
        added = onnx.compose.add_prefix(model, "module/")
        self.add("Identity", [given], added.graph.input[0].name)
        self.nodes += added.graph.node
        self.constants += added.graph.initializer
        self.functions += added.functions
        self.opsets |= {it.domain: it.version for it in added.opset_import}
        return str(added.graph.output[0].name)

    def output(self, name: str, kind: int, shape: Sequence[str | int]) -> None:
        """What is to be given back."""
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))


def _linear_scores(graph: _Graph, fitted: FittedModel, encoded: str) -> str:
    _check_linear(fitted)
    factors, constants = fitted.in_model_units()
    products = graph.add("MatMul", [encoded, graph.constant(factors.T)])
    return graph.add("Add", [products, graph.constant(constants)])


def _scores_of_module(graph: _Graph, fitted: FittedModel, encoded: str) -> str:
    """What PyTorch's own exporter makes of a module, in its kind of number."""
    from oneway.export.module_formats import to_module_graph

    model = fitted.model
    assert isinstance(model, HasModule)
    shape = model.shape or (fitted.encoder.width,)
    module, kind = to_module_graph(fitted, shape, OPSET), TensorProto.FLOAT
    if model.dtype == np.float64:
        kind = TensorProto.DOUBLE
    rows = graph.add("Reshape", [encoded, graph.constant([-1, *shape])])
    given = graph.splice(module, graph.add("Cast", [rows], to=kind))
    count = len(fitted.classes) if model.labels == "classes" else 1
    flat = graph.add("Reshape", [given, graph.constant([-1, count])])
    scores = graph.add("Cast", [flat], to=TensorProto.DOUBLE)
    if model.labels != "number":
        return scores
    scaled = graph.add("Mul", [scores, graph.constant(model.scale)])
    return graph.add("Add", [scaled, graph.constant(model.center)])


def _scalar(graph: _Graph, feature: Feature) -> str:
    """A number, or 1 and 0 for a boolean; nan is a gap, which is 0 after scaling."""
    raw = graph.input(feature.name, TensorProto.DOUBLE)
    center, scale = feature.scaling
    centred = graph.add("Sub", [raw, graph.constant(center)])
    scaled = graph.add("Div", [centred, graph.constant(scale)])
    is_gap = graph.add("IsNaN", [raw])
    filled = graph.add("Where", [is_gap, graph.constant(0.0), scaled])
    if not feature.gaps:
        return filled
    flag = graph.add("Cast", [is_gap], to=TensorProto.DOUBLE)
    return graph.add("Concat", [filled, flag], axis=1)


def _category(graph: _Graph, feature: Feature) -> str:
    """Text: one row of 0 and 1 for each value, one for values that are not listed, one for gaps."""
    raw = graph.input(feature.name, TensorProto.STRING)
    codes: dict[str, int] = {}
    for code, value in enumerate(feature.values):
        codes |= dict.fromkeys(_spellings(value), code)
    other, gap = len(feature.values), len(feature.values) + 1
    codes |= dict.fromkeys(_GAPS, gap)
    place = graph.add(
        "LabelEncoder",
        [raw],
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=other,
    )
    flat = graph.add("Squeeze", [place, graph.constant([1])])
    known = [feature.encode(value) for value in feature.values]
    book = [*known, feature.encode(_NEVER_SEEN), feature.encode(None)]
    return graph.add("Gather", [graph.constant(np.array(book)), flat])


def _time(graph: _Graph, feature: Feature) -> str:
    """Its sines and cosines: no operator can read a date."""
    parts = [graph.input(name, TensorProto.DOUBLE) for name in feature.outputs]
    return graph.add("Concat", parts, axis=1)


def _array(graph: _Graph, feature: Feature) -> str:
    """The cells of an array, or what a function made of a cell, in a row; nan is a gap."""
    raw = graph.input(feature.name, TensorProto.DOUBLE, feature.shape)
    flat = graph.add("Flatten", [raw], axis=1)
    centred = graph.add("Sub", [flat, graph.constant(feature.center)])
    scaled = graph.add("Div", [centred, graph.constant(feature.scale)])
    is_gap = graph.add("IsNaN", [flat])
    filled = graph.add("Where", [is_gap, graph.constant(0.0), scaled])
    if not feature.gaps:
        return filled
    flags = graph.add("Cast", [is_gap], to=TensorProto.DOUBLE)
    return graph.add(
        "Concat", [filled, graph.add("ReduceMin", [flags, graph.constant([1])])], axis=1
    )


_ENCODERS = {
    **dict.fromkeys(("number", "boolean"), _scalar),
    **dict.fromkeys(("array", "transform"), _array),
    "category": _category,
    "time": _time,
}


def _spellings(value: str) -> set[str]:
    """How a value may be written: a number as the text it was, whole or with a point."""
    number = label_key(value)
    if isinstance(number, str):
        return {value}
    truths = {1.0: {"true", "True"}, 0.0: {"false", "False"}}
    return {value, repr(number), f"{number:.17g}", *truths.get(number, set())}


def _number(graph: _Graph, _: FittedModel, scores: str) -> None:
    """The score itself."""
    graph.add("Squeeze", [scores, graph.constant([1])], LABEL)
    graph.output(LABEL, TensorProto.DOUBLE, ["rows"])


def _two_classes(graph: _Graph, fitted: FittedModel, scores: str) -> None:
    """The second class from a score of 0 on; (1 + tanh(s / 2)) / 2 is its probability."""
    is_second = graph.add("GreaterOrEqual", [scores, graph.constant(0.0)])
    code = graph.add("Cast", [is_second], to=TensorProto.INT64)
    _label(graph, fitted, graph.add("Squeeze", [code, graph.constant([1])]))
    if fitted.says_probabilities:
        half, one = graph.constant(0.5), graph.constant(1.0)
        bent = graph.add("Tanh", [graph.add("Mul", [half, scores])])
        second = graph.add("Mul", [half, graph.add("Add", [one, bent])])
        first = graph.add("Sub", [one, second])
        graph.add("Concat", [first, second], PROBABILITIES, axis=1)
        graph.output(PROBABILITIES, TensorProto.DOUBLE, ["rows", 2])


def _classes(graph: _Graph, fitted: FittedModel, scores: str) -> None:
    """The class with the highest score, the first of equals; softmax of the scores."""
    _label(graph, fitted, graph.add("ArgMax", [scores], axis=1, keepdims=0))
    if fitted.says_probabilities:
        graph.add("Softmax", [scores], PROBABILITIES, axis=1)
        graph.output(PROBABILITIES, TensorProto.DOUBLE, ["rows", len(fitted.classes)])


_HEADS = {"number": _number, "binary": _two_classes, "classes": _classes}


def _label(graph: _Graph, fitted: FittedModel, code: str) -> None:
    """What a class is called, by its place: text, or true and false."""
    names = np.array(fitted.classes)
    is_text = names.dtype.kind == "U"
    graph.add("Gather", [graph.constant(names.astype(object) if is_text else names), code], LABEL)
    graph.output(LABEL, TensorProto.STRING if is_text else TensorProto.BOOL, ["rows"])


def _check_names(fitted: FittedModel) -> None:
    features = fitted.encoder.features
    inputs = [it.outputs if it.kind == "time" else (it.name,) for it in features]
    counts = Counter([name for names in inputs for name in names] + [LABEL, PROBABILITIES])
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise ConfigError(
            f"the ONNX graph has two values called {shown(name)}, a column and an output or two "
            "columns; export the model as json, npz or sklearn"
        )


def _check_linear(fitted: FittedModel) -> None:
    """Check that scores and predictions are what a graph can do, by trying it."""
    factors, constants = fitted.in_model_units()
    rows = np.random.default_rng(0).normal(size=(_PROBES, factors.shape[1]))
    scores = rows @ factors.T + constants
    said = fitted.model.predict(fitted.params, rows)
    if fitted.model.labels == "number":
        agrees = np.allclose(said, scores[:, 0])
    elif fitted.model.labels == "binary":
        agrees = bool(np.all((scores[:, 0] >= 0) == (said > 0)))
    else:
        agrees = bool(np.all(scores.argmax(axis=1) == said))
    if not agrees:
        raise ConfigError(
            f"a {fitted.model.name} model does not predict by its scores alone, which is all that "
            "an ONNX graph can do here; export it as json, npz or sklearn"
        )
