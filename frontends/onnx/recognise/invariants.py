"""Values that each iteration of a Loop or Scan returns as it takes them; they are no states then.

W -> Loop (W_in -> Identity -> W_out) -> W_last        becomes      W -> Loop (W -> Identity -> W_in),  W -> W_last
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

_FIRST = {"Loop": (2, 1), "Scan": (0, 0)}  # places of the first state among the body's inputs and outputs


def remove_invariants(model: ModelProto) -> None:
    """Let bodies take values that no iteration changes from the graph around them, in place."""
    graphs = [model.graph]
    for graph in graphs:
        for node in [*graph.node]:
            bodies = [attribute.g for attribute in node.attribute if attribute.name == "body"]
            if node.op_type in _FIRST and bodies:
                _remove(graph, node, bodies[0])
        graphs += (body for node in graph.node for attribute in node.attribute for body in (attribute.g,) if body.node)


def _remove(graph: GraphProto, node: NodeProto, body: GraphProto) -> None:
    make_node = import_onnx().helper.make_node
    first_input, first_output = _FIRST[node.op_type]
    sources = {inner.output[0]: inner.input[0] for inner in body.node if inner.op_type == "Identity"}
    scanned = next((attribute.i for attribute in node.attribute if attribute.name == "num_scan_inputs"), 0)
    for place in reversed(range(len(node.input) - first_input - scanned)):
        name, new = body.input[first_input + place].name, body.output[first_output + place].name
        while new != name and new in sources:
            new = sources[new]
        if new == name:
            before = node.input[first_input + place]
            body.node.insert(0, make_node("Identity", [before], [name]))
            if node.output[place]:
                graph.node.append(make_node("Identity", [before], [node.output[place]]))
            del node.input[first_input + place], node.output[place]
            del body.input[first_input + place], body.output[first_output + place]
