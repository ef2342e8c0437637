"""Pass that finds hidden layers: unrolled steps, and cells in a Loop or Scan, become recurrent nodes.

ONNX Runtime simplifies the graph first, so that weights are initializers and equal values have one name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError

from ..graph.constants import complete, set_constants, shape_of
from ..graph.walk import Graph, Node, all_graphs, all_nodes, subgraphs
from ..messages import copied
from ..onnx_package import import_onnx
from ..recognise import ACTIVATIONS, LIMITS, PRODUCTS, filler, recognise, remove_invariants
from ..session import NotRunnable, disabled_optimizers, onnxruntime, open_session, quiet_options

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, ValueInfoProto

_LOOPS = ("Loop", "Scan")
_MOST_BYTES = 2**30  # of a model; ONNX Runtime writes at most twice as many
# Optimizations that join parts of a cell, or hide which sizes are equal.
_HIDING = (
    "CommonSubexpressionElimination",
    "MatMulAddFusion",
    "TransposeOptimizer",
    "GemmSumFusion",
    "ReshapeFusion",
    "FuseReluClip",
    "NotWhereFusion",
)
_ONE_STEP = (
    "the file seems to have a single time step of a recurrent layer: it multiplies a matrix by a state that is always "
    "zero; export the model with the number of time steps of your inputs"
)
# Errors of an invalid graph, or of sizes that no array has.
_INVALID = (ArithmeticError, AttributeError, LookupError, MemoryError, PyrnnxError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, eq=False)
class Hidden:
    """A model whose hidden layers are recurrent nodes; the given model if it has none.

    `origins` say where each new node comes from, `reasons` what is missing in parts that are nearly layers, the most
    frequent first.
    """

    model: ModelProto
    origins: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


def hidden_layers(model: ModelProto, label: str, graph: Graph | None = None) -> Hidden:
    """Return a model with recurrent nodes in place of its hidden layers; the given one is not changed.

    Its values have unique names, and no function contains steps. `graph` is its graph, with its constants.
    """
    try:
        graph = set_constants(Graph(model.graph), label) if graph is None else graph
        if not may_have_layers(graph):
            return Hidden(model, reasons=_why_one_step(graph))
        if any(tensor.data_location for tensor in graph.initializer):
            return Hidden(model, reasons=("the model has data in other files, where hidden layers are not looked for",))
        if model.ByteSize() + sum(array.nbytes for array in graph.arrays.values()) > _MOST_BYTES:
            return Hidden(model, reasons=("the model is too large to be simplified",))
        simplified = _simplified(model, graph.arrays)
        if simplified is None:
            return Hidden(model, reasons=("ONNX Runtime cannot simplify the model",))
        origins, reasons = recognise(simplified, label)
    except _INVALID:
        return Hidden(model)  # an invalid graph: ONNX Runtime says what is wrong
    return Hidden(simplified, origins, reasons) if origins else Hidden(model, reasons=reasons)


def may_have_layers(graph: Graph) -> bool:
    """Return whether a graph or a body can have steps: activations, and products in a loop or of a common factor."""
    if not _has_cell(graph):
        return False
    bodies = (body for node in graph.every if node.op_type in _LOOPS for _, body in node.bodies)
    return any(map(_has_cell, bodies)) or any(map(_repeats_factor, all_graphs(graph)))


def _has_cell(graph: Graph) -> bool:
    operators = {operator for _, operator in graph.kinds}
    return not operators.isdisjoint({*ACTIVATIONS, *LIMITS}) and not operators.isdisjoint(PRODUCTS)


def _repeats_factor(graph: Graph) -> bool:
    """Return whether a product depends on another one with the same matrix."""
    producers = {name: node for node in graph.node for name in node.output if name}
    bits: dict[tuple[Any, ...], int] = {}  # of the matrices
    reached: dict[str, int] = {}  # bits of the matrices that a value depends on
    for node in graph.node:
        mask = 0
        for name in node.needs & reached.keys() if reached else ():
            mask |= reached[name]
        matrix = _matrix(node, producers, graph) if node.op_type in PRODUCTS else None
        if matrix is not None:
            bit = bits.setdefault(matrix, 1 << len(bits))
            if mask & bit:
                return True
            mask |= bit
        if mask:
            reached.update(dict.fromkeys(node.output, mask))
    return False


def _matrix(node: Node, producers: Mapping[str, Node], graph: Graph) -> tuple[Any, ...] | None:
    """Return a key of the constant matrix from which the right factor of a product is computed; None if unknown."""
    name = node.input[1] if len(node.input) > 1 else ""
    while name in producers and producers[name].input:
        name = producers[name].input[0]
    tensor = graph.constants.tensor(name)
    if tensor is None or len(shape_of(tensor)) < 2:
        return None
    if isinstance(tensor, np.ndarray):
        return tensor.shape, tensor[:1].tobytes()
    return shape_of(tensor), tensor.raw_data[:64], tuple(tensor.float_data[:16])


def _why_one_step(graph: Graph) -> tuple[str, ...]:
    """Return a reason if a product multiplies a constant state of zeros in a graph without other steps; else ()."""
    producers = {name: node for node in graph.node for name in node.output if name}
    for product in (node for node in graph.node if node.op_type in PRODUCTS and node.input):
        node = producers.get(product.input[0])
        while node is not None and node.op_type in ("Cast", "Identity"):
            node = producers.get(node.input[0]) if node.input else None
        if node is not None and node.op_type == "ConstantOfShape" and not filler(node).any():
            return (_ONE_STEP,)
    return ()


def _simplified(model: ModelProto, arrays: Mapping[str, AnyArray]) -> ModelProto | None:
    """Return the model that ONNX Runtime writes after its basic optimizations; None if it rejects the model.

    Types are declared of inputs and outputs alone. `arrays` are values of initializers that the model lacks.
    """
    model = copied(model)
    declared = copied(model.graph)
    remove_invariants(model)
    _clear_types(model.graph)
    for value in model.graph.output:
        value.ClearField("type")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        if not _write_simplified(complete(model, arrays), path):
            return None
        result: ModelProto = import_onnx().load(path)
    _declare_bodies(result.graph, {value.name: value for value in _body_outputs(declared)})
    for field_ in ("input", "output"):
        del getattr(result.graph, field_)[:]
        getattr(result.graph, field_).extend(getattr(declared, field_))
    domains = {node.domain for node in all_nodes(result.graph.node)} | {entry.domain for entry in model.opset_import}
    versions = {entry.domain: entry.version for entry in (*result.opset_import, *model.opset_import)}
    del result.opset_import[:]
    for domain in sorted(domains):
        result.opset_import.add(domain=domain, version=versions[domain])
    return result


def _write_simplified(model: ModelProto, path: Path) -> bool:
    options = quiet_options()
    options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # DequantizeLinear of weights is folded
    operators = {node.op_type for node in all_nodes(model.graph.node)}
    try:
        open_session(model, options, [*disabled_optimizers(operators), *_HIDING])
    except NotRunnable:
        return False
    return True


def _body_outputs(graph: GraphProto) -> Iterator[ValueInfoProto]:
    for node in all_nodes(graph.node):
        for _, body in subgraphs(node):
            yield from body.output


def _declare_bodies(graph: GraphProto, declared: Mapping[str, ValueInfoProto]) -> None:
    """Declare the shapes of results of bodies where ONNX Runtime inferred none: a Scan needs their ranks."""
    for value in _body_outputs(graph):
        if value.name in declared and not value.type.tensor_type.HasField("shape"):
            value.type.CopyFrom(declared[value.name].type)


def _clear_types(graph: GraphProto) -> None:
    """Clear the declared types of computed values, which may be wrong."""
    del graph.value_info[:]
    for node in graph.node:
        for _, body in subgraphs(node):
            for value in body.output:
                if value.type.HasField("tensor_type"):
                    value.type.tensor_type.ClearField("shape")
            _clear_types(body)
