"""onnx's ReferenceEvaluator: whole models, and single nodes whose inputs are constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError, UnsupportedError, shortened

from ..graph.walk import node_label
from ..onnx_package import import_onnx
from . import numpy_operators
from .memory import guard
from .operators import mended_ops
from .recurrent import reference_ops

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


class Evaluator:
    """A segment of a model, or all of it, ready to run.

    Parameters
    ----------
    model : onnx.ModelProto
        Without functions, its default domain spelt "".
    opsets : mapping
        Version by domain.
    label : str
        How errors name the model.
    layers : mapping, optional
        As of `reference_ops`.
    operators : sequence of type
        Further operators of the model, as ReferenceEvaluator takes them.
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
        """Values of these names.

        Raises
        ------
        ArgumentError
            Values or shapes that an operator does not take; results beyond the memory limit.
        PyrnnxError
            Whatever else an operator raises; it names the operator.
        """
        try:
            with np.errstate(all="ignore"):  # infinities and NaNs are results like others
                results: Any = self._evaluator.run(list(outputs), inputs)
        except PyrnnxError:
            raise
        except Exception as error:  # raised outside of the operators
            raise _failure(self._label, error, "failed") from error
        return list(results)


def _failure(label: str, error: BaseException, what: str) -> PyrnnxError:
    """An evaluator's error, with the node that it is about: the innermost one on the way to where it was raised."""
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


def evaluate_node(node: NodeProto, inputs: Mapping[str, Any], opsets: Mapping[str, int]) -> dict[str, AnyArray] | None:
    """Outputs of one node by name; None where the evaluator does not have them as arrays."""
    found = numpy_operators.compute(node, [inputs[name] if name else None for name in node.input], opsets.get("", 0))
    if found is not None:
        return {node.output[0]: found}
    onnx = import_onnx()
    from onnx.reference import ReferenceEvaluator

    outputs = [name for name in node.output if name]
    graph = onnx.GraphProto(name="node")
    graph.node.append(node)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in inputs)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(graph, opsets=dict(opsets), new_ops=list(mended_ops(opsets.get("", 0))))
            results = evaluator.run(outputs, dict(inputs))
    except Exception:  # whatever is wrong will be raised, with the operator's name, when the model is called
        return None
    if not all(isinstance(one, np.ndarray) for one in results):
        return None
    return dict(zip(outputs, results, strict=True))
