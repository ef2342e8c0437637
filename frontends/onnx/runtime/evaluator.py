"""onnx's ReferenceEvaluator: whole models, and single nodes whose inputs are constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError, UnsupportedError, shortened

from ..graph import numpy_operators
from ..graph.walk import Node, node_label
from ..onnx_package import import_onnx
from .memory import guard
from .operators import mended_ops
from .recurrent import reference_ops

if TYPE_CHECKING:
    from onnx import ModelProto


class Evaluator:
    """A model in onnx's ReferenceEvaluator, ready to run.

    Parameters
    ----------
    model : onnx.ModelProto
        Without functions; its default domain is "".
    opsets : mapping
        Version by domain.
    label : str
        How errors name the model.
    layers : mapping, optional
        Prepared layers, as `reference_ops` takes them.
    operators : sequence of type
        More operators for `new_ops` of ReferenceEvaluator.
    """

    def __init__(
        self,
        model: ModelProto,
        opsets: Mapping[str, int],
        label: str,
        layers: Mapping[str, Any] | None,
        operators: Sequence[type[Any]] = (),
    ) -> None:
        import_onnx()
        from onnx.reference import ReferenceEvaluator

        self._label = label
        known_operators = [*operators, *reference_ops(layers), *mended_ops(opsets.get("", 0))]
        try:
            self._evaluator = ReferenceEvaluator(model, new_ops=known_operators)
        except PyrnnxError as error:
            raise type(error)(f"{label}: {error}") from None
        except Exception as error:
            raise _failure(label, error, "cannot be run") from error
        guard(self._evaluator)

    def run(self, inputs: dict[str, Any], outputs: Sequence[str]) -> Sequence[Any]:
        """Return the values of the named outputs.

        Raises
        ------
        ArgumentError
            Values or shapes that an operator rejects; results beyond the memory limit.
        PyrnnxError
            Any other failure; the message names the operator.
        """
        try:
            with np.errstate(all="ignore"):  # infinities and NaNs are valid results
                results: Any = self._evaluator.run(list(outputs), inputs)
        except PyrnnxError:
            raise
        except Exception as error:  # raised outside an operator
            raise _failure(self._label, error, "failed") from error
        return list(results)


def _failure(label: str, error: BaseException, what: str) -> PyrnnxError:
    """Return an evaluator's error that names the innermost node in its traceback."""
    onnx = import_onnx()
    from onnx.reference.op_run import OpRun

    node, trace = None, error.__traceback__
    while trace is not None:
        for name in ("self", "node"):
            value = trace.tb_frame.f_locals.get(name)
            if isinstance(value, OpRun):
                node = value.onnx_node
            elif isinstance(value, onnx.NodeProto):
                node = value
        trace = trace.tb_next
        if trace is None and error.__cause__ is not None:
            error = error.__cause__
            trace = error.__traceback__
    where = f"{label}: {node_label(node)}" if node is not None else label
    text = shortened(str(error))
    return UnsupportedError(f"{where} {what} in onnx's ReferenceEvaluator ({type(error).__name__}: {text})")


def evaluate_node(node: Node, inputs: Mapping[str, Any], opsets: Mapping[str, int]) -> dict[str, AnyArray] | None:
    """Return the outputs of a node by name; None if it fails or an output is not an array."""
    result = numpy_operators.compute(node, [inputs[name] if name else None for name in node.input], opsets.get("", 0))
    if result is not None:
        return {node.output[0]: result}
    onnx = import_onnx()
    from onnx.reference import ReferenceEvaluator

    outputs = [name for name in node.output if name]
    graph = onnx.GraphProto(name="node")
    graph.node.append(node.proto)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in inputs)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(graph, opsets=dict(opsets), new_ops=list(mended_ops(opsets.get("", 0))))
            results = evaluator.run(outputs, dict(inputs))
    except Exception:  # a call of the model raises the error, with the operator's name
        return None
    if not all(isinstance(result, np.ndarray) for result in results):
        return None
    return dict(zip(outputs, results, strict=True))
