"""PyTorch's own formats of a fitted model: its state dict, and its graph for ONNX."""

from __future__ import annotations

import logging
import warnings
from io import BytesIO
from typing import Any

import numpy as np

from oneway.errors import ConfigError, needs_extra
from oneway.export.fitted import FittedModel
from oneway.export.personal import PersonalModel
from oneway.models import Torch
from oneway.sentences import cut


def to_state_dict(fitted: FittedModel | PersonalModel) -> bytes:
    """Return a file for `torch.load(..., weights_only=True)`, to load into the module.

    Raises:
        ConfigError: The model is no PyTorch module.
    """
    if isinstance(fitted, PersonalModel):
        raise ConfigError(
            "a personal model is a mixture of several, and a state dict holds one module; export "
            "the shared model, or the personal one as json or onnx"
        )
    if not isinstance(fitted.model, Torch):
        raise ConfigError(
            f"a {fitted.model.name} model is no PyTorch module, so it has no state dict; export it "
            "as json or onnx"
        )
    import torch

    file = BytesIO()
    torch.save(fitted.model.filled(fitted.params).state_dict(), file)
    return file.getvalue()


def to_module_graph(fitted: FittedModel, shape: tuple[int, ...], opset: int) -> Any:
    """Return the module of a model as an ONNX model, from `[row, *shape]` to its outputs.

    Raises:
        ConfigError: PyTorch's exporter cannot write this module.
        MissingExtraError: The packages that PyTorch's exporter needs are not installed.
    """
    import torch

    with needs_extra("an ONNX file of a PyTorch module", "torch"):
        import onnxscript  # noqa: F401
    assert isinstance(fitted.model, Torch)
    module = fitted.model.filled(fitted.params)
    # Two rows: of one, the exporter would conclude that there is never another number of them.
    rows = torch.zeros(2, *shape, dtype=next(module.parameters()).dtype)
    log, dynamic = logging.getLogger("torch.onnx"), {0: torch.export.Dim("rows")}
    level = log.level
    try:
        log.setLevel(logging.ERROR)  # it tells of packages that nobody asked for
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module,
                (rows,),
                dynamo=True,
                dynamic_shapes=(dynamic,),
                opset_version=opset,
                verbose=False,
            )
            assert program is not None
            _check_graph(program.model_proto, module, rows)
    except Exception as error:  # whatever is wrong in somebody else's code
        reason = cut(" ".join(f"{type(error).__name__}: {error}".split()))
        raise ConfigError(
            f"PyTorch cannot write module {type(module).__name__} as ONNX ({reason}); export it as "
            "state-dict"
        ) from error
    finally:
        log.setLevel(level)
    return program.model_proto


def _check_graph(graph: Any, module: Any, rows: Any) -> None:
    """Check that a graph computes what the module does: its exporter may have fixed a branch.

    Raises:
        ValueError: It does not.
    """
    import torch
    from onnx.reference import ReferenceEvaluator

    drawn = torch.randn(rows.shape, dtype=rows.dtype, generator=torch.Generator().manual_seed(0))
    evaluator, [given] = ReferenceEvaluator(graph), graph.graph.input
    for probe in (drawn, -drawn):
        expected = module(probe).detach().numpy()
        [found] = evaluator.run(None, {given.name: probe.numpy()})
        if not np.allclose(found, expected, rtol=1e-3, atol=1e-4):
            raise ValueError("the graph gives other outputs than the module")
