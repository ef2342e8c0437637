"""Pass for streams: layers whose initial states are zeros or constants: the stream carries their states.

    X -> LSTM -> Y                 becomes    X, lstm.initial_h, lstm.initial_c -> LSTM -> Y, lstm.Y_h, lstm.Y_c

Before the first push a state of zeros has no known batch size: an array without elements stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.tensor_info import TensorInfo

from ..graph.walk import Graph, Place, fresh_name, needed_nodes, node_label
from ..recognise import filler
from .recurrent import RecurrentModel, Site

if TYPE_CHECKING:
    from onnx import NodeProto

_STATES = {"initial_h": "Y_h", "initial_c": "Y_c"}
_SHAPES = ("Shape", "Size")  # operators that ignore values
# Operators that return zeros for zeros in their first input, or in all inputs.
_FIRST = (
    *("Cast", "CastLike", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile"),
    *("Transpose", "Unsqueeze"),
)
_ALL = ("Concat",)


class StreamLayer:
    """Layer in a stream, with the weights of that layer.

    `starts` are the initial values of carried states: an array, or None for zeros. If empty, the stream supplies the
    states. A call passes an array of sizes 0 for zeros.
    """

    def __init__(self, layer: Layer, starts: Mapping[str, AnyArray | None]) -> None:
        self.layer, self.starts = layer, starts
        self.op, self.convention, self.label, self.dtype = layer.op, layer.convention, layer.label, layer.dtype

    def run(self, X: Any, sequence_lens: Any, initial_h: Any, initial_c: Any) -> tuple[AnyArray, ...]:
        """Run a layer that carries states and takes lengths, which must be full; without steps, the states stay."""
        states = {"initial_h": initial_h, "initial_c": initial_c}
        for name in self.starts:
            if not any(np.shape(states[name])):
                states[name] = self._zeros(X)
        axis = self.convention.axes_of("X").index("T")
        steps = X.shape[axis : axis + 1]
        if steps and (sequence_lens != steps[0]).any():
            name = self.convention.name_of("sequence_lens")
            raise ArgumentError(
                f"{self.label}: {name} is {sequence_lens.tolist()}; expected seq_length={steps[0]} for every row in a "
                "stream"
            )
        Y, *last = self.layer.run(X, sequence_lens, *states.values())
        if steps == (0,):
            last = [state if before is None else before for state, before in zip(last, states.values(), strict=False)]
        return Y, *last

    def _zeros(self, X: Any) -> AnyArray | None:
        """Return zero states; None if X has the wrong rank."""
        axes, shape = self.convention.axes_of("X"), np.shape(X)
        if len(axes) != len(shape):
            return None
        sizes = {**dict(zip(axes, shape, strict=True)), "D": self.op.num_directions, "H": self.op.hidden_size}
        return np.zeros([sizes[axis] for axis in self.convention.axes_of("initial_h")], self.dtype)


@dataclass(frozen=True)
class Carried:
    """Node whose states a stream carries, or, without states, whose initial states the stream feeds back.

    `inputs` and `outputs` are its new names, by position.
    """

    layer: StreamLayer
    inputs: Mapping[int, str] = field(default_factory=dict)
    outputs: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_backward(self) -> bool:
        """True if states are fed back although the layer starts at the end of a sequence."""
        return not self.inputs and self.layer.op.direction.reversed != (False,)

    @property
    def states(self) -> dict[str, str]:
        """New inputs, by the outputs that supply them in the next push."""
        return dict(zip(self.outputs.values(), self.inputs.values(), strict=True))

    @property
    def starts(self) -> dict[str, AnyArray]:
        """Initial values of the new inputs; an array of sizes 0 stands for zeros, which have the batch size of X."""
        rank = len(self.layer.convention.axes_of("initial_h"))
        zeros = np.zeros((0,) * rank, self.layer.dtype)
        values = [zeros if start is None else start for start in self.layer.starts.values()]
        return dict(zip(self.inputs.values(), values, strict=True))

    @property
    def infos(self) -> list[TensorInfo]:
        sizes = {"D": self.layer.op.num_directions, "H": self.layer.op.hidden_size}
        shape = tuple(sizes.get(axis) for axis in self.layer.convention.axes_of("initial_h"))
        return [TensorInfo(name, self.layer.dtype.name, shape, optional=True) for name in self.inputs.values()]

    def apply(self, node: NodeProto) -> None:
        for names, new in ((node.input, self.inputs), (node.output, self.outputs)):
            names.extend([""] * (max(new, default=-1) + 1 - len(names)))
            for position, name in new.items():
                names[position] = name


def carried(model: RecurrentModel, fed: frozenset[str], chosen: bool | frozenset[str]) -> dict[str, Carried]:
    """Return the nodes whose states a stream carries or feeds back, by name.

    `fed` are the inputs that the stream feeds back; `chosen` are the layers to carry, or whether to carry all.
    """
    if not chosen and not fed:
        return {}
    sites = {site.place: name for name, site in model.sites.items()}
    taken = set(model.graph.local)
    inputs = {value.name for value in model.graph.input}
    result = {}
    for place in _found(model.graph, set(fed), inputs, sites):
        name = sites[place.graph, place.index]
        is_chosen = chosen if isinstance(chosen, bool) else name in chosen
        site = model.sites[name]
        new = place.carried(name, site, taken) if is_chosen else None
        new = new or place.resumed(site)
        if new is not None:
            result[name] = new
    return result


@dataclass(frozen=True)
class _Found:
    """Recurrent node in its graph.

    The values (not only shapes) of `fed` depend on fed-back inputs, those of `given` on any input. `body` is the label
    of the node whose body contains it; "" at the top level.
    """

    graph: Graph
    index: int
    fed: set[str]
    given: set[str]
    body: str

    def carried(self, name: str, site: Site, taken: set[str]) -> Carried | None:
        """Return the node with carried states; None if all its states are fed back."""
        layer, arguments, sources = site.layer, site.arguments, site.sources()
        label = f"{layer.label}: stream"
        states = [state for state in _STATES if state in arguments and sources.get(state) not in self.fed]
        if isinstance(layer, Layer) and not layer.op.has_cell_state:
            states = [state for state in states if state == "initial_h"]
        if not states:
            return None
        if why := self._why_not(layer, sources):
            raise UnsupportedError(f"{label}: {why}, or leave it out of `layers`")
        starts = {state: self._start(label, state, sources.get(state)) for state in states}
        inputs, outputs = {}, {}
        for state in states:
            inputs[arguments.index(state)] = fresh_name(f"{name}.{layer.convention.name_of(state)}", taken)
            place = site.results.index(_STATES[state])
            own = site.node.output[place] if place < len(site.node.output) else ""
            outputs[place] = own or fresh_name(f"{name}.{layer.convention.name_of(_STATES[state])}", taken)
        return Carried(StreamLayer(layer, starts), inputs, outputs)

    def resumed(self, site: Site) -> Carried | None:
        """Return a prepared layer whose states are fed back; None for other nodes."""
        sources = site.sources()
        if not isinstance(site.layer, Layer) or self.fed.isdisjoint(sources.get(state, "") for state in _STATES):
            return None
        return Carried(StreamLayer(site.layer, {}))

    def _why_not(self, layer: Any, sources: Mapping[str, str]) -> str:
        """Return why a stream cannot carry the states of a layer; "" if it can."""
        if self.body:
            return f"it is inside a body of {self.body}; expected a layer at the top level"
        if not isinstance(layer, Layer):
            return "its weights are computed in every call; expected constants"
        if layer.op.direction.reversed != (False,):
            return (
                f"direction is {layer.op.direction.value}; expected forward, because other directions start at the "
                "end of a sequence"
            )
        if sources.get("sequence_lens") in self.given:
            lengths = layer.convention.name_of("sequence_lens")
            return f"{lengths} is computed from the model's inputs; expected none, or seq_length for every row"
        return ""

    def _start(self, label: str, argument: str, source: str | None) -> AnyArray | None:
        """Return the initial value of a state; None means zeros."""
        if source is None or _is_zero(self.graph, source):
            return None
        value: AnyArray | None = self.graph.constants.value(source)
        if value is None:
            raise UnsupportedError(
                f"{label}: {argument} ({shown(source)}) is computed in every call, or an input; expected zeros, a "
                "constant, or an input in states={output: input}, or leave the layer out of `layers`"
            )
        return value


def _found(
    graph: Graph, fed: set[str], given: set[str], sites: Mapping[Place, str], body: str = ""
) -> Iterator[_Found]:
    """Yield the recurrent nodes that the outputs of a graph need, also in bodies."""
    seen, fed, given = _reached(graph, fed, shapes=True), _reached(graph, fed), _reached(graph, given)
    indices, _ = needed_nodes(graph.node, (value.name for value in graph.output))
    for index in indices:
        node = graph.node[index]
        if (graph, index) in sites:
            yield _Found(graph, index, fed, given, body)
        if node.op_type == "If" and not seen.isdisjoint(node.input):
            continue  # the model itself chooses: fed-back state, or zeros
        for _, inner in node.bodies:
            own = {value.name for value in inner.input}
            fed_inside, given_inside = (
                names | (set() if names.isdisjoint(node.input) else own) for names in (fed, given)
            )
            yield from _found(inner, fed_inside, given_inside, sites, node_label(node))


def _reached(graph: Graph, names: set[str], *, shapes: bool = False) -> set[str]:
    """Return the names and all names whose values depend on them, with `shapes` also on their shapes."""
    reached = set(names)
    for node in graph.node:
        looks = shapes or node.op_type not in _SHAPES or node.domain
        if looks and not reached.isdisjoint(node.needs):
            reached.update(node.output)
    return reached - {""}


def _is_zero(graph: Graph, name: str) -> bool:
    """Return whether a value is zero in every call, of any shape."""
    producers = {output: node for node in graph.node for output in node.output}
    left, seen = [name], set[str]()
    while left:
        current = left.pop()
        if current in seen:
            continue
        seen.add(current)
        value = graph.constants.value(current)
        if value is not None:
            if value.any():
                return False
            continue
        node = producers.get(current)
        if node is None or node.domain:
            return False
        if node.op_type in _FIRST:
            left.append(node.input[0])
        elif node.op_type in _ALL:
            left += node.input
        elif node.op_type != "ConstantOfShape" or filler(node).any():
            return False
    return True
