"""Pass that finds hidden layers: unrolled steps, and cells in a Loop or Scan, become recurrent nodes.

ONNX Runtime simplifies the graph first, so that weights are initializers and equal values have one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import PyrnnxError

from ..graph.large import completed
from ..graph.walk import all_nodes, needed_names, subgraphs
from ..messages import copied
from ..onnx_package import import_onnx
from ..recognise import ACTIVATIONS, LIMITS, PRODUCTS, recognise, remove_invariants
from ..session import disabled_optimizers, onnxruntime

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

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
    "a matrix product multiplies a state of zeros, as if an exporter ran a recurrent layer for one time step; the file "
    "computes no other steps: export it with the number of steps of your inputs"
)
# Errors of an invalid graph, or of sizes that no array has.
_INVALID = (ArithmeticError, AttributeError, LookupError, MemoryError, PyrnnxError, RuntimeError, TypeError, ValueError)
NO_ARRAYS: Mapping[str, AnyArray] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Hidden:
    """A model whose hidden layers are recurrent nodes.

    Attributes
    ----------
    model : onnx.ModelProto
        The given model if it has no hidden layers.
    origins : mapping
        Where each new recurrent node comes from, by its name.
    reasons : tuple of str
        What is missing in parts that are nearly layers, the most frequent reason first.
    """

    model: ModelProto
    origins: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()


def hidden_layers(model: ModelProto, label: str, arrays: Mapping[str, AnyArray] = NO_ARRAYS) -> Hidden:
    """Return a model with recurrent nodes in place of its hidden layers.

    Parameters
    ----------
    model : onnx.ModelProto
        A model with unique names of values, without functions that contain steps. It is not changed.
    label : str
        How errors name the model.
    arrays : mapping
        Values of initializers that `model` lacks, by name.
    """
    try:
        if not may_have_layers(model.graph, arrays):
            return Hidden(model, reasons=_why_one_step(model.graph))
        if any(tensor.data_location for tensor in model.graph.initializer):
            return Hidden(model, reasons=("the model has data in other files, where hidden layers are not looked for",))
        if model.ByteSize() + sum(array.nbytes for array in arrays.values()) > _MOST_BYTES:
            return Hidden(model, reasons=("the model is too large to be simplified",))
        simplified = _simplified(completed(model, arrays))
        if simplified is None:
            return Hidden(model, reasons=("ONNX Runtime cannot simplify the model",))
        origins, reasons = recognise(simplified, label)
    except _INVALID:
        return Hidden(model)  # an invalid graph: ONNX Runtime says what is wrong
    return Hidden(simplified, origins, reasons) if origins else Hidden(model, reasons=reasons)


def may_have_layers(graph: GraphProto, arrays: Mapping[str, AnyArray] = NO_ARRAYS) -> bool:
    """Return whether a graph or a body can have steps: activations, and products in a loop or of a common factor."""
    nodes = [*all_nodes(graph.node)]
    if not _has_cell(nodes):
        return False
    if any(node.op_type in _LOOPS and _has_cell(all_nodes(body.node)) for node in nodes for _, body in subgraphs(node)):
        return True
    graphs = [graph, *(body for node in nodes for _, body in subgraphs(node))]
    tensors = {tensor.name: tensor for inner in graphs for tensor in inner.initializer}
    return any(_repeats_factor(inner, tensors, arrays) for inner in graphs)


def _has_cell(nodes: Iterable[NodeProto]) -> bool:
    operators = {node.op_type for node in nodes}
    return not operators.isdisjoint({*ACTIVATIONS, *LIMITS}) and not operators.isdisjoint(PRODUCTS)


def _repeats_factor(graph: GraphProto, tensors: Mapping[str, TensorProto], arrays: Mapping[str, AnyArray]) -> bool:
    """Return whether a product depends on another one with the same matrix."""
    producers = {name: node for node in graph.node for name in node.output if name}
    bits: dict[tuple[Any, ...], int] = {}  # of the matrices
    reached: dict[str, int] = {}  # bits of the matrices that a value depends on
    for node in graph.node:
        mask = 0
        for name in needed_names(node):
            mask |= reached.get(name, 0)
        matrix = _matrix(node, producers, tensors, arrays)
        if matrix is not None:
            bit = bits.setdefault(matrix, 1 << len(bits))
            if mask & bit:
                return True
            mask |= bit
        if mask:
            reached.update((name, mask) for name in node.output)
    return False


def _matrix(
    node: NodeProto,
    producers: Mapping[str, NodeProto],
    tensors: Mapping[str, TensorProto],
    arrays: Mapping[str, AnyArray],
) -> tuple[Any, ...] | None:
    """Return a key of the constant matrix from which the right factor of a product is computed; None if unknown."""
    if node.op_type not in PRODUCTS or len(node.input) < 2:
        return None
    name = node.input[1]
    while name in producers and len(producers[name].input):
        name = producers[name].input[0]
    if name in arrays:
        return (arrays[name].shape, arrays[name][:1].tobytes()) if arrays[name].ndim > 1 else None
    tensor = tensors.get(name)
    if name in producers and producers[name].op_type == "Constant":
        tensor = producers[name].attribute[0].t
    return None if tensor is None or len(tensor.dims) < 2 else _likeness(tensor)


def _likeness(tensor: TensorProto) -> tuple[Any, ...]:
    """Return a key that equal tensors share."""
    return tuple(tensor.dims), tensor.raw_data[:64], tuple(tensor.float_data[:16])


def _why_one_step(graph: GraphProto) -> tuple[str, ...]:
    """Return a reason if a product multiplies a state of zeros in a graph without other steps; else ()."""
    producers = {name: node for node in graph.node for name in node.output if name}
    for product in (node for node in graph.node if node.op_type in PRODUCTS and node.input):
        node = producers.get(product.input[0])
        while node is not None and node.op_type in ("Cast", "Identity"):
            node = producers.get(node.input[0]) if node.input else None
        if node is not None and node.op_type == "ConstantOfShape" and not any(_filler(node)):
            return (_ONE_STEP,)
    return ()


def _filler(node: NodeProto) -> Iterable[Any]:
    """Return the element of a ConstantOfShape."""
    values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
    elements: Iterable[Any] = import_onnx().numpy_helper.to_array(values[0]).reshape(-1) if values else [0]
    return elements


def _simplified(model: ModelProto) -> ModelProto | None:
    """Return the model that ONNX Runtime writes after its basic optimizations; None if it rejects the model.

    Types are declared of inputs and outputs alone.
    """
    model = copied(model)
    declared = copied(model.graph)
    remove_invariants(model)
    _clear_types(model.graph)
    for value in model.graph.output:
        value.ClearField("type")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        if not _write_simplified(model, path):
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
    ort = onnxruntime()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # DequantizeLinear of weights is folded
    operators = {node.op_type for node in all_nodes(model.graph.node)}
    disabled = [*disabled_optimizers(operators), *_HIDING]
    try:
        ort.InferenceSession(
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=disabled,
            enable_fallback=0,  # would print a message
        )
    except Exception:  # of several types
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
