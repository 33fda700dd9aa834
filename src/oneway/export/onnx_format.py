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
from oneway.models import LinearModel, Model, Torch
from oneway.personal.experts import FAR, PARAMS
from oneway.personal.links import LinearLink
from oneway.personal.mixtures import LEAST
from oneway.personal.personal import REACH
from oneway.records import Matrix, Vector
from oneway.sentences import shown
from oneway.tables.cells import missing_spellings, truth_spellings, value_spellings
from oneway.tables.features import Array, Boolean, Category, Feature, Time

with needs_extra("an ONNX file", "export"):
    import onnx
    import onnx.compose
    from onnx import TensorProto, helper, numpy_helper

LABEL, PROBABILITIES = "label", "probabilities"
"""The outputs: `[row]` and, where the model has them, `[row, class]`."""
OPSET = 18
_OPSETS = {"": OPSET, "ai.onnx.ml": 3}
_IR_VERSION = 8
_ABOUT = (
    "One input [row, 1] per column, in the units of the data; nan, or empty text, is a missing "
    "value. No operator reads dates: of a time give the sines and cosines that the model sees, as "
    "FittedModel.encoder.vector makes them."
)
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
    columns = [_encoded(graph, feature) for feature in fitted.encoder.features]
    inputs = graph.add("Concat", *columns, axis=1)
    if isinstance(exported, PersonalModel):
        scores, chances = _personal(graph, exported, inputs)
    else:
        if isinstance(fitted.model, Torch):
            scores = _in_units(graph, fitted.model, _scores(graph, fitted, inputs))
        else:
            scores = _linear(graph, inputs, *fitted.in_model_units())
        chances = _chances(graph, fitted.model, scores) if fitted.says_probabilities else ""
    _predict(graph, fitted, scores, chances)
    model = graph.build(f"{fitted.encoder.label}, {fitted.model.name}")
    described = facts(exported)
    if isinstance(fitted.model, Torch):
        del described["parameters"]  # they are in the graph; as text they would be many megabytes
        described.pop("memory", None)
    helper.set_model_props(model, {"oneway": json.dumps(described)})
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString()
    return content


class _Graph:
    """The nodes and constants of a graph as they are added; values are known by name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.functions: list[Any] = []
        self.opsets: dict[str, int] = {}

    def input(self, name: str, kind: int, shape: Sequence[int] = (1,)) -> str:
        """Add a raw column."""
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["rows", *shape]))
        return name

    def add(self, operator: str, *inputs: str | ArrayLike, name: str = "", **options: Any) -> str:
        """Add an operator and return its result; an input that is no name is a constant."""
        names = [it if isinstance(it, str) else self._constant(it) for it in inputs]
        result = name or f"oneway/{operator} {len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [result], **options))
        return result

    def splice(self, model: Any, given: str) -> str:
        """Add a graph with one input, and return its output."""
        added = onnx.compose.add_prefix(model, f"module {len(self.nodes)}/")
        self.add("Identity", given, name=added.graph.input[0].name)
        self.nodes += added.graph.node
        self.constants += added.graph.initializer
        self.functions += added.functions
        self.opsets |= {it.domain: it.version for it in added.opset_import}
        return str(added.graph.output[0].name)

    def output(self, value: str, name: str, kind: int, shape: Sequence[str | int]) -> None:
        """Make a value an output."""
        self.add("Identity", value, name=name)
        self.outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def build(self, name: str) -> Any:
        """Return the graph as a model."""
        return helper.make_model(
            helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants),
            producer_name="oneway",
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid(*it) for it in {**self.opsets, **_OPSETS}.items()],
            functions=self.functions,
            doc_string=_ABOUT,
        )

    def _constant(self, values: ArrayLike) -> str:
        name = f"oneway/{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name


# Model inputs.


def _encoded(graph: _Graph, feature: Feature) -> str:
    """Add a feature; return its model inputs."""
    if isinstance(feature, Time):
        parts = [graph.input(name, TensorProto.DOUBLE) for name in feature.outputs]
        return graph.add("Concat", *parts, axis=1)
    if isinstance(feature, Category):
        books = [(value_spellings(value), feature.encode(value)) for value in feature.values]
        return _looked_up(graph, feature, books, feature.encode(_NEVER_SEEN))
    if isinstance(feature, Boolean):
        books = [(truth_spellings(truth), feature.encode(truth)) for truth in (False, True)]
        # What is neither true nor false, a peer refuses; a graph cannot, and must not guess.
        return _looked_up(graph, feature, books, np.full(feature.width, np.nan))
    return _scaled(graph, feature, feature.shape if isinstance(feature, Array) else (1,))


def _scaled(graph: _Graph, feature: Any, shape: Sequence[int]) -> str:
    """Scale a number, or the cells of an array; nan is a missing value, which becomes 0."""
    raw = graph.input(feature.name, TensorProto.DOUBLE, shape)
    flat = graph.add("Flatten", raw, axis=1)
    scaled = graph.add("Div", graph.add("Sub", flat, feature.center), feature.scale)
    is_missing = graph.add("IsNaN", flat)
    filled = graph.add("Where", is_missing, 0.0, scaled)
    if not feature.missing_indicator:
        return filled
    flags = graph.add("Cast", is_missing, to=TensorProto.DOUBLE)
    return graph.add("Concat", filled, graph.add("ReduceMin", flags, [1]), axis=1)


def _looked_up(
    graph: _Graph,
    feature: Feature,
    books: Sequence[tuple[Sequence[str], ArrayLike]],
    other: ArrayLike,
) -> str:
    """Encode a column of text: model inputs for each of several sets of spellings, and others."""
    raw = graph.input(feature.name, TensorProto.STRING)
    books = [*books, (missing_spellings(), feature.encode(None))]
    codes = {text: code for code, (spellings, _) in enumerate(books) for text in spellings}
    place = graph.add(
        "LabelEncoder",
        raw,
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=len(books),
    )
    rows = np.array([*(numbers for _, numbers in books), other], np.float64)
    return graph.add("Gather", rows, graph.add("Squeeze", place, [1]))


# Scores, probabilities and predictions.


def _scores(graph: _Graph, fitted: FittedModel, inputs: str) -> str:
    """The scores of a model, before they are put into the units of a label."""
    model = fitted.model
    if isinstance(model, Torch):
        return _module_scores(graph, fitted, model, inputs)
    if isinstance(model, LinearModel):
        return _linear(graph, inputs, *LinearModel.coefficients(model, fitted.params))
    return _linear(graph, inputs, *fitted.in_model_units())


def _module_scores(graph: _Graph, fitted: FittedModel, model: Torch, inputs: str) -> str:
    """The outputs of a module, as PyTorch's own exporter writes it, in its kind of number."""
    from oneway.export.module_formats import to_module_graph

    shape = model.shape or (fitted.encoder.width,)
    kind = TensorProto.DOUBLE if model.dtype == np.float64 else TensorProto.FLOAT
    rows = graph.add("Reshape", inputs, [-1, *shape])
    module = to_module_graph(fitted, shape, OPSET)
    given = graph.splice(module, graph.add("Cast", rows, to=kind))
    count = len(fitted.classes) if model.labels == "classes" else 1
    return graph.add("Cast", graph.add("Reshape", given, [-1, count]), to=TensorProto.DOUBLE)


def _linear(graph: _Graph, inputs: str, factors: Matrix, constants: Vector) -> str:
    return graph.add("Add", graph.add("MatMul", inputs, factors.T), constants)


def _in_units(graph: _Graph, model: Any, scores: str) -> str:
    """Scores in the units of the label, which only numbers have."""
    if model.labels != "number":
        return scores
    return graph.add("Add", graph.add("Mul", scores, float(model.scale)), float(model.center))


def _chances(graph: _Graph, model: Model, scores: str) -> str:
    """Probabilities of the classes: softmax; of two classes the second's, (1 + tanh(s / 2)) / 2."""
    if model.labels == "classes":
        return graph.add("Softmax", scores, axis=1)
    bent = graph.add("Tanh", graph.add("Mul", scores, 0.5))
    second = graph.add("Mul", graph.add("Add", bent, 1.0), 0.5)
    return graph.add("Concat", graph.add("Sub", 1.0, second), second, axis=1)


def _predict(graph: _Graph, fitted: FittedModel, scores: str, chances: str) -> None:
    """Add the outputs: the number, or the class of the highest score, and probabilities if any."""
    labels = fitted.model.labels
    if labels == "number":
        predicted, kind = graph.add("Squeeze", scores, [1]), TensorProto.DOUBLE
    else:
        if labels == "classes":
            place = graph.add("ArgMax", scores, axis=1, keepdims=0)
        else:
            is_second = graph.add("GreaterOrEqual", scores, 0.0)
            place = graph.add("Squeeze", graph.add("Cast", is_second, to=TensorProto.INT64), [1])
        names = np.array(fitted.classes)
        is_text = names.dtype.kind == "U"
        predicted = graph.add("Gather", names.astype(object) if is_text else names, place)
        kind = TensorProto.STRING if is_text else TensorProto.BOOL
    graph.output(predicted, LABEL, kind, ["rows"])
    if chances:
        graph.output(chances, PROBABILITIES, TensorProto.DOUBLE, ["rows", len(fitted.classes)])


# Personal models.


def _personal(graph: _Graph, exported: PersonalModel, inputs: str) -> tuple[str, str]:
    """Scores and probabilities of the mixture: experts, their answers, and the weights of now."""
    personal, shared = exported.personal, exported.shared
    now = exported.forecast(np.zeros(exported.encoder.width))
    scores = _scores(graph, shared, inputs)
    answers = [_answer(graph, exported, scores)]
    if personal.network_alone:
        params = exported.memory.get(NETWORK, exported.params[None, :])[0]  # else of weight 0
        alone = FittedModel(exported.encoder, exported.model, params)
        answers.append(_answer(graph, exported, _scores(graph, alone, inputs)))
    pairs = _linear_answers(graph, exported, inputs, scores)
    answers += [_mixed(graph, *it) for it in zip(now.pair_weights[0], pairs, strict=True)]
    answer = _mixed(graph, now.weights[0], answers)
    if not personal.has_probabilities:
        assert isinstance(personal.link, LinearLink)
        return _in_units(graph, personal.link.model, answer), ""
    if exported.model.labels == "classes":
        return answer, answer
    first, second = (graph.add("Gather", answer, [place], axis=1) for place in (0, 1))
    return graph.add("Sub", second, first), answer


def _linear_answers(
    graph: _Graph, exported: PersonalModel, inputs: str, scores: str
) -> list[list[str]]:
    """Answers `[kind][geometry]` of the experts that `personal.experts` learns."""
    linear, width = exported.personal.linear, exported.personal.link.width
    if width > 1:  # as `personal.experts.as_input`
        scores = graph.add("Sub", scores, graph.add("ReduceMean", scores, [1], keepdims=1))
    features = graph.add("Concat", inputs, graph.add("Clip", scores, -FAR, FAR), axis=1)

    def answer(params: Matrix) -> str:
        factors = np.zeros((width, exported.encoder.width))
        factors[:, : linear.num_features] = params[:, :-2]
        factors = np.hstack([factors, np.diag(params[:, -2])])
        return _answer(graph, exported, _linear(graph, features, factors, params[:, -1]))

    shape = (len(linear.kinds), 2, width, linear.num_features + 2)
    pairs = exported.memory[PARAMS].reshape(shape)
    return [[answer(params) for params in pair] for pair in pairs]


def _answer(graph: _Graph, exported: PersonalModel, scores: str) -> str:
    """Probabilities bounded away from 0, or scores within reach."""
    if not exported.personal.has_probabilities:
        reach = float(exported.memory[REACH][0, 0])
        return graph.add("Clip", scores, -reach, reach)
    chances = _chances(graph, exported.model, scores)
    # Not by a factor of nearly 1: onnxruntime takes it for 1, and leaves it out.
    missing = graph.add("Sub", 1.0, graph.add("Mul", chances, float(len(exported.classes))))
    return graph.add("Add", chances, graph.add("Mul", missing, LEAST))


def _mixed(graph: _Graph, weights: Vector, answers: Sequence[str]) -> str:
    """The weighted mean of answers."""
    stacked = graph.add("Concat", *(graph.add("Unsqueeze", it, [1]) for it in answers), axis=1)
    return graph.add("ReduceSum", graph.add("Mul", stacked, weights[:, None]), [1], keepdims=0)


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
