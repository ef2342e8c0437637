"""The steps of a plan: each takes the values so far, by name, constants among them, and gives those of its outputs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pyrnnx import config
from pyrnnx.conventions import CALL_ARGUMENTS
from pyrnnx.errors import FormatError, PyrnnxError
from pyrnnx.layer import Layer

from ..graph.walk import node_label
from ..makers import MAKERS
from ..schemas import OPERATORS
from . import control
from .evaluator import Evaluator
from .failures import Failure, note
from .memory import ask, failure, grown, is_metered
from .recurrent import Call, packed_bytes, result_bytes
from .segments import Piece
from .session import NotRunnable, ortvalue, segment_model, session_of
from .types import Types, type_of_value, without_shape
from .views import Scope, Views

Values = Mapping[str, Any]
Kinds = tuple[tuple[Any, int], ...]


class Step(Protocol):
    """What a plan runs."""

    def __call__(self, values: Values) -> Sequence[Any]: ...


class Body(Protocol):
    """The plan of a body.

    Attributes
    ----------
    compiled : sequence of (step, names of its outputs)
    wanted : sequence of str
        Names of its outputs.
    """

    graph: Any

    @property
    def constants(self) -> Mapping[str, Any]: ...
    @property
    def wanted(self) -> Sequence[str]: ...
    @property
    def compiled(self) -> Sequence[tuple[Step, Sequence[str]]]: ...

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

    Where a session fails, the reference evaluator runs the segment, unless the caller is strict: it takes what the text
    of an operator allows. For inputs of the same types and ranks it does so at once, where the session lacks something;
    where it fails for values, which the next call may have others of, the session is tried again.
    """

    def __init__(
        self,
        label: str,
        opsets: Mapping[str, int],
        piece: Piece,
        constants: Mapping[str, Any],
        types: Types,
        *,
        strict: bool,
    ) -> None:
        self._label, self._opsets, self._piece, self._constants = label, opsets, piece, constants
        self._strict = strict
        self._types = {name: without_shape(types[name]) for name in piece.inputs if name in types}
        self._outputs = list(piece.outputs)
        self._lock = threading.Lock()
        self._session: tuple[int, Any] | None = None
        self._fallback: ReferenceSegment | None = None
        self._unfit: set[Kinds] = set()  # of inputs
        self._warned: set[str] = set()
        if len(self._types) == len(piece.inputs):
            self._current()

    def _current(self, values: Values | None = None) -> Any:
        """The session for the settings of the moment."""
        key = config.settings()
        with self._lock:
            if self._session is None or self._session[0] != key:
                types = dict(self._types)
                for name in self._piece.inputs:
                    if name not in types:
                        found = None if values is None else type_of_value(values[name])
                        if found is None:
                            raise NotRunnable(f"the type of {name} is not known")
                        types[name] = found
                threads, limit = config.get_num_threads(), config.get_memory_limit()
                model = self._model(types, {})
                self._session = key, session_of(self._label, model, self._constants, threads, limit)
                self._types = types
            return self._session[1]

    def _model(self, types: Types, constants: Mapping[str, Any]) -> Any:
        piece = self._piece
        return segment_model(piece.nodes, piece.inputs, types, piece.outputs, constants, self._opsets)

    def __call__(self, values: Values) -> Sequence[Any]:
        found = self._session
        given = {name: values[name] for name in self._piece.inputs}
        if any(getattr(one, "size", 1) == 0 for one in given.values()):
            return self._reference()(values)  # ONNX Runtime ends the process on some empty arrays
        if self._unfit and _kinds(given) in self._unfit:
            return self._reference()(values)
        try:
            session = self._current(values) if found is None or found[0] != config.settings() else found[1]
            results: Sequence[Any] = session.run(self._outputs, given)
        except Exception as error:  # of several types
            return self._failed(error, given)
        for one in results:
            grown(self._piece.nodes[-1], one)
        return results

    def bind(self, values: Values, outputs: Values) -> tuple[Any, Any] | None:
        """A function and its argument: running that reads and writes these arrays where they are.

        None where the reference evaluator runs what is of the types and ranks of these values.

        Raises
        ------
        Exception
            The session fails.
        """
        if _kinds({name: values[name] for name in self._piece.inputs}) in self._unfit:
            return None
        session = self._current(values)
        binding = session.io_binding()
        for name in self._piece.inputs:
            binding.bind_ortvalue_input(name, ortvalue(values[name]))
        for name, array in outputs.items():
            binding.bind_ortvalue_output(name, ortvalue(array))
        session.run_with_iobinding(binding)
        return session.run_with_iobinding, binding

    def views(self, scope: Scope) -> Views:
        """What NumPy makes of the nodes, from buffers."""
        return Views(self._piece.nodes, self._constants, scope)

    def _failed(self, error: Exception, given: Values) -> Sequence[Any]:
        failed = Failure(f"a segment of {len(self._piece.nodes)} nodes", error, self._warned)
        if self._strict:
            raise failed.error(self._label) from error
        if failed.lacks:
            self._unfit.add(_kinds(given))
        try:
            results = self._reference()(given)
        except PyrnnxError as second:
            raise type(second)(f"{second}; before, {failed}") from error
        note(failed)
        return results

    def _reference(self) -> ReferenceSegment:
        with self._lock:
            if self._fallback is None:
                model = self._model(self._types, self._constants)
                evaluator = Evaluator(model, self._opsets, self._label, None)
                self._fallback = ReferenceSegment(evaluator, self._piece)
            return self._fallback


def _kinds(given: Values) -> Kinds:
    """What a session may lack something for: dtypes and ranks."""
    return tuple((getattr(one, "dtype", type(one)), getattr(one, "ndim", 0)) for one in given.values())


class RecurrentStep:
    """A recurrent node, run by its layer; one whose weights are computed gets a layer in every call."""

    def __init__(self, piece: Piece, layer: Any, opsets: Mapping[str, int]) -> None:
        (self._node,) = piece.nodes
        self._row, self._maker = OPERATORS[self._node.op_type], MAKERS[self._node.op_type]
        self._opset = opsets.get(self._node.domain, 1)
        self._layer = layer if isinstance(layer, Layer) else None
        self._sources = {name: one for name, one in zip(self._row.inputs, self._node.input, strict=False) if one}
        self._arguments = [self._sources.get(name, "") for name in CALL_ARGUMENTS]
        self._places = piece.places

    def __call__(self, values: Values) -> Sequence[Any]:
        layer = self._layer or self._made(values)
        X, lengths, h, c = map(values.get, self._arguments)
        if is_metered():
            ask(self._node, result_bytes(layer.op, layer.convention, X))
        results = layer.run(X, lengths, h, c)
        return [results[place] for place in self._places]

    def _made(self, values: Values) -> Layer:
        if is_metered():
            ask(self._node, packed_bytes(*(values.get(self._sources.get(name, "")) for name in "WR")))
        sources = [self._sources[name] for name in self._row.weights if name in self._sources]
        return self._maker.layer(self._node, {one: values.get(one) for one in sources}, self._opset)


class CallStep:
    """A node of another domain, run by a function."""

    def __init__(self, piece: Piece, call: Call) -> None:
        (self._node,) = piece.nodes
        self._call, self._names = call, tuple(self._node.input)
        self._places = piece.places

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
        self._places = piece.places

    def __call__(self, values: Values) -> Sequence[Any]:
        node, inputs = self._node, [values.get(name) for name in self._names]
        try:
            results = self._run(node, self.bodies, inputs, values)
            return [results[place] for place in self._places]
        except PyrnnxError:
            raise
        except Exception as error:  # of several types, by what is wrong with the values
            raise failure(self._label, node, inputs, error, "outside of its bodies") from error

    @property
    def is_branch(self) -> bool:
        return bool(self._node.op_type == "If")

    @property
    def condition(self) -> str:
        """The name of an If's condition."""
        name: str = self._names[0]
        return name

    def branch(self, condition: Any) -> Body:
        """The body of an If that the condition tells."""
        return self.bodies[control.branch(self._node, condition)]

    def results_of(self, body: Body) -> list[str]:
        """The names that the outputs of an If have in a body."""
        return [body.wanted[place] for place in self._places]


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
