"""The order of the passes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyrnnx._internal.dtypes import AnyArray

from ..graph.constants import set_constants, without_large
from ..graph.walk import Graph, prune
from ..messages import copied
from .canonical import opsets_of
from .convolutions import multiply_windows
from .hidden import hidden_layers
from .inline import has_recurrent, inline_functions
from .operators import Rewritten, replace_recurrent
from .opsets import converted, with_plain_domain
from .recurrent import DEFAULT_OPTIONS, LayerOptions, RecurrentModel, find_recurrent

if TYPE_CHECKING:
    from onnx import ModelProto

    from .carried import Carried

FIRST_IR_WITH_DEFAULTS = 4  # in older files, an initializer that is also an input is a constant
NO_ARRAYS: Mapping[str, AnyArray] = MappingProxyType({})


def find_layers(
    proto: ModelProto,
    graph: Graph,
    label: str,
    arrays: Mapping[str, AnyArray] = NO_ARRAYS,
    options: LayerOptions = DEFAULT_OPTIONS,
    *,
    defaults: bool = False,
) -> RecurrentModel:
    """Return a model with its recurrent layers, hidden ones among them; `proto` and `graph` are not changed.

    They are as `canonical` returns them; `arrays` are values of initializers that `proto` lacks. With `defaults`,
    initializers that are also inputs are constants.
    """
    source = proto
    proto = with_plain_domain(inline_functions(proto, label), graph)
    if defaults or proto.ir_version < FIRST_IR_WITH_DEFAULTS:
        proto = _without_defaults(proto)
    origins: Mapping[str, str] = {}
    reasons: tuple[str, ...] = ()
    if any(has_recurrent(function.node) for function in proto.functions):
        reasons = ("functions with recurrent nodes have another opset than the graph, or attributes with defaults",)
    if proto is not source:
        graph = Graph(proto.graph)
    graph.arrays = arrays
    set_constants(graph, label)
    if not options.others:
        hidden = hidden_layers(proto, label, graph)
        origins, reasons = hidden.origins, (*reasons, *hidden.reasons)
        if origins:
            proto, arrays = without_large(hidden.model)
            graph = Graph(proto.graph)
            graph.arrays = arrays
            set_constants(graph, label)
    return find_recurrent(proto, graph, opsets_of(proto, label), options, origins, reasons)


def without_layers(proto: ModelProto, arrays: Mapping[str, AnyArray], why: str) -> RecurrentModel:
    """Return a model that the passes leave alone, and why."""
    nothing = Graph(type(proto.graph)())
    nothing.arrays = arrays
    return RecurrentModel(proto, set_constants(nothing, ""), {}, {}, (why,))


def rewritten(
    model: RecurrentModel,
    *,
    carried: Mapping[str, Carried] = MappingProxyType({}),
    portable: bool = False,
    computed: bool = True,
    threads: int | None = None,
) -> Rewritten:
    """Return a new model for an ONNX Runtime session with pyrnnx's operators; as `replace_recurrent`."""
    if not model.opsets:  # ONNX Runtime alone can read it
        return Rewritten(copied(model.proto), model.arrays)
    result = replace_recurrent(model, carried=carried, portable=portable, computed=computed, threads=threads)
    matrices = multiply_windows(result.proto, model.arrays)
    if matrices or result.rows:
        prune(result.proto.graph)
    result.arrays = {**model.arrays, **matrices}
    result.proto = converted(result.proto, model.opsets)
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
