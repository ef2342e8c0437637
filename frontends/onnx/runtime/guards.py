"""Passes that make nodes safe for ONNX Runtime: Guard operators check their inputs and results.

    Scan(states, scanned)   ->  Scan(Guard(states, scanned))
    body: ... -> results    ->  ... -> Guard(results, states) -> results
    STFT(signal, ...)       ->  STFT(Guard(signal), ...)

ONNX Runtime crashes the process on some ranks of the first input of some operators. It crashes, too, if a step of a
Scan changes the shape of a state, if a rank is not the one that its body declares, or if it transposes an empty value.
A Guard returns an error first. If the shapes of the states and results follow from those of the inputs, the Guard
before the Scan checks the inputs, and the body has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyrnnx.layers import custom_operators

from ..graph.constants import shape_of
from ..graph.signatures import declare
from ..graph.walk import local_names, subgraphs
from ..messages import copied
from ..onnx_package import import_onnx
from .control import scan_inputs
from .step_shapes import Shape, Size, declare_shape, declared_shapes, shapes_of
from .types import Scope, Tensors, Types, element_types

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, ValueInfoProto

# Operators that crash the process on some ranks of their first input, and what a Guard checks of it: two axes or more,
# or exactly two, with elements.
FIRST_INPUTS = {"Multinomial": "c", "ReverseSequence": "+", "STFT": "+"}
_MOST_RANK = 25  # that a letter of the attribute encodes
_MOST_VALUES = 255
_MOST_SYMBOLS = 64  # names of sizes that a Guard compares


def is_guarded(node: NodeProto) -> bool:
    """Return whether a guarded Scan can run: of opset 9 or later, with declared ranks of its results."""
    body = _body(node)
    if len(body.input) != len(node.input) or not all(node.input):
        return False
    ranks = [_rank(value) for value in body.output]
    return (
        0 < scan_inputs(node) <= len(node.input)
        and _state_count(node) <= len(ranks) <= _MOST_VALUES
        and len(node.input) <= _MOST_VALUES
        and all(rank is not None and rank <= _MOST_RANK for rank in ranks)
    )


def guard_operators(graph: GraphProto, nodes: Mapping[str, tuple[NodeProto, Scope]]) -> None:
    """Guard the first inputs of the operators in `FIRST_INPUTS` of a graph and of its bodies, in place.

    Parameters
    ----------
    graph : onnx.GraphProto
        Its node names are unique.
    nodes : mapping
        Nodes and their scopes, by name.
    """
    guards = []
    for place, node in enumerate(graph.node):
        for _, body in subgraphs(node):
            guard_operators(body, nodes)
        letter = "" if node.domain else FIRST_INPUTS.get(node.op_type, "")
        if letter and node.input and node.name in nodes:  # not in the body of an operator that runs none
            guards.append((place, _guard_first_inputs(graph, node, [letter], nodes[node.name][1].types)))
    for place, guard in reversed(guards):
        graph.node.insert(place, guard)


def guard_scans(
    graph: GraphProto, declared: GraphProto, nodes: Mapping[str, tuple[NodeProto, Scope]], tensors: Tensors | None
) -> None:
    """Guard the Scans of a graph and of its bodies, in place.

    Parameters
    ----------
    graph : onnx.GraphProto
        Its node names are unique.
    declared : onnx.GraphProto
        The same graph with the model's declared shapes.
    nodes : mapping
        Nodes and their scopes, by name.
    tensors : mapping or None
        Constants of the graph: onnx.TensorProto or array by name. None: a body, whose Scans all check each step.
    """
    guarded = []
    for node, original in zip(graph.node, declared.node, strict=True):
        bodies = dict(subgraphs(original))
        for name, body in subgraphs(node):
            guard_scans(body, bodies[name], nodes, None)
        if node.op_type == "Scan" and not node.domain:
            types = nodes[node.name][1].types
            shapes = [] if tensors is None else _certain_inputs(node, original, declared, tensors)
            guarded.extend(_guard_inputs(graph, node, original, types, shapes))
            if not shapes:
                _guard_results(node, original)
        guarded.append(node)
    if len(guarded) > len(graph.node):
        copies = [copied(node) for node in guarded]
        del graph.node[:]
        graph.node.extend(copies)


def _certain_inputs(node: NodeProto, original: NodeProto, graph: GraphProto, tensors: Tensors) -> list[Shape]:
    """Return shapes of a Scan's inputs with which each step keeps the states' shapes; empty if there may be others.

    Declare the shapes of the results in the body, whose steps then need no Guard.
    """
    body, count = _body(original), _state_count(node)
    if any(_is_inner(node, f"scan_{kind}_axes") for kind in ("input", "output")):
        return []
    around = shapes_of(graph, declared_shapes(graph.input), tensors)
    shapes = [tuple(shape_of(tensors[name])) if name in tensors else around.get(name) for name in node.input]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not all(known[count:]) or max(map(len, known)) > _MOST_RANK:
        return []
    if len({size for shape in known for size in shape if isinstance(size, str)}) > _MOST_SYMBOLS:
        return []
    steps = known[:count] + [shape[1:] for shape in known[count:]]
    own = local_names(body)
    constants = {name: tensor for name, tensor in tensors.items() if name not in own}
    constants |= {tensor.name: tensor for tensor in body.initializer}
    inside = shapes_of(body, {value.name: shape for value, shape in zip(body.input, steps, strict=True)}, constants)
    results = [inside.get(value.name) for value in body.output]
    if results[:count] != steps[:count] or None in results:
        return []
    for value, result, declared in zip(_body(node).output, results, body.output, strict=True):
        value.type.CopyFrom(declared.type)
        declare_shape(value, result)
    return known


def _sizes_text(shapes: Sequence[Shape]) -> str:
    """Return the attribute `sizes` of a Guard."""
    symbols: dict[Size, int] = {}
    sizes = [size for shape in shapes for size in shape]
    return ",".join(
        str(symbols.setdefault(size, -2 - len(symbols)) if isinstance(size, str) else size) for size in sizes
    )


def _guard_inputs(
    graph: GraphProto, node: NodeProto, original: NodeProto, types: Types, shapes: Sequence[Shape]
) -> list[NodeProto]:
    """Return the node that checks the inputs of a Scan, which have certain shapes or none; empty if it needs none."""
    count = _state_count(node)
    letters = [_letter(_rank(value)) for value in _body(original).output[:count]]
    if shapes:
        letters = [_letter(len(shape)) for shape in shapes]
    elif _is_inner(node, "scan_input_axes") or _is_inner(node, "scan_output_axes"):
        letters += ["!"] * (len(node.input) - count)
    if not letters:
        return []
    guard = _guard_first_inputs(graph, node, letters, types)
    if shapes:
        guard.attribute.append(import_onnx().helper.make_attribute("sizes", _sizes_text(shapes)))
    return [guard]


def _guard_first_inputs(graph: GraphProto, node: NodeProto, letters: Sequence[str], types: Types) -> NodeProto:
    """Return the Guard of a node's first inputs, one for each letter."""
    names = list(node.input[: len(letters)])
    node.input[: len(letters)] = [f"{node.name}/guarded/input{place}" for place in range(len(letters))]
    for name, new in zip(names, node.input, strict=False):
        for element in element_types(types[name]) if name in types else ():
            declare(graph.value_info, new, element)  # the session cannot infer types behind a Guard
    return _guard(f"{node.name}/guard_inputs", letters, names, node.input[: len(letters)])


def _guard_results(node: NodeProto, original: NodeProto) -> None:
    """Append the node that checks each step's results to the body of a Scan."""
    body, count = _body(node), _state_count(node)
    letters = [_letter(_rank(value)) for value in _body(original).output]
    axes = _ints(node, "scan_output_axes")
    for place, axis in enumerate(axes[: len(letters) - count], count):
        if axis:
            letters[place] = letters[place].lower()
    names = [value.name for value in body.output] + [value.name for value in body.input[:count]]
    for place, value in enumerate(body.output):
        value.name = f"{node.name}/guarded/result{place}"
    results = [value.name for value in body.output]
    body.node.append(_guard(f"{node.name}/guard_results", letters, names, results))


def _guard(name: str, letters: Sequence[str], inputs: Sequence[str], outputs: Sequence[str]) -> NodeProto:
    node: NodeProto = import_onnx().helper.make_node(
        custom_operators.GUARD, inputs, outputs, name=name, domain=custom_operators.DOMAIN, ranks="".join(letters)
    )
    return node


def _letter(rank: int | None) -> str:
    assert rank is not None
    return chr(ord("A") + rank)


def _rank(value: ValueInfoProto) -> int | None:
    """Return the rank that the model declares; None if it declares none."""
    tensor = value.type.tensor_type
    return len(tensor.shape.dim) if tensor.HasField("shape") else None


def _body(node: NodeProto) -> GraphProto:
    """Return the body of a Scan; an empty graph if it has none."""
    attributes = (attribute for attribute in node.attribute if attribute.name == "body")
    body: GraphProto = next(attributes, import_onnx().AttributeProto()).g
    return body


def _state_count(node: NodeProto) -> int:
    return len(node.input) - scan_inputs(node)


def _ints(node: NodeProto, name: str) -> list[int]:
    return next((list(attribute.ints) for attribute in node.attribute if attribute.name == name), [])


def _is_inner(node: NodeProto, name: str) -> bool:
    """Return whether a Scan transposes: an axis is not the first."""
    return any(axis for axis in _ints(node, name))
