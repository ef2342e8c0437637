"""The steps of a plan: each takes the values so far, by name, constants among them, and gives those of its outputs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyrnnx import config
from pyrnnx.conventions import CALL_ARGUMENTS
from pyrnnx.errors import FormatError, PyrnnxError, SlowRuntimeWarning, shortened, warn
from pyrnnx.layer import Layer

from ..graph.walk import node_label
from ..makers import MAKERS
from ..schemas import OPERATORS
from . import control
from .evaluator import Evaluator
from .memory import ask, failure, grown, is_metered
from .recurrent import Call, result_bytes
from .segments import Piece
from .session import NotRunnable, ortvalue, segment_model, session_of
from .types import Types, type_of_value, without_shape

Values = Mapping[str, Any]


class Step(Protocol):
    """What a plan runs."""

    def __call__(self, values: Values) -> Sequence[Any]: ...


class Body(Protocol):
    """The plan of a body."""

    graph: Any

    def rows(self, indent: str = "") -> list[tuple[str, str, str]]: ...
    def run(self, given: Mapping[str, Any]) -> Sequence[Any]: ...


class ReferenceSegment:
    """Nodes run by onnx's ReferenceEvaluator; recurrent ones among them with our layers."""

    def __init__(self, evaluator: Evaluator, piece: Piece) -> None:
        self._evaluator, self._inputs, self._outputs = evaluator, piece.inputs, piece.outputs

    def __call__(self, values: Values) -> Sequence[Any]:
        # A state that a first call lacks is None, as an input that a node does not have.
        return self._evaluator.run({name: values.get(name) for name in self._inputs}, self._outputs)


class RuntimeSegment:
    """Nodes run by an ONNX Runtime session, made for the number of threads and the memory limit of the moment.

    Where a session fails, the reference evaluator runs the segment: it has the better errors, and takes what the text
    of an operator allows.
    """

    def __init__(
        self, label: str, opsets: Mapping[str, int], piece: Piece, constants: Sequence[Any], types: Types
    ) -> None:
        self._label, self._opsets, self._piece, self._constants = label, opsets, piece, constants
        self._types = {name: without_shape(types[name]) for name in piece.inputs if name in types}
        self._outputs = list(piece.outputs)
        self._lock = threading.Lock()
        self._session: tuple[int, Any] | None = None
        self._fallback: ReferenceSegment | None = None
        if len(self._types) == len(piece.inputs):
            self._current()

    def _current(self, values: Values | None = None) -> Any:
        """The session for the settings of the moment."""
        key = config.settings()
        with self._lock:
            if self._session is None or self._session[0] != key:
                for name in self._piece.inputs:
                    if name not in self._types:
                        found = None if values is None else type_of_value(values[name])
                        if found is None:
                            raise NotRunnable(f"the type of {name} is not known")
                        self._types[name] = found
                threads, limit = config.get_num_threads(), config.get_memory_limit()
                self._session = key, session_of(self._model(), threads, limit)
            return self._session[1]

    def _model(self) -> Any:
        piece = self._piece
        types = {name: self._types[name] for name in piece.inputs if name in self._types}
        return segment_model(piece.nodes, types, piece.outputs, self._constants, self._opsets)

    def __call__(self, values: Values) -> Sequence[Any]:
        found = self._session
        given = {name: values[name] for name in self._piece.inputs}
        if any(getattr(one, "size", 1) == 0 for one in given.values()):
            return self._reference()(values)  # ONNX Runtime ends the process on some empty arrays
        try:
            session = self._current(values) if found is None or found[0] != config.settings() else found[1]
            results: Sequence[Any] = session.run(self._outputs, given)
        except Exception as error:  # of several types
            return self._failed(error, values)
        for one in results:
            grown(self._piece.nodes[-1], one)
        return results

    def bind(self, values: Values, outputs: Values) -> tuple[Any, Any]:
        """A function and its argument: running that reads and writes these arrays where they are."""
        session = self._current(values)
        binding = session.io_binding()
        for name in self._piece.inputs:
            binding.bind_ortvalue_input(name, ortvalue(values[name]))
        for name, array in outputs.items():
            binding.bind_ortvalue_output(name, ortvalue(array))
        return session.run_with_iobinding, binding

    def _failed(self, error: Exception, values: Values) -> Sequence[Any]:
        results = self._reference()(values)
        warn(
            f"{self._label}: ONNX Runtime failed in a segment of {len(self._piece.nodes)} nodes, which onnx's "
            f"reference evaluator ran, many times slower: {shortened(str(error))}",
            SlowRuntimeWarning,
        )
        return results

    def _reference(self) -> ReferenceSegment:
        with self._lock:
            if self._fallback is None:
                evaluator = Evaluator(self._model(), self._opsets, self._label, None)
                self._fallback = ReferenceSegment(evaluator, self._piece)
            return self._fallback


class RecurrentStep:
    """A recurrent node, run by its layer; one whose weights are computed gets a layer in every call."""

    def __init__(self, piece: Piece, layer: Any, opsets: Mapping[str, int]) -> None:
        (self._node,) = piece.nodes
        self._row, self._maker = OPERATORS[self._node.op_type], MAKERS[self._node.op_type]
        self._opset = opsets.get(self._node.domain, 1)
        self._layer = layer if isinstance(layer, Layer) else None
        self._sources = {name: one for name, one in zip(self._row.inputs, self._node.input, strict=False) if one}
        self._arguments = [self._sources.get(name, "") for name in CALL_ARGUMENTS]
        self._places = [place for place, name in enumerate(self._node.output) if name in piece.outputs]

    def __call__(self, values: Values) -> Sequence[Any]:
        layer = self._layer or self._made(values)
        X, lengths, h, c = map(values.get, self._arguments)
        if is_metered():
            ask(self._node, result_bytes(layer.op, layer.convention, X))
        results = layer.run(X, lengths, h, c)
        return [results[place] for place in self._places]

    def _made(self, values: Values) -> Layer:
        sources = [self._sources[name] for name in self._row.weights if name in self._sources]
        return self._maker.layer(self._node, {one: values.get(one) for one in sources}, self._opset)


class CallStep:
    """A node of another domain, run by a function."""

    def __init__(self, piece: Piece, call: Call) -> None:
        (self._node,) = piece.nodes
        self._call, self._names = call, tuple(self._node.input)
        self._places = [place for place, name in enumerate(self._node.output) if name in piece.outputs]

    def __call__(self, values: Values) -> Sequence[Any]:
        results = self._call(self._node, [values.get(name) for name in self._names])
        return [results[place] for place in self._places]


class ControlStep:
    """If, Loop or Scan around recurrent operators."""

    def __init__(self, label: str, piece: Piece, bodies: Mapping[str, Body]) -> None:
        (self._node,) = piece.nodes
        self._label, self.bodies = label, bodies
        self._run, expected = _CONTROL[self._node.op_type]
        if bodies.keys() != expected:
            raise FormatError(
                f"{label}: {node_label(self._node)} has the bodies {', '.join(bodies)}; expected {', '.join(expected)}"
            )
        self._names = tuple(self._node.input)
        self._places = [place for place, name in enumerate(self._node.output) if name in piece.outputs]

    def __call__(self, values: Values) -> Sequence[Any]:
        node, inputs = self._node, [values.get(name) for name in self._names]
        try:
            results = self._run(node, self.bodies, inputs, values)
            return [results[place] for place in self._places]
        except PyrnnxError:
            raise
        except Exception as error:  # of several types, by what is wrong with the values
            raise failure(self._label, node, inputs, error, "around recurrent operators") from error


def _if(node: Any, bodies: Mapping[str, Body], inputs: Sequence[Any], outer: Values) -> Sequence[Any]:
    return bodies[control.branch(node, inputs[0])].run(outer)


def _repeated(run: Any) -> Any:
    def repeat(node: Any, bodies: Mapping[str, Body], inputs: Sequence[Any], outer: Values) -> Sequence[Any]:
        body = bodies["body"]
        names, types = [one.name for one in body.graph.input], [one.type for one in body.graph.output]
        results: Sequence[Any] = run(node, names, types, body.run, inputs, outer, lambda result: grown(node, result))
        return results

    return repeat


# What runs an operator, and the bodies that it has.
_CONTROL = {
    "If": (_if, {"then_branch", "else_branch"}),
    "Loop": (_repeated(control.run_loop), {"body"}),
    "Scan": (_repeated(control.run_scan), {"body"}),
}
CONTROL = frozenset(_CONTROL)
