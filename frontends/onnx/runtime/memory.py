"""Memory limit of a call: checked before each operator runs, counted after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx import config
from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, shortened, shown

from ..graph.sizes import bytes_beyond
from ..graph.walk import Node, node_label
from .control import scan_inputs

if TYPE_CHECKING:
    from onnx import NodeProto

# Exceptions that wrong inputs cause; any other exception means that the evaluator lacks a feature.
_INPUT_ERRORS = (IndexError, ValueError, ArithmeticError, MemoryError)
_SHOWN_INPUTS = 8


class Meter:
    """Byte counter of one call in one thread."""

    def __init__(self, label: str) -> None:
        self.label, self.limit, self.used = label, config.get_memory_limit(), 0

    def ask(self, node: Node | NodeProto | str, expected: int) -> None:
        """Reject results of a node (or of a described value) that exceed the limit.

        Raises
        ------
        ArgumentError
        """
        if self.used + expected > self.limit:
            taken = f" on top of {self.used}" if self.used else ""
            what = node if isinstance(node, str) else node_label(node)
            raise ArgumentError(
                f"{self.label}: {what} would take {expected} bytes{taken}; a call may take {self.limit} "
                "(pyrnnx.set_memory_limit allows more)"
            )

    def add_results(self, names: Sequence[str], results: Sequence[Any]) -> None:
        """Count the results of a session, named by its outputs.

        Raises
        ------
        ArgumentError
            More than the call may take.
        """
        for name, result in zip(names, results, strict=True):
            size = result.nbytes if type(result) is np.ndarray else _new_bytes(result, ())
            if self.used + size > self.limit:
                self.ask(f"the output {shown(name)}", size)
            self.used += size


class _Current(threading.local):
    meter: Meter | None = None


_current = _Current()


class metered:  # noqa: N801  (used like a function)
    """Context that counts the memory of a call.

    Parameters
    ----------
    label : str
        How errors name the model.
    known : sequence of (onnx.NodeProto, int)
        Nodes and the bytes of their results, checked before anything runs.
    """

    def __init__(self, label: str, known: Sequence[tuple[Node | NodeProto, int]]) -> None:
        self._meter = meter = Meter(label)
        for node, size in known:
            meter.ask(node, size)
            meter.used += size
        meter.used = 0

    def __enter__(self) -> Meter:
        self._before, _current.meter = _current.meter, self._meter
        return self._meter

    def __exit__(self, *_: object) -> None:
        _current.meter = self._before


def is_metered() -> bool:
    """Return whether this thread is in a metered call."""
    return _current.meter is not None


@contextmanager
def forgotten() -> Iterator[None]:
    """Return a context whose results no longer count after it; their owner copies them into bounded memory."""
    meter = _current.meter
    before = 0 if meter is None else meter.used
    try:
        yield
    finally:
        if meter is not None:
            meter.used = before


def ask(node: Node | NodeProto | str, expected: int) -> None:
    """Check `expected` bytes against the limit of the current call, if any."""
    if _current.meter is not None:
        _current.meter.ask(node, expected)


def grown(node: NodeProto | str, result: Any) -> None:
    """Count an additional result: a copy, or the result of an iteration.

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
    """Meter the operators of a ReferenceEvaluator and of its bodies, in place.

    Its constants become read-only, because results can be views of them.
    """
    _protect(evaluator.rt_inits_.values())
    for operator in evaluator.rt_nodes_:
        if "run" in vars(operator):  # already guarded: functions of onnx share their bodies
            continue
        _protect(vars(operator).values())
        names = [attribute.name for attribute in operator.onnx_node.attribute] + ["impl_"]
        for body in [getattr(operator, name, None) for name in names]:
            if isinstance(body, type(evaluator)):
                guard(body)
                body.run = _body_run(body.run, operator.onnx_node, body)
        operator.run = _operator_run(operator.run, operator.onnx_node)


def _protect(values: Iterable[Any]) -> None:
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False


def _operator_run(run: Callable[..., Any], node: NodeProto) -> Callable[..., Any]:
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
        for result in results:
            new += _new_bytes(result, arrays)
        if before + new > meter.limit:
            meter.ask(node, new)
        meter.used = before + new
        return results

    return guarded


def _body_run(run: Callable[..., Any], node: NodeProto, body: Any) -> Callable[..., Any]:
    """Return `run` that, after a body's run, counts only the results that Loop and Scan collect."""
    collected = len(body.output_names)
    if node.op_type == "Loop":
        collected = len(body.input_names) - 1
    elif node.op_type == "Scan":
        collected = len(body.input_names) - scan_inputs(node)

    def guarded(*arguments: Any, **keywords: Any) -> Any:
        meter = _current.meter
        if meter is None:
            return run(*arguments, **keywords)
        before = meter.used
        results = run(*arguments, **keywords)
        meter.used = before + sum(_new_bytes(result, ()) for result in results[collected:])
        return results

    return guarded


def _new_bytes(result: Any, arrays: Sequence[Any]) -> int:
    """Return the bytes of a result; 0 if it is a view of an input."""
    if isinstance(result, list):
        return sum(_new_bytes(element, arrays) for element in result)
    if not isinstance(result, np.ndarray):
        return 0
    for array in arrays:
        # Already counted: an input, an element of a sequence, a view. Comparing memory bounds is fast and enough.
        if array is result or isinstance(array, list):
            return 0
        if result.base is not None and array is not None and np.may_share_memory(result, array):
            return 0
    return result.nbytes


def failure(
    label: str, node: NodeProto, arrays: Sequence[Any], error: Exception, runner: str = "in onnx's ReferenceEvaluator"
) -> PyrnnxError:
    """Return an operator's error that names the node and describes its inputs."""
    where, cause = f"{label}: {node_label(node)}", error
    while isinstance(cause.__cause__, Exception):
        cause = cause.__cause__
    why = f"({type(cause).__name__}: {shortened(str(cause))})"
    if not isinstance(cause, _INPUT_ERRORS):
        return UnsupportedError(f"{where} failed {runner} {why}")
    named = zip(node.input, arrays, strict=False)
    inputs = [f"{shown(name)} {_described(value)}" for name, value in named if value is not None][:_SHOWN_INPUTS]
    return ArgumentError(f"{where} failed: it rejects its inputs, {'; '.join(inputs) or 'none'} {why}")


def _described(value: Any) -> str:
    """Return a text with dtype and shape, and the range of integers."""
    if not isinstance(value, np.ndarray):
        return f"({type(value).__name__})"
    text = f"{value.dtype} {value.shape}"
    if value.dtype.kind in "iu" and value.size:
        text += f" from {value.min()} to {value.max()}"
    return text
