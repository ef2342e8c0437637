"""What a call of a model allocates: asked before each operator runs, counted after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyrnnx import config
from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, shortened, shown

from ..graph.sizes import bytes_beyond
from ..graph.walk import node_label

# What the values or shapes of an operator's inputs raise; any other exception means that the evaluator lacks something.
_OF_INPUTS = (IndexError, ValueError, ArithmeticError, MemoryError)
_SHOWN_INPUTS = 8


class Meter:
    """The bytes of one call so far; one for each call and thread."""

    def __init__(self, label: str) -> None:
        self.label, self.limit, self.used = label, config.get_memory_limit(), 0

    def ask(self, node: Any, expected: int) -> None:
        """Reject results that would not fit, of a node or of what has that name.

        Raises
        ------
        ArgumentError
        """
        if self.used + expected > self.limit:
            taken = f" beside {self.used} taken already" if self.used else ""
            what = node if isinstance(node, str) else node_label(node)
            raise ArgumentError(
                f"{self.label}: {what} would take {expected} bytes{taken}; a call may take {self.limit} "
                "(pyrnnx.set_memory_limit allows more)"
            )


class _Current(threading.local):
    meter: Meter | None = None


_current = _Current()


@contextmanager
def metered(label: str, known: Sequence[tuple[Any, int]]) -> Iterator[None]:
    """Around a call; `known` are nodes and the bytes of their results, which are asked for before anything runs."""
    before, meter = _current.meter, Meter(label)
    for node, size in known:
        meter.ask(node, size)
        meter.used += size
    meter.used, _current.meter = 0, meter
    try:
        yield
    finally:
        _current.meter = before


def is_metered() -> bool:
    """Whether this thread is in a call whose memory is counted."""
    return _current.meter is not None


def ask(node: Any, expected: int) -> None:
    """As `Meter.ask` of the call that this thread is in; nothing outside of calls of models."""
    if _current.meter is not None:
        _current.meter.ask(node, expected)


def grown(node: Any, result: Any) -> None:
    """Count a result that is kept beside others: of a segment, or of an iteration.

    Raises
    ------
    ArgumentError
        More than the call may take.
    """
    if (meter := _current.meter) is not None:
        new = _new_bytes(result, ())
        meter.ask(node, new)
        meter.used += new


def guard(evaluator: Any) -> None:
    """Let the operators of a ReferenceEvaluator, and of those in its bodies, run under the meter of the call.

    Nobody can write to its constants then: results can be views of them.
    """
    _protect(evaluator.rt_inits_.values())
    for operator in evaluator.rt_nodes_:
        if "run" in vars(operator):  # guarded already: operators that onnx defines as functions share their bodies
            continue
        _protect(vars(operator).values())
        names = [one.name for one in operator.onnx_node.attribute] + ["impl_"]
        for body in [getattr(operator, name, None) for name in names]:
            if isinstance(body, type(evaluator)):
                guard(body)
                body.run = _body_run(body.run, operator.onnx_node, body)
        operator.run = _operator_run(operator.run, operator.onnx_node)


def _protect(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


def _operator_run(run: Callable[..., Any], node: Any) -> Callable[..., Any]:
    expected_bytes = bytes_beyond(node)

    def guarded(*arrays: Any, **keywords: Any) -> Any:
        meter = _current.meter
        if meter is None:
            return run(*arrays, **keywords)
        before = meter.used
        if expected_bytes is not None and (expected := expected_bytes(arrays, meter.limit - before)):
            meter.ask(node, expected)
        try:
            results = run(*arrays, **keywords)
        except PyrnnxError:
            raise
        except Exception as error:
            raise failure(meter.label, node, arrays, error) from error
        meter.used = before
        new = 0
        for one in results:
            new += _new_bytes(one, arrays)
        if before + new > meter.limit:
            meter.ask(node, new)
        meter.used = before + new
        return results

    return guarded


def _body_run(run: Callable[..., Any], node: Any, body: Any) -> Callable[..., Any]:
    """What a body computes is gone after its run, but for the results that Loop and Scan collect."""
    collected = len(body.output_names)
    if node.op_type == "Loop":
        collected = len(body.input_names) - 1
    elif node.op_type == "Scan":
        inputs = next((one.i for one in node.attribute if one.name == "num_scan_inputs"), 0)
        collected = len(body.input_names) - inputs

    def guarded(*arguments: Any, **keywords: Any) -> Any:
        meter = _current.meter
        if meter is None:
            return run(*arguments, **keywords)
        before = meter.used
        results = run(*arguments, **keywords)
        meter.used = before + sum(_new_bytes(one, ()) for one in results[collected:])
        return results

    return guarded


def _new_bytes(result: Any, arrays: Sequence[Any]) -> int:
    """Bytes of a result that is not a view of an input."""
    if isinstance(result, list):
        return sum(_new_bytes(one, arrays) for one in result)
    if not isinstance(result, np.ndarray):
        return 0
    for one in arrays:
        # Counted already: an input, a part of a sequence, a view. Comparing the bounds of memory is quick, and enough.
        if one is result or isinstance(one, list):
            return 0
        if result.base is not None and one is not None and np.may_share_memory(result, one):
            return 0
    return result.nbytes


def failure(
    label: str, node: Any, arrays: Sequence[Any], error: Exception, runner: str = "in onnx's ReferenceEvaluator"
) -> PyrnnxError:
    """What running an operator raised, with the node and what it was given."""
    where, cause = f"{label}: {node_label(node)}", error
    while isinstance(cause.__cause__, Exception):
        cause = cause.__cause__
    why = f"({type(cause).__name__}: {shortened(str(cause))})"
    if not isinstance(cause, _OF_INPUTS):
        return UnsupportedError(f"{where} failed {runner} {why}")
    named = zip(node.input, arrays, strict=False)
    given = [f"{shown(name)} {_described(value)}" for name, value in named if value is not None][:_SHOWN_INPUTS]
    return ArgumentError(f"{where} failed: it does not take its inputs, {'; '.join(given) or 'none'} {why}")


def _described(value: Any) -> str:
    """A value of an input: its dtype and shape, and a number or two where that is all."""
    if not isinstance(value, np.ndarray):
        return f"({type(value).__name__})"
    text = f"{value.dtype} {value.shape}"
    if value.dtype.kind in "iu" and value.size:
        text += f" from {value.min()} to {value.max()}"
    return text
