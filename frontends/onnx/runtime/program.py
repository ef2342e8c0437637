"""Program of a graph: one ONNX Runtime session with pyrnnx's operators, or onnx's ReferenceEvaluator.

Program.call -> session.run -> custom operators -> layers
             -> evaluator.run, if ONNX Runtime is missing, rejects the graph, or fails in a call
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from pyrnnx import config
from pyrnnx.errors import ArgumentError, PyrnnxError, SlowRuntimeWarning, shortened, warn
from pyrnnx.layers import custom_operators
from pyrnnx.models.inputs import have_elements, named_arrays

from ..graph.constants import array_of
from ..graph.walk import Node, all_nodes, needed_names, node_label
from ..onnx_package import import_onnx
from .evaluator import Evaluator
from .failures import Failure
from .functions import new_evaluator
from .memory import Meter, metered
from .plan import EVALUATOR, ONNXRUNTIME, PYRNNX, Row, counted
from .replace import NotReplaceable, Replaced, kind_of, replaced
from .results import own_results
from .session import NotRunnable, new_session, set_opsets
from .settings import Settings
from .step_shapes import declare_loop_results, declared_shapes
from .types import Scope, Tensors, contents_of, declared_types, inferred, type_of_value, without_shape

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

# The rejected node in ONNX Runtime's messages.
_NODE = re.compile(
    r'with node name \'([^\']+)\'|with name \'([^\']+)\'|in node \(([^)]+)\)|In Node, \("([^"]+)"|[Nn]ode ?\(([^)]+)\)'
)
_MOST_TRIES = 32  # sessions; each excludes one more kind of node
Kinds = tuple[tuple[Any, int], ...]


class Program:
    """Thread-safe runner of a graph.

    Parameters
    ----------
    settings : Settings
    model : onnx.ModelProto
        The model of the graph.
    graph : onnx.GraphProto
        Folded, sorted, without functions; initializers have only names and types. Shapes of what its Loops stack are
        declared in place.
    tensors : mapping
        Values of the graph's initializers by name: onnx.TensorProto or array.
    wanted : sequence of str
        Names of the values that a call returns.
    known : sequence of (onnx.NodeProto, int)
        Nodes whose results have the same size in every call, and that size in bytes.
    replaceable : bool
        Whether a call may replace initializers that are also inputs. If not, they are constants.
    may_be_empty : set of str
        Inputs that only recurrent layers read. An array without elements is passed to ONNX Runtime only for these.

    Attributes
    ----------
    wanted : tuple of str
        Names of the values that a call returns.
    """

    def __init__(
        self,
        settings: Settings,
        model: ModelProto,
        graph: GraphProto,
        tensors: Tensors,
        wanted: Sequence[str],
        known: Sequence[tuple[Node | NodeProto, int]] = (),
        *,
        replaceable: bool = False,
        may_be_empty: Set[str] = frozenset(),
    ) -> None:
        self._settings, self._graph, self.wanted, self._known = settings, graph, tuple(wanted), known
        inputs = {value.name for value in graph.input}
        replaced_names = inputs if replaceable else set()
        self._tensors = {name: tensor for name, tensor in tensors.items() if name not in replaced_names}
        self._inputs = [value.name for value in graph.input if value.name not in self._tensors]
        passed = {*self._inputs, *self._tensors}
        self._computed = tuple(name for name in self.wanted if name not in passed)
        constant_outputs = {name for name in self.wanted if name in self._tensors}
        names = constant_outputs | (replaced_names & tensors.keys())
        self._defaults = {name: array_of(tensors[name], settings.label) for name in names}
        self._types = declared_types(graph.input)
        self._contents = contents_of(graph)
        if "Loop" in self._contents.operators:
            declare_loop_results(graph, declared_shapes(graph.input), self._tensors)
        self._scope = Scope(lambda: inferred(model, graph, settings.element_type))
        self._lock = threading.Lock()
        self._why_evaluated = settings.why_evaluated
        self._excluded: dict[bytes, str] = {}  # reasons by kind of node
        self._replaced: Replaced | None = None
        self._names, self._never_empty = set(self._inputs), set(self._inputs) - may_be_empty
        self._session: tuple[object, Any] | None = None
        # Settings, method `run`, and memory limit of a session whose calls need no meter, defaults or copies.
        self._plain: tuple[object, Any, int] | None = None
        self._evaluator: Evaluator | None = None
        self._unfit: set[Kinds] = set()
        self._warned: set[str] = set()
        if not self._why_evaluated and all(name in self._types for name in self._inputs):
            self._current({})
        elif self._why_evaluated:
            self._evaluate_all()
            self._warn_if_slow()

    def call(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the wanted values by name, in the caller's own memory, within the memory limit of a call."""
        plain = self._plain
        if plain is None or plain[0] != config.settings():
            return self._metered_call(inputs)
        if inputs.keys() != self._names or not have_elements(inputs.values()):
            return self._metered_call(inputs)
        try:
            results = plain[1](self._computed, inputs)
        except Exception as error:  # of several types
            return self._metered_call(inputs, error)
        values = named_arrays(self.wanted, results, plain[2])
        if values is not None:
            return values
        Meter(self._settings.label).add_results(self._computed, results)
        return dict(zip(self.wanted, results, strict=True))

    def _metered_call(self, inputs: Mapping[str, Any], error: Exception | None = None) -> dict[str, Any]:
        """Run a call like `call`, for all inputs and sessions; `error` is the session's if it has failed."""
        with metered(self._settings.label, self._known) as meter:
            feeds = {**self._defaults, **inputs} if self._defaults else inputs
            session = self._ready(feeds) if error is None else None
            if session is not None:
                try:
                    results = session.run(self._computed, {name: feeds[name] for name in self._inputs})
                except Exception as failure:  # of several types
                    results, session = self._failed(failure, feeds), None
            else:
                results = self._evaluate(feeds) if error is None else self._failed(error, feeds)
            if session is not None:
                meter.add_results(self._computed, results)
                if self._computed == self.wanted:
                    return dict(zip(self.wanted, results, strict=True))
            values = {**feeds, **dict(zip(self._computed, results, strict=True))}
            return own_results({name: values[name] for name in self.wanted}, inputs.values())

    def _ready(self, feeds: Mapping[str, Any]) -> Any:
        """Return the session for a call with these inputs; None if the evaluator runs it."""
        if self._why_evaluated:
            return None
        for name in self._never_empty:
            if getattr(feeds[name], "size", 1) == 0:  # ONNX Runtime crashes the process on some empty arrays
                return None
        if self._unfit and _kinds(self._inputs, feeds) in self._unfit:
            return None
        ready = self._session
        return ready[1] if ready is not None and ready[0] == config.settings() else self._current(feeds)

    def _failed(self, error: Exception, feeds: Mapping[str, Any]) -> Sequence[Any]:
        """Return the evaluator's results for a call in which ONNX Runtime failed.

        Raises
        ------
        PyrnnxError
            The error of a pyrnnx operator, or inputs that the evaluator rejects too.
        """
        own = custom_operators.original_error(error)
        if isinstance(own, MemoryError):
            raise ArgumentError(f"{self._settings.label}: {own}") from None
        if isinstance(own, PyrnnxError) or (own is not None and not isinstance(own, Exception)):
            raise own from None
        failure = Failure(f"a session of {len(self._graph.node)} nodes", error, self._warned)
        if self._settings.runtime == "onnxruntime":
            raise failure.error(self._settings.label) from error
        if failure.lacks:
            self._unfit.add(_kinds(self._inputs, feeds))
            self._plain = None
        try:
            results = self._evaluate(feeds)
        except PyrnnxError as second:
            label, text = self._settings.label, str(second)
            text = f"{text}; before, {failure}" if text.startswith(label) else f"{label}: {failure}; then {text}"
            raise type(second)(text) from error
        failure.warn(self._settings.label)
        return results

    # The session

    def _current(self, feeds: Mapping[str, Any]) -> Any:
        """Return the session for the current settings; None if ONNX Runtime cannot run the graph."""
        key = config.settings()
        with self._lock:
            if self._why_evaluated:
                return None
            if self._session is not None and self._session[0] == key:
                return self._session[1]
            for name in self._inputs:
                if name not in self._types and (declared := type_of_value(feeds.get(name))) is not None:
                    self._types[name] = declared
            try:
                session = self._new_session()
                self._session, self._plain = (key, session), self._plain_run(key, session)
                self._warn_if_slow()
            except (NotRunnable, NotReplaceable) as error:
                self._settings.check_allowed(f"it cannot run the model: {shortened(str(error))}")
                self._why_evaluated = shortened(str(error))
                self._evaluate_all()
                self._warn_if_slow()
                return None
            return self._session[1]

    def _plain_run(self, key: object, session: Any) -> tuple[object, Any, int] | None:
        assert self._replaced is not None
        limit = config.get_memory_limit()
        if self._replaced.has_functions or self._defaults or self._computed != self.wanted or self._unfit:
            return None
        return (key, session.run, limit) if sum(size for _, size in self._known) <= limit else None

    def _new_session(self) -> Any:
        """Return a session; nodes that ONNX Runtime rejects become Python functions.

        Raises
        ------
        NotRunnable, NotReplaceable
        """
        for _ in range(_MOST_TRIES):
            threads, limit = config.get_num_threads(), config.get_memory_limit()
            graph = replaced(
                self._settings, self._graph, self._contents, self._scope, self._tensors, self._excluded, threads
            )
            try:
                session = new_session(self._settings.label, *self._session_model(graph), threads, limit, self._contents)
                self._replaced = graph
                return session
            except NotRunnable as error:
                kind = _rejected(str(error), graph)
                if kind is None or kind in self._excluded:
                    raise
                self._excluded[kind] = str(error)
        raise NotRunnable("it lacks kernels for too many of the nodes")

    def _session_model(self, replaced: Replaced) -> tuple[ModelProto, Tensors]:
        """Return the model and the constants of a session."""
        onnx, graph = import_onnx(), replaced.model.graph
        for field in ("input", "output", "initializer"):
            graph.ClearField(field)
        for name in self._inputs:
            if name not in self._types:
                raise NotRunnable(f"the type of {name} is not known")
            graph.input.append(onnx.ValueInfoProto(name=name, type=without_shape(self._types[name])))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in self._computed)
        constants = replaced.constants
        if replaced.has_functions:  # they have their own constants
            constants = _used(constants, graph.node)
        set_opsets(replaced.model, {**self._settings.opsets, custom_operators.DOMAIN: 1})
        return replaced.model, constants

    # The evaluator

    def _evaluate(self, feeds: Mapping[str, Any]) -> Sequence[Any]:
        evaluator = self._evaluator
        if evaluator is None:
            with self._lock:
                evaluator = self._evaluate_all()
        return evaluator.run({name: feeds[name] for name in self._inputs}, self._computed)

    def _evaluate_all(self) -> Evaluator:
        if self._evaluator is None:
            nodes = list(self._graph.node)
            constants = _used(self._tensors, nodes)
            self._evaluator = new_evaluator(self._settings, nodes, self._inputs, self._types, self._computed, constants)
        return self._evaluator

    # The plan

    def _warn_if_slow(self) -> None:
        """Warn that the slow evaluator runs nodes, once per text."""
        if self._replaced is not None and not self._why_evaluated and not self._replaced.has_functions:
            return
        slow = [(what, why) for runner, what, why in self.rows() if runner == EVALUATOR]
        text = shortened("; ".join(dict.fromkeys(f"{what}: {why}" for what, why in slow)))
        if slow and self._settings.runtime == "auto" and text not in self._warned:
            self._warned.add(text)
            warn(
                f"{self._settings.label}: onnx's reference evaluator, many times slower than ONNX Runtime, runs a part "
                f'of the model ({text}); see model.plan, or set runtime="reference" to silence this warning',
                SlowRuntimeWarning,
            )

    def rows(self) -> list[Row]:
        """Return the rows of the plan: one for ONNX Runtime, and one for each other node."""
        nodes, is_ours = list(self._graph.node), self._settings.is_ours
        if self._replaced is not None and not self._why_evaluated:
            rest = [node for node in self._replaced.model.graph.node if node.domain != custom_operators.DOMAIN]
            return [*([(ONNXRUNTIME, shortened(counted(rest)), "")] if rest else []), *self._replaced.rows]
        rest = [node for node in nodes if not is_ours(node)]
        runner = EVALUATOR if self._why_evaluated else ONNXRUNTIME  # its session waits for the types of a call
        rows: list[Row] = [(runner, shortened(counted(rest)), self._why_evaluated)] if rest else []
        return rows + [(PYRNNX, node_label(node), "") for node in all_nodes(nodes) if is_ours(node)]


def _used(constants: Tensors, nodes: Iterable[NodeProto]) -> Tensors:
    used = {name for node in nodes for name in needed_names(node)}
    return {name: tensor for name, tensor in constants.items() if name in used}


def _kinds(names: Sequence[str], feeds: Mapping[str, Any]) -> Kinds:
    """Return the dtypes and ranks that select a session's kernels."""
    values = [feeds[name] for name in names]
    return tuple((getattr(value, "dtype", type(value)), getattr(value, "ndim", 0)) for value in values)


def _rejected(message: str, graph: Replaced) -> bytes | None:
    """Return the kind of the node named in a message of ONNX Runtime; None if it names none."""
    for match in _NODE.finditer(message):
        name = next(group for group in match.groups() if group)
        if name in graph.nodes:
            node, scope = graph.nodes[name]
            return kind_of(node, scope.types)
    return None
