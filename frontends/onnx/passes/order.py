"""The order of the passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.models.layers import why_none

from ..graph.check import opsets_of
from ..graph.large import without_large
from ..graph.scoped import scoped
from ..graph.walk import Graph, all_graphs, all_nodes, prune
from ..messages import copied
from ..onnx_package import import_onnx
from .convolutions import multiply_windows
from .hidden import hidden_layers
from .inline import has_recurrent, inline_functions
from .operators import Rewritten, replace_recurrent
from .opsets import converted, with_plain_domain
from .recurrent import RecurrentModel, find_recurrent

if TYPE_CHECKING:
    from onnx import ModelProto

    from .carried import Carried

FIRST_IR_WITH_DEFAULTS = 4  # in older files, an initializer that is also an input is a constant
_MOST_REASONS = 3
NO_ARRAYS: Mapping[str, AnyArray] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Found:
    """A model and its layers.

    Attributes
    ----------
    model : RecurrentModel
    arrays : mapping
        Values of initializers that the model lacks, by name.
    reasons : tuple of str
        What is missing in parts that are nearly layers.
    """

    model: RecurrentModel
    arrays: Mapping[str, AnyArray]
    reasons: tuple[str, ...] = ()

    @property
    def contents(self) -> set[str]:
        """Operators in the model, its bodies and functions, and "float16" if it has values of this type."""
        graph, element = self.model.graph.graph, import_onnx().TensorProto.FLOAT16
        functions = [node for function in self.model.proto.functions for node in all_nodes(function.node)]
        elements = {value.type.tensor_type.elem_type for value in graph.input}
        elements |= {tensor.data_type for part in all_graphs(graph) for tensor in part.tensors}
        nodes = [*(node.proto for node in graph.every if node.op_type == "Cast"), *functions]
        elements |= {to.i for node in nodes if node.op_type == "Cast" for to in node.attribute}
        operators = {operator for _, operator in graph.kinds} | {node.op_type for node in functions}
        return operators | {"float16"} if element in elements else operators

    def why_no_layers(self) -> str:
        """Return why a model has no recurrent nodes, or what other parts lack, as far as it is known."""
        missing = "; ".join(self.reasons[:_MOST_REASONS])
        if self.model.sites:
            return f"other parts are nearly layers, but are not recognised: {missing}" if missing else ""
        graph = self.model.graph
        factors = (node.input[1] for node in graph.nodes if node.op_type in ("MatMul", "Gemm") and node.input[1:])
        loops = (node.op_type for node in graph.nodes if node.op_type in ("Loop", "Scan"))
        likely = why_none((name for name in factors if graph.constants.owner(name) is not None), loops)
        return f"{likely}; it is not recognised: {missing}" if likely and missing else likely or missing


def find_layers(
    proto: ModelProto,
    graph: Graph,
    label: str,
    arrays: Mapping[str, AnyArray] = NO_ARRAYS,
    others: Mapping[str, Any] = MappingProxyType({}),
    *,
    defaults: bool = False,
) -> Found:
    """Return a model with its recurrent layers, hidden ones among them.

    Parameters
    ----------
    proto : onnx.ModelProto
    graph : Graph
        Its graph; both as `canonical` returns them. They are not changed.
    label : str
        How errors name the model.
    arrays : mapping
        Values of initializers that `proto` lacks, by name.
    others : mapping
        Layers of nodes of other domains, by node name.
    defaults : bool
        Whether initializers that are also inputs are constants.

    Raises
    ------
    PyrnnxError
        A function cannot be inlined, or a recurrent node is wrong.
    """
    source = proto
    proto = with_plain_domain(inline_functions(proto, label), graph)
    if defaults or proto.ir_version < FIRST_IR_WITH_DEFAULTS:
        proto = _without_defaults(proto)
    origins: Mapping[str, str] = {}
    reasons: tuple[str, ...] = ()
    if any(has_recurrent(function.node) for function in proto.functions):
        reasons = ("functions with recurrent nodes have another opset than the graph, or attributes with defaults",)
    if not others:
        hidden = hidden_layers(proto, label, arrays)
        origins, reasons = hidden.origins, (*reasons, *hidden.reasons)
        if origins:
            proto, arrays = without_large(hidden.model)
    if proto is not source:
        graph = Graph(proto.graph)
    graph.arrays = arrays
    model = find_recurrent(proto, scoped(graph, label), opsets_of(proto, label), others, origins)
    return Found(model, arrays, reasons)


def without_layers(proto: ModelProto, arrays: Mapping[str, AnyArray], why: str) -> Found:
    """Return a model that the passes leave alone, and why."""
    nothing = scoped(Graph(type(proto.graph)()), "")
    return Found(RecurrentModel(proto, nothing, {}, {}), arrays, (why,))


def rewritten(
    layered: Found,
    *,
    carried: Mapping[str, Carried] = MappingProxyType({}),
    portable: bool = False,
    computed: bool = True,
    threads: int | None = None,
) -> Rewritten:
    """Return a new model for an ONNX Runtime session with pyrnnx's operators; as `replace_recurrent`."""
    if not layered.model.opsets:  # ONNX Runtime alone can read it
        return Rewritten(copied(layered.model.proto))
    result = replace_recurrent(layered.model, carried=carried, portable=portable, computed=computed, threads=threads)
    if multiply_windows(result.proto, layered.arrays) or result.rows:
        prune(result.proto.graph)
    result.proto = converted(result.proto, layered.model.opsets)
    return result


def _without_defaults(proto: ModelProto) -> ModelProto:
    names = {tensor.name for tensor in proto.graph.initializer}
    if names.isdisjoint(value.name for value in proto.graph.input):
        return proto
    copy = copied(proto)
    copy.ir_version = max(copy.ir_version, FIRST_IR_WITH_DEFAULTS)
    if not copy.opset_import:  # which newer files must have
        copy.opset_import.add(version=1)
    for index in reversed(range(len(copy.graph.input))):
        if copy.graph.input[index].name in names:
            del copy.graph.input[index]
    return copy
