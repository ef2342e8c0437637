"""Layers that begin inside a graph, from zero or from constants, as a stream runs them: from push to push.

    X -> LSTM -> Y                 becomes    X, lstm.initial_h, lstm.initial_c -> LSTM -> Y, lstm.Y_h, lstm.Y_c

Where a state is not given, which is so in the first push, the layer begins as it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layer import Layer
from pyrnnx.tensor_info import TensorInfo

from .graph.constants import array_of
from .graph.fold import FoldedGraph
from .graph.rebuild import Edit
from .graph.walk import local_names, needed_names, node_label
from .nodes import is_recurrent
from .recurrent_graph import RecurrentGraph
from .runtime.recurrent import LayerCall
from .schemas import OPERATORS

if TYPE_CHECKING:
    from onnx import NodeProto

_STATES = {"initial_h": "Y_h", "initial_c": "Y_c"}
_SHAPES = ("Shape", "Size")  # which look at no value
# Operators that make zeros of zeros: of their first input, of all.
_FIRST = (
    *("Cast", "CastLike", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile"),
    *("Transpose", "Unsqueeze"),
)
_ALL = ("Concat",)


class CarriedLayer(Layer):
    """A layer in a stream, with the weights of that layer.

    Parameters
    ----------
    layer : Layer
    starts : mapping
        What the states that are carried begin with: an array, or None for zeros. Empty: it begins with what the stream
        feeds back.
    """

    def __init__(self, layer: Layer, starts: Mapping[str, AnyArray | None]) -> None:
        vars(self).update(vars(layer))
        self.layer, self.starts, self._run = layer, starts, layer.run
        axes = self.convention.axes_of("X")
        self._step_axis = axes.index("T") if "T" in axes else None
        states = self.convention.axes_of("initial_h")
        self._row_shape = tuple(-1 if axis == "N" else 1 for axis in states)

    def run(
        self,
        X: Any = None,
        sequence_lens: Any = None,
        initial_h: Any = None,
        initial_c: Any = None,
        *more: Any,
        **named: Any,
    ) -> tuple[AnyArray, ...]:
        """As `Layer.run`; no steps leave the states as they are, and lengths must be seq_length for carried states."""
        if not self.starts:
            results = self._run(X, sequence_lens, initial_h, initial_c, *more, **named)
            if sequence_lens is None and results[0].size:
                return results
            return self._idle_kept(results, [initial_h, initial_c], sequence_lens)
        states = {"initial_h": initial_h, "initial_c": initial_c}
        for name, start in self.starts.items():
            if states[name] is None:
                states[name] = self._zeros(X) if start is None else start
        axis = self._step_axis
        steps = () if axis is None else getattr(X, "shape", ())[axis : axis + 1]
        if sequence_lens is not None and steps and (np.asarray(sequence_lens) != steps[0]).any():
            name = self.convention.name_of("sequence_lens")
            raise ArgumentError(
                f"{self.label}: {name} is {np.asarray(sequence_lens).tolist()}; expected seq_length={steps[0]} for "
                "every row in a stream"
            )
        results = self._run(X, sequence_lens, *states.values(), *more, **named)
        return self._idle_kept(results, [*states.values()], None) if steps == (0,) else results

    __call__ = run

    def _idle_kept(self, results: tuple[AnyArray, ...], states: list[Any], sequence_lens: Any) -> tuple[AnyArray, ...]:
        """The results, with the states as they were of rows that have no steps."""
        idle = np.asarray(0 if sequence_lens is None else sequence_lens) == 0
        if not idle.any():
            return results
        rows = idle.reshape(self._row_shape)
        new = [
            result if state is None else np.where(rows, np.asarray(state, result.dtype), result)
            for result, state in zip(results[1:], states, strict=False)
        ]
        return results[0], *new

    def _zeros(self, X: Any) -> AnyArray | None:
        """None where X is none that the layer takes."""
        axes, shape = self.convention.axes_of("X"), np.shape(X)
        if len(axes) != len(shape):
            return None
        sizes = {**dict(zip(axes, shape, strict=True)), "D": self.op.num_directions, "H": self.op.hidden_size}
        return np.zeros([sizes[axis] for axis in self.convention.axes_of("initial_h")], self.dtype)


@dataclass(frozen=True)
class Carried:
    """A node whose states a stream carries, or, without any, one that begins with what the stream feeds back.

    Attributes
    ----------
    layer : CarriedLayer
    edit : Edit
        The node's new inputs and outputs.
    """

    layer: CarriedLayer
    edit: Edit

    @property
    def states(self) -> dict[str, str]:
        """New inputs by the outputs that they are in the next push."""
        return dict(zip(self.edit.outputs.values(), self.edit.inputs.values(), strict=True))

    @property
    def infos(self) -> list[TensorInfo]:
        """Of the new inputs."""
        sizes = {"D": self.layer.op.num_directions, "H": self.layer.op.hidden_size}
        shape = tuple(sizes.get(axis) for axis in self.layer.convention.axes_of("initial_h"))
        return [TensorInfo(name, self.layer.dtype.name, shape, optional=True) for name in self.edit.inputs.values()]


def carried(
    graph: RecurrentGraph,
    layers: Mapping[str, Any],
    calls: Mapping[str, LayerCall],
    fed: frozenset[str],
    chosen: bool | frozenset[str],
    candidates: Callable[[set[str]], str],
) -> dict[str, Carried]:
    """The nodes whose states a stream carries, and those that begin with what it feeds back, by their names.

    Parameters
    ----------
    graph : RecurrentGraph
    layers, calls : mapping
        What runs its nodes, by their names.
    fed : frozenset of str
        Inputs that the stream feeds back.
    chosen : bool or frozenset of str
        Whether all of the layers are carried, or which.
    candidates : callable
        What a message says of the outputs that inputs of these names could be.

    Raises
    ------
    UnsupportedError
        A layer that begins inside the graph, and cannot go on from push to push.
    """
    if not chosen and not fed:
        return {}
    names = {place: name for name, place in graph.places.items()}
    taken = local_names(graph.folded.graph)
    given = {one.name for one in graph.folded.graph.input}
    found = {}
    for one in _found(graph.folded, set(fed), given, calls):
        name = names.get((one.graph, one.index), one.node.name)
        arguments: Sequence[str]
        if is_recurrent(one.node):
            layer, arguments = layers[name], OPERATORS[one.node.op_type].inputs
        else:
            layer, arguments = calls[name].layer, calls[name].arguments
        is_chosen = chosen if isinstance(chosen, bool) else name in chosen
        new = one.carried(name, layer, arguments, taken, candidates) if is_chosen else None
        new = new or one.resumed(name, layer, arguments)
        if new is not None:
            found[name] = new
    return found


@dataclass(frozen=True)
class _Found:
    """A recurrent node.

    Attributes
    ----------
    graph, index
        Where it is.
    fed, given : set of str
        Names whose values depend on what is fed back, and on any input, but for shapes.
    body : str
        How errors name the node that it is in a body of; "" at the top level.
    """

    graph: FoldedGraph
    index: int
    fed: set[str]
    given: set[str]
    body: str

    @property
    def node(self) -> NodeProto:
        return self.graph.nodes[self.index]

    def carried(
        self, name: str, layer: Any, arguments: Sequence[str], taken: set[str], candidates: Callable[[set[str]], str]
    ) -> Carried | None:
        """None where it begins with what is fed back alone; `arguments` says what its inputs are."""
        node = self.node
        sources = {argument: one for argument, one in zip(arguments, node.input, strict=False) if one}
        label = f"{layer.label}: stream"
        states = [one for one in _STATES if one in arguments and sources.get(one) not in self.fed]
        if isinstance(layer, Layer) and not layer.op.has_cell_state:
            states = [one for one in states if one == "initial_h"]
        if not states:
            return None
        self._check(label, layer, sources)
        given = {f"{one} ({shown(sources[one])})": self._given(sources, one) for one in states if one in sources}
        if behind := set().union(*given.values()):
            begun = ", ".join(one for one, names in given.items() if names)
            raise UnsupportedError(
                f"{label}: inputs of the model, which are not fed back, give {begun}; expected them in "
                f"states={{output: input}}, where these agree: {candidates(behind)}; or leave the layer out of `layers`"
            )
        starts = {one: self._start(label, one, sources.get(one)) for one in states}
        inputs, outputs = {}, {}
        for one in states:
            inputs[arguments.index(one)] = _new_name(f"{name}.{layer.convention.name_of(one)}", taken)
            place = layer.output_names.index(_STATES[one])
            if not is_recurrent(node):
                place -= len(layer.output_names) - len(node.output)
            own = node.output[place] if place < len(node.output) else ""
            outputs[place] = own or _new_name(f"{name}.{layer.convention.name_of(_STATES[one])}", taken)
        return Carried(CarriedLayer(layer, starts), Edit(name, inputs=inputs, outputs=outputs))

    def resumed(self, name: str, layer: Any, arguments: Sequence[str]) -> Carried | None:
        """Of a layer of constant weights that begins with what is fed back."""
        sources = dict(zip(arguments, self.node.input, strict=False))
        if not isinstance(layer, Layer) or self.fed.isdisjoint(sources.get(one, "") for one in _STATES):
            return None
        return Carried(CarriedLayer(layer, {}), Edit(name))

    def _check(self, label: str, layer: Any, sources: Mapping[str, str]) -> None:
        instead = "or leave it out of `layers`"
        if self.body:
            raise UnsupportedError(
                f"{label}: it begins inside a body of {self.body}; expected a layer at the top level, {instead}"
            )
        if not isinstance(layer, Layer):
            raise UnsupportedError(f"{label}: its weights are computed in every call; expected constants, {instead}")
        if layer.op.direction.reversed != (False,):
            raise UnsupportedError(
                f"{label}: direction is {layer.op.direction.value}; expected forward, for the others begin at the end "
                f"of a sequence, {instead}"
            )
        if sources.get("sequence_lens") in self.given:
            lengths = layer.convention.name_of("sequence_lens")
            raise UnsupportedError(
                f"{label}: {lengths} is computed from the model's inputs; expected none, or seq_length for every row, "
                f"{instead}"
            )

    def _start(self, label: str, argument: str, source: str | None) -> AnyArray | None:
        """What a state begins with; None: zeros."""
        if source is None or _is_zero(self.graph, source):
            return None
        value = self.graph.constants.value(source)
        if value is None:
            raise UnsupportedError(
                f"{label}: {argument} ({shown(source)}) is computed in every call; expected zeros, a constant, or what "
                "`states` feed back, or leave the layer out of `layers`"
            )
        return value

    def _given(self, sources: Mapping[str, str], argument: str) -> set[str]:
        """Inputs of the graph on whose values a state depends, and X does not."""
        inputs = (one.name for one in self.graph.graph.input)
        reached = ((one, _reached(self.graph, {one})) for one in inputs)
        return {one for one, names in reached if sources[argument] in names and sources.get("X") not in names}


def _found(
    graph: FoldedGraph, fed: set[str], given: set[str], calls: Mapping[str, LayerCall], body: str = ""
) -> Iterator[_Found]:
    """The recurrent nodes that the outputs of a graph need, and those in bodies."""
    seen, fed, given = _reached(graph, fed, shapes=True), _reached(graph, fed), _reached(graph, given)
    for index in _needed(graph):
        node = graph.nodes[index]
        if is_recurrent(node) or (node.domain and node.name in calls):
            yield _Found(graph, index, fed, given, body)
        if node.op_type == "If" and node.input[0] in seen:
            continue  # the model chooses by what is fed back: "if there is a state, go on, else begin with zero"
        for inner in graph.bodies.get(index, ()):
            own = {one.name for one in inner.graph.input}
            fed_inside, given_inside = (
                names | (set() if names.isdisjoint(node.input) else own) for names in (fed, given)
            )
            yield from _found(inner, fed_inside, given_inside, calls, node_label(node))


def _reached(graph: FoldedGraph, names: set[str], *, shapes: bool = False) -> set[str]:
    """The names, and those whose values depend on theirs, or on their shapes."""
    found = set(names)
    for node in graph.nodes:
        looks = shapes or node.op_type not in _SHAPES or node.domain
        if looks and not found.isdisjoint(needed_names(node)):
            found.update(node.output)
    return found - {""}


def _needed(graph: FoldedGraph) -> list[int]:
    """The places of the nodes that run."""
    names, found = {one.name for one in graph.graph.output}, []
    for index in reversed(range(len(graph.nodes))):
        node = graph.nodes[index]
        if index not in graph.folded and not names.isdisjoint(one for one in node.output if one):
            names |= needed_names(node)
            found.append(index)
    return found[::-1]


def _is_zero(graph: FoldedGraph, name: str) -> bool:
    """Whether a value is zero in every call, of whatever shape."""
    producers = {output: node for node in graph.nodes for output in node.output}
    left, seen = [name], set[str]()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        value = graph.constants.value(one)
        if value is not None:
            if value.any():
                return False
            continue
        node = producers.get(one)
        if node is None or node.domain:
            return False
        if node.op_type in _FIRST:
            left.append(node.input[0])
        elif node.op_type in _ALL:
            left += node.input
        elif node.op_type != "ConstantOfShape" or _fills(node):
            return False
    return True


def _fills(node: NodeProto) -> bool:
    """Whether a ConstantOfShape is not zero."""
    values = (attribute.t for attribute in node.attribute if attribute.name == "value")
    return any(array_of(value, node_label(node)).any() for value in values)


def _new_name(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}#{number}"
    taken.add(name)
    return name
