"""ONNX graph of a model: raw columns in, label and probabilities out, in float64.

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
from oneway.export.personal import NETWORK, PersonalModel
from oneway.models import LinearModel, Torch
from oneway.personal.experts import FAR, PARAMS
from oneway.personal.links import LinearLink
from oneway.personal.mixtures import LEAST
from oneway.personal.personal import REACH
from oneway.records import Matrix, Vector
from oneway.sentences import listed, shown
from oneway.tables.cells import missing_spellings, truth_spellings, value_spellings
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
_NEVER_SEEN = "\N{REPLACEMENT CHARACTER}"


def to_onnx(exported: FittedModel | PersonalModel) -> bytes:
    """Return the graph, checked; every raw column is an input `[row, 1]`.

    Numbers are float64, and nan is a missing value; categories and booleans are text as in the
    data, with at most one space around it. An array is an input `[row, ...]`. Of a time the graph
    takes the model inputs: no operator of ONNX reads dates.

    Raises:
        ConfigError: The model is neither linear nor a module that PyTorch can export, or a column
            has the name of an output.
        MissingExtraError: The package `onnx` is not installed.
    """
    fitted = exported.shared if isinstance(exported, PersonalModel) else exported
    _check_names(fitted)
    graph = _Graph()
    columns = [_ENCODERS[feature.kind](graph, feature) for feature in fitted.encoder.features]
    encoded = graph.add("Concat", columns, axis=1) if len(columns) > 1 else columns[0]
    if isinstance(exported, PersonalModel):
        _personal(graph, exported, encoded)
    elif isinstance(fitted.model, Torch):
        outputs = _module_outputs(graph, fitted, encoded)
        _HEADS[fitted.model.labels](graph, fitted, _in_units(graph, fitted.model, outputs))
    else:
        scores = _linear(graph, encoded, *fitted.in_model_units())
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
    described = facts(exported)
    if isinstance(fitted.model, Torch):
        del described["parameters"]  # they are in the graph; as text they would be many megabytes
        described.pop("memory", None)
    helper.set_model_props(model, {"oneway": json.dumps(described)})
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


def _about(fitted: FittedModel) -> str:
    """Return how to feed the graph."""
    times = [feature.name for feature in fitted.encoder.features if feature.kind == "time"]
    inputs = (
        "One input [row, 1] per column, in the units of the data; nan, or empty text, is a missing "
        "value."
    )
    if not times:
        return inputs
    return (
        f"{inputs} No operator reads dates: of {listed(times)} give the sines and cosines that the "
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
        added = onnx.compose.add_prefix(model, f"module {len(self.nodes)}/")
        self.add("Identity", [given], added.graph.input[0].name)
        self.nodes += added.graph.node
        self.constants += added.graph.initializer
        self.functions += added.functions
        self.opsets |= {it.domain: it.version for it in added.opset_import}
        return str(added.graph.output[0].name)

    def output(self, name: str, kind: int, shape: Sequence[str | int]) -> None:
        """What is to be given back."""
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))


def _linear(graph: _Graph, encoded: str, factors: Matrix, constants: Vector) -> str:
    products = graph.add("MatMul", [encoded, graph.constant(factors.T)])
    return graph.add("Add", [products, graph.constant(constants)])


def _module_outputs(graph: _Graph, fitted: FittedModel, encoded: str) -> str:
    """What PyTorch's own exporter makes of a module, in its kind of number."""
    from oneway.export.module_formats import to_module_graph

    model = fitted.model
    assert isinstance(model, Torch)
    shape = model.shape or (fitted.encoder.width,)
    module, kind = to_module_graph(fitted, shape, OPSET), TensorProto.FLOAT
    if model.dtype == np.float64:
        kind = TensorProto.DOUBLE
    rows = graph.add("Reshape", [encoded, graph.constant([-1, *shape])])
    given = graph.splice(module, graph.add("Cast", [rows], to=kind))
    count = len(fitted.classes) if model.labels == "classes" else 1
    flat = graph.add("Reshape", [given, graph.constant([-1, count])])
    return graph.add("Cast", [flat], to=TensorProto.DOUBLE)


def _in_units(graph: _Graph, model: Any, scores: str) -> str:
    """What scores predict, in the label's units: itself but for numbers."""
    if model.labels != "number":
        return scores
    scaled = graph.add("Mul", [scores, graph.constant(model.scale)])
    return graph.add("Add", [scaled, graph.constant(model.center)])


def _personal(graph: _Graph, exported: PersonalModel, encoded: str) -> None:
    """Scores of all experts, their answers, the mixtures as they are now, and what they predict."""
    personal, labels = exported.personal, exported.model.labels
    now = exported.forecast(np.zeros(exported.encoder.width))
    shared = _raw_scores(graph, exported, exported.params, encoded)
    experts = [_answer(graph, exported, shared)]
    if personal.network_alone:
        params = exported.memory.get(NETWORK, exported.params[None, :])  # else of weight 0
        experts.append(_answer(graph, exported, _raw_scores(graph, exported, params[0], encoded)))
    pairs = _linear_experts(graph, exported, encoded, shared)
    experts += [_mixed(graph, *it) for it in zip(now.pair_weights[0], pairs, strict=True)]
    answer = _mixed(graph, now.weights[0], experts)
    if not personal.has_probabilities:
        assert isinstance(personal.link, LinearLink)
        predicted = _in_units(graph, personal.link.model, answer)
        _HEADS[labels](graph, exported.shared, predicted)
        return
    if labels == "classes":
        code = graph.add("ArgMax", [answer], axis=1, keepdims=0)
    else:
        first, second = (graph.add("Gather", [answer, graph.constant(it)], axis=1) for it in (0, 1))
        is_second = graph.add("GreaterOrEqual", [second, first])
        code = graph.add("Cast", [is_second], to=TensorProto.INT64)
    _label(graph, exported.shared, code)
    graph.add("Identity", [answer], PROBABILITIES)
    graph.output(PROBABILITIES, TensorProto.DOUBLE, ["rows", len(exported.classes)])


def _linear_experts(
    graph: _Graph, exported: PersonalModel, encoded: str, shared: str
) -> list[list[str]]:
    """Answers `[kind][geometry]` of the experts that `personal.experts` learns."""
    linear, width = exported.personal.linear, exported.personal.link.width
    inputs = graph.add("Concat", [encoded, _as_input(graph, shared, width)], axis=1)
    shape = (len(linear.kinds), 2, width, linear.num_features + 2)

    def answer(params: Matrix) -> str:
        factors = np.zeros((width, exported.encoder.width))
        factors[:, : linear.num_features] = params[:, :-2]
        factors = np.hstack([factors, np.diag(params[:, -2])])
        return _answer(graph, exported, _linear(graph, inputs, factors, params[:, -1]))

    pairs = exported.memory[PARAMS].reshape(shape)
    return [[answer(params) for params in pair] for pair in pairs]


def _raw_scores(graph: _Graph, exported: PersonalModel, params: Vector, encoded: str) -> str:
    """Scores of the shared model, or of one like it, before they are put into a label's units."""
    model = exported.model
    if isinstance(model, Torch):
        return _module_outputs(graph, FittedModel(exported.encoder, model, params), encoded)
    if isinstance(model, LinearModel):
        return _linear(graph, encoded, *LinearModel.coefficients(model, params))
    coefficients = model.coefficients(params)
    assert coefficients is not None
    return _linear(graph, encoded, *coefficients)


def _as_input(graph: _Graph, scores: str, width: int) -> str:
    """`personal.experts.as_input`."""
    if width > 1:
        mean = graph.add("ReduceMean", [scores, graph.constant([1])], keepdims=1)
        scores = graph.add("Sub", [scores, mean])
    return graph.add("Clip", [scores, graph.constant(-FAR), graph.constant(FAR)])


def _answer(graph: _Graph, exported: PersonalModel, scores: str) -> str:
    """Probabilities bounded away from 0, or scores within reach."""
    if not exported.personal.has_probabilities:
        reach = float(exported.memory[REACH][0, 0])
        return graph.add("Clip", [scores, graph.constant(-reach), graph.constant(reach)])
    if exported.model.labels == "binary":
        chances = _two_chances(graph, scores)
    else:
        chances = graph.add("Softmax", [scores], axis=1)
    # Not by a factor of nearly 1: onnxruntime takes it for 1, and leaves it out.
    drawn = graph.add("Mul", [graph.constant(float(len(exported.classes))), chances])
    missing = graph.add("Sub", [graph.constant(1.0), drawn])
    return graph.add("Add", [chances, graph.add("Mul", [graph.constant(LEAST), missing])])


def _mixed(graph: _Graph, weights: Vector, answers: Sequence[str]) -> str:
    """The weighted mean of answers."""
    middle = graph.constant([1])
    stacked = graph.add("Concat", [graph.add("Unsqueeze", [it, middle]) for it in answers], axis=1)
    weighted = graph.add("Mul", [stacked, graph.constant(weights[:, None])])
    return graph.add("ReduceSum", [weighted, middle], keepdims=0)


def _number_column(graph: _Graph, feature: Feature) -> str:
    """A number; nan is a missing value, which is 0 after scaling."""
    raw = graph.input(feature.name, TensorProto.DOUBLE)
    centred = graph.add("Sub", [raw, graph.constant(feature.center)])
    scaled = graph.add("Div", [centred, graph.constant(feature.scale)])
    is_missing = graph.add("IsNaN", [raw])
    filled = graph.add("Where", [is_missing, graph.constant(0.0), scaled])
    if not feature.gaps:
        return filled
    flag = graph.add("Cast", [is_missing], to=TensorProto.DOUBLE)
    return graph.add("Concat", [filled, flag], axis=1)


def _category(graph: _Graph, feature: Feature) -> str:
    """Text; every spelling of a value or of a missing one is looked up."""
    books = [(value_spellings(value), feature.encode(value)) for value in feature.values]
    return _text_column(graph, feature, books, feature.encode(_NEVER_SEEN))


def _boolean(graph: _Graph, feature: Feature) -> str:
    """Text: yes, no, true, 0, ...; what is neither true nor false, a peer refuses: nan."""
    books = [(truth_spellings(truth), feature.encode(truth)) for truth in (False, True)]
    return _text_column(graph, feature, books, np.full(feature.width, np.nan))


def _text_column(
    graph: _Graph,
    feature: Feature,
    books: Sequence[tuple[Sequence[str], ArrayLike]],
    other: ArrayLike,
) -> str:
    """Encode a column of text: the numbers of each of several sets of spellings, and of others."""
    raw = graph.input(feature.name, TensorProto.STRING)
    books = [*books, (missing_spellings(), feature.encode(None))]
    codes = {text: code for code, (spellings, _) in enumerate(books) for text in spellings}
    place = graph.add(
        "LabelEncoder",
        [raw],
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=len(books),
    )
    flat = graph.add("Squeeze", [place, graph.constant([1])])
    rows = np.array([*(numbers for _, numbers in books), other], np.float64)
    return graph.add("Gather", [graph.constant(rows), flat])


def _time(graph: _Graph, feature: Feature) -> str:
    """Its sines and cosines: no operator can read a date."""
    parts = [graph.input(name, TensorProto.DOUBLE) for name in feature.outputs]
    return graph.add("Concat", parts, axis=1)


def _array(graph: _Graph, feature: Feature) -> str:
    """The cells of an array in a row; nan is a missing value."""
    raw = graph.input(feature.name, TensorProto.DOUBLE, feature.shape)
    flat = graph.add("Flatten", [raw], axis=1)
    centred = graph.add("Sub", [flat, graph.constant(feature.center)])
    scaled = graph.add("Div", [centred, graph.constant(feature.scale)])
    is_missing = graph.add("IsNaN", [flat])
    filled = graph.add("Where", [is_missing, graph.constant(0.0), scaled])
    if not feature.gaps:
        return filled
    flags = graph.add("Cast", [is_missing], to=TensorProto.DOUBLE)
    return graph.add(
        "Concat", [filled, graph.add("ReduceMin", [flags, graph.constant([1])])], axis=1
    )


_ENCODERS = {
    "number": _number_column,
    "boolean": _boolean,
    "category": _category,
    "array": _array,
    "time": _time,
}


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
        _two_chances(graph, scores, PROBABILITIES)
        graph.output(PROBABILITIES, TensorProto.DOUBLE, ["rows", 2])


def _two_chances(graph: _Graph, scores: str, name: str = "") -> str:
    half, one = graph.constant(0.5), graph.constant(1.0)
    bent = graph.add("Tanh", [graph.add("Mul", [half, scores])])
    second = graph.add("Mul", [half, graph.add("Add", [one, bent])])
    first = graph.add("Sub", [one, second])
    return graph.add("Concat", [first, second], name, axis=1)


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
            "columns; rename the column, or export the model as json"
        )
