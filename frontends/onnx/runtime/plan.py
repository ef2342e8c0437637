"""A graph as a plan: segments for ONNX Runtime or onnx's reference evaluator, and recurrent steps of ours between them.

    graph (folded, sorted)  ->  pieces (segments.py)  ->  steps (steps.py), run one after the other over values by name

If, Loop and Scan that hold no recurrent operator are nodes of a segment; around one, each body is a plan of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx import config, notebook
from pyrnnx.errors import FormatError, SlowRuntimeWarning, shortened, shown, warn

from ..graph.constants import array_of
from ..graph.walk import all_nodes, needed_names, node_label, subgraphs
from ..nodes import is_recurrent
from .bound import Bound
from .choice import Choice, Settings
from .evaluator import Evaluator
from .failures import Telling
from .memory import metered
from .recurrent import called_ops
from .results import own_results
from .segments import Piece, Runner, cut
from .session import NotRunnable, segment_model
from .steps import CallStep, ControlStep, RecurrentStep, ReferenceSegment, RuntimeSegment, Step
from .types import Tensors, Types, inferred, types_of

_WORDS: Mapping[type, tuple[str, str]] = {  # one, and several
    RuntimeSegment: ("segment of ONNX Runtime", "segments of ONNX Runtime"),
    ReferenceSegment: ("segment of the reference evaluator", "segments of the reference evaluator"),
    RecurrentStep: ("recurrent step", "recurrent steps"),
    CallStep: ("call of a layer", "calls of layers"),
    ControlStep: ("step with bodies", "steps with bodies"),
}
_MOST_BOUND = 4  # threads that call a model at once, and have buffers of their own


def plan(
    settings: Settings,
    model: Any,
    graph: Any,
    tensors: Tensors,
    wanted: Sequence[str],
    known: Sequence[tuple[Any, int]],
    *,
    replaceable: bool,
) -> Plan:
    """The plan of a model.

    Parameters
    ----------
    settings : Settings
    model : onnx.ModelProto
        Whose graph it is.
    graph, wanted, replaceable
        As of `Plan`.
    tensors : mapping
        The graph's initializers by name; in the graph itself they need no values.
    known : sequence of (onnx.NodeProto, int)
        Nodes of which every run will make results of so many bytes, whatever its inputs.
    """
    typed = graph if settings.fallback else inferred(model, graph, settings.element_type)
    made = Plan(settings, graph, typed, wanted, tensors=tensors, known=known, replaceable=replaceable)
    rows = [(what, why) for runner, what, why in made.rows() if runner.strip() == Runner.REFERENCE.value]
    if rows and settings.runtime == "auto":
        slow = shortened("; ".join(dict.fromkeys(f"{what}: {why}" for what, why in rows)))
        warn(
            f"{settings.label}: onnx's reference evaluator, many times slower than ONNX Runtime, runs a part of the "
            f'model ({slow}); see model.plan, and runtime="reference" for it without this warning',
            SlowRuntimeWarning,
        )
    return made


class Plan:
    """A graph ready to run, from any number of threads.

    Parameters
    ----------
    settings : Settings
    graph : onnx.GraphProto
        Folded, sorted, without functions.
    typed : onnx.GraphProto
        The same with types, as `types.inferred` gives it.
    wanted : sequence of str
        Names of the values that are returned.
    tensors : mapping
        Initializers of this graph, and of those around it, by name. Default: those of this graph.
    types : mapping, optional
        Of the values of the graphs around it.
    outer : set of str
        The values of the graphs around it.
    known : sequence of (onnx.NodeProto, int)
        As of `plan`.
    replaceable : bool
        Whether initializers that are inputs too are defaults, which a call may replace; else they are constants.
    """

    def __init__(
        self,
        settings: Settings,
        graph: Any,
        typed: Any,
        wanted: Sequence[str],
        *,
        tensors: Tensors | None = None,
        types: Types | None = None,
        outer: frozenset[str] = frozenset(),
        known: Sequence[tuple[Any, int]] = (),
        replaceable: bool = False,
    ) -> None:
        self._made_of: tuple[Sequence[Any], Mapping[str, Any]] = (
            (settings, graph, typed, tuple(wanted)),
            {
                "tensors": None if tensors is None else dict(tensors),
                "types": dict(types or {}),
                "outer": outer,
                "known": list(known),
                "replaceable": replaceable,
            },
        )
        self.settings, self.graph, self._typed, self.wanted = settings, graph, typed, tuple(wanted)
        self._known = known
        tensors = {one.name: one for one in graph.initializer} if tensors is None else tensors
        inputs = {one.name for one in graph.input} if replaceable else set()
        self._tensors = {name: one for name, one in tensors.items() if name not in inputs}
        self._types = types_of(typed, types or {})
        self._nodes = list(graph.node)  # held, for nodes are known by their identity
        self._choice = Choice(settings, self._types, self._tensors)
        made = {name for node in self._nodes for name in node.output}
        self._outer = outer | {one.name for one in graph.input} | made
        self.pieces, self.steps = self._made()
        read = {name for piece in self.pieces if piece.runner is Runner.PYRNNX for name in piece.nodes[0].input}
        needed = (read | set(self.wanted)) & self._tensors.keys()
        self.constants = {name: self._array(self._tensors[name]) for name in needed}
        self.constants |= {name: self._array(tensors[name]) for name in inputs & tensors.keys()}
        self._check(outer | {one.name for one in graph.input})
        last = {name: number for number, piece in enumerate(self.pieces) for name in piece.inputs}
        dead: list[list[str]] = [[] for _ in self.pieces]
        kept = set(self.wanted)
        for name, number in last.items():
            if name not in kept:
                dead[number].append(name)
        own_values = {name for piece in self.pieces for name in piece.outputs} | self.constants.keys()
        needs = [one.name for one in graph.input] + [name for piece in self.pieces for name in piece.inputs]
        own_values |= self._tensors.keys()  # inputs with defaults among them
        self._needs = [name for name in dict.fromkeys(needs + list(self.wanted)) if name not in own_values]
        # Only sessions gain from buffers. Defaults may be given or not.
        has_session = any(piece.runner is Runner.ONNXRUNTIME for piece in self.pieces)
        self._is_bindable = has_session and not replaceable and not self._known
        self._shapes: Any = None
        self._bounds: list[Bound] = []
        outputs = [piece.outputs for piece in self.pieces]
        self._compiled = list(zip(self.steps, outputs, dead, strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        """By what it was made of: sessions are made anew."""
        return _restored, self._made_of

    def run(self, given: Mapping[str, Any]) -> list[Any]:
        """The wanted values; `given` are the inputs and, of a body, the values of the graphs around it."""
        results = self.again(given)
        if results is not None:
            return results
        values = {**self.constants, **given}
        for step, names, dead in self._compiled:
            values.update(zip(names, step(values), strict=True))
            for name in dead:
                values.pop(name, None)
        results = [values[name] for name in self.wanted]
        self._bind(given)
        return results

    def again(self, given: Mapping[str, Any]) -> list[Any] | None:
        """The wanted values, if the inputs have the dtypes and shapes of a call before; else None."""
        if not self._bounds:
            return None
        try:
            bound = self._bounds.pop()  # from here on this thread's
            results = bound.run(given) if bound.key == config.settings() else None
        except Exception:  # a run without buffers raises it again, with the node
            return None
        if results is not None:
            self._bounds.append(bound)
        return results

    def _bind(self, given: Mapping[str, Any]) -> None:
        """Make buffers where the same dtypes and shapes come a second time."""
        if not self._is_bindable or any(name not in given for name in self._needs):  # states, in a first call
            return
        shapes = tuple(
            (getattr(given[name], "shape", None), getattr(given[name], "dtype", None)) for name in self._needs
        )
        if shapes != self._shapes:
            self._shapes = shapes
        elif len(self._bounds) < _MOST_BOUND:
            try:
                self._bounds.append(Bound(self.compiled, self.constants, given, self._needs, self.wanted))
            except Exception:  # of a step, which the run before did not raise, or NotBindable
                self._is_bindable = False

    @property
    def compiled(self) -> list[tuple[Step, Sequence[str]]]:
        """The steps, and the names of their outputs."""
        return [(step, names) for step, names, _ in self._compiled]

    def call_again(self, inputs: Mapping[str, Any]) -> dict[str, Any] | None:
        """As `call`, of inputs that nobody has checked, if they are of the dtypes and shapes of a call before."""
        if len(inputs) != len(self._needs):
            return None
        for value in inputs.values():
            if type(value) is not np.ndarray:  # a number, a list: buffers are for the array that it becomes
                return None
        results = self.again(inputs)
        return None if results is None else dict(zip(self.wanted, results, strict=True))

    def call(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The wanted values by name, the caller's own, in memory that is counted."""
        with Telling(self.settings.label), metered(self.settings.label, self._known):
            return own_results(dict(zip(self.wanted, self.run(inputs), strict=True)), inputs.values())

    def _check(self, available: frozenset[str]) -> None:
        """Reject a value that no node computes, though a node has it among its outputs."""
        known = set(available)
        for piece in self.pieces:
            for name in piece.inputs:
                if name not in known:
                    needs = f"{node_label(piece.nodes[0])} needs {shown(name)}, which no node computes"
                    raise FormatError(f"{self.settings.label}: {needs}")
            known.update(piece.outputs)
        for name in self.wanted:
            if name not in known and name not in self.constants:
                raise FormatError(f"{self.settings.label}: the output {shown(name)} is computed by no node")

    # What runs what

    def _made(self) -> tuple[list[Piece], list[Step]]:
        """Pieces and steps; nodes that ONNX Runtime has no kernel for become the reference evaluator's.

        They are looked for in all pieces before the graph is cut anew: what is run between steps of ours that lie
        behind each other is a piece each.
        """
        made: dict[tuple[int, ...], Step] = {}
        while True:
            pieces = cut(self._nodes, self._tensors, self.wanted, self._choice.runner)
            keys = [tuple(map(id, piece.nodes)) for piece in pieces]
            for key, piece in zip(keys, pieces, strict=True):
                step = made.get(key) or self._runnable(piece)
                if step is not None:
                    made[key] = step
            if all(key in made for key in keys):
                return pieces, [made[key] for key in keys]

    def _runnable(self, piece: Piece) -> Step | None:
        """The step of a piece; None where ONNX Runtime does not run it, which is then said of its nodes."""
        try:
            return self._step(piece)
        except NotRunnable as error:
            self._choice.exclude(piece.nodes, str(error))
            return None

    def _step(self, piece: Piece) -> Step:
        if piece.runner is Runner.PYRNNX:
            return self._own_step(piece)
        settings = self.settings
        used = {name for node in piece.nodes for name in needed_names(node)}
        constants = {name: one for name, one in self._tensors.items() if name in used}
        if piece.runner is Runner.ONNXRUNTIME:
            strict = settings.runtime == "onnxruntime"
            return RuntimeSegment(settings.label, settings.opsets, piece, constants, self._types, strict=strict)
        model = segment_model(piece.nodes, piece.inputs, self._types, piece.outputs, constants, settings.opsets)
        operators = called_ops(settings.calls, all_nodes(piece.nodes))
        evaluator = Evaluator(model, settings.opsets, settings.label, settings.layers, operators)
        return ReferenceSegment(evaluator, piece)

    def _own_step(self, piece: Piece) -> Step:
        (node,) = piece.nodes
        if is_recurrent(node):
            return RecurrentStep(piece, self.settings.layers.get(node.name), self.settings.opsets)
        if node.domain and node.name in self.settings.calls:
            return CallStep(piece, self.settings.calls[node.name])
        index = next(k for k, one in enumerate(self._nodes) if one is node)
        typed = dict(subgraphs(self._typed.node[index]))
        bodies = {
            name: Plan(
                self.settings,
                body,
                typed[name],
                [one.name for one in body.output],
                tensors=self._tensors | {one.name: one for one in body.initializer},
                types=self._types,
                outer=self._outer,
            )
            for name, body in subgraphs(node)
        }
        return ControlStep(self.settings.label, piece, bodies)

    def _array(self, tensor: Any) -> Any:
        return array_of(tensor, self.settings.label)

    def __repr__(self) -> str:
        counts = Counter(_WORDS[type(step)] for step in self.steps)
        found = [f"{count} {(one, several)[count != 1]}" for (one, several), count in counts.items()]
        return f"<Plan: {', '.join(found) or 'no steps'}>"

    def _repr_html_(self) -> str:
        return notebook.whole(notebook.table(("runs on", "", ""), self.rows()))

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(2)] if rows else []
        return "\n".join("  ".join((row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2])).rstrip() for row in rows)

    def rows(self, indent: str = "") -> list[tuple[str, str, str]]:
        """Of each step, and of those in bodies: who runs it, what it is, and why where that is not plain."""
        found = []
        for piece, step in zip(self.pieces, self.steps, strict=True):
            what = _counted(piece.nodes)
            if piece.runner is Runner.PYRNNX:
                what = node_label(piece.nodes[0])
            why = self.settings.fallback if piece.runner is Runner.REFERENCE else ""
            found.append(
                (indent + piece.runner.value, shortened(what), why or shortened(self._choice.why(piece.nodes)))
            )
            for name, body in step.bodies.items() if isinstance(step, ControlStep) else ():
                found.append((f"{indent}  {name}:", "", ""))
                found += body.rows(indent + "    ")
        return found


def _counted(nodes: Sequence[Any]) -> str:
    """The operators of nodes by falling number, with those in their bodies: "2 Conv, If (3 Add, Relu), Relu"."""
    counts = Counter(node.op_type for node in nodes)
    inside: dict[str, list[Any]] = {}
    for node in nodes:
        inside.setdefault(node.op_type, []).extend(one for _, body in subgraphs(node) for one in body.node)
    found = []
    for name, count in counts.most_common():
        bodies = f" ({_counted(inside[name])})" if inside[name] else ""
        found.append(f"{name if count == 1 else f'{count} {name}'}{bodies}")
    return ", ".join(found)


def _restored(arguments: Sequence[Any], more: Mapping[str, Any]) -> Plan:
    return Plan(*arguments, **more)
