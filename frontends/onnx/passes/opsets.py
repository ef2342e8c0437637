"""Passes of opsets: one name of the default domain, and an opset that ONNX Runtime has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..graph.walk import DEFAULT_DOMAINS, Graph, all_nodes
from ..messages import copied
from ..onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import ModelProto

FIRST_OPSET = 7  # oldest opset of the default domain that ONNX Runtime supports
_CONVERTED = 7  # opset of older models: the first with which ONNX Runtime has all operators, by the fewest changes
# Operators with the attributes `broadcast` and `axis` below opset 7. onnx would convert them for sizes that are known.
_BROADCASTING = {"Add", "And", "Div", "Equal", "Gemm", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor"}
_ASIDE = "pyrnnx.aside"  # domain of nodes that onnx must not convert


def with_plain_domain(proto: ModelProto, graph: Graph) -> ModelProto:
    """Return the model with "" for the default domain, whose other name is "ai.onnx"."""
    other = DEFAULT_DOMAINS[1]
    if all(entry.domain != other for entry in proto.opset_import) and all(domain != other for domain, _ in graph.kinds):
        return proto
    proto = copied(proto)
    versions = {entry.domain.removeprefix(other): entry.version for entry in proto.opset_import}
    del proto.opset_import[:]
    for domain, version in versions.items():
        proto.opset_import.add(domain=domain, version=version)
    for node in all_nodes(proto.graph.node):
        node.domain = "" if node.domain == other else node.domain
    return proto


def converted(proto: ModelProto, opsets: Mapping[str, int]) -> ModelProto:
    """Return the model in an opset of which ONNX Runtime has all operators.

    It is the model itself if its own opset is one, or if onnx cannot convert it: ONNX Runtime says then what it lacks.
    Its recurrent nodes are operators of pyrnnx: onnx would convert them as other operators.
    """
    if not 0 < opsets.get("", FIRST_OPSET) < FIRST_OPSET:
        return proto
    import_onnx()
    from onnx import version_converter

    result = copied(proto)
    _set_aside(result)
    if all(entry.domain for entry in result.opset_import):  # IR versions 1 and 2
        result.opset_import.add(version=opsets[""])
    try:
        result = version_converter.convert_version(result, _CONVERTED)
    except Exception:  # of several types
        return proto
    for node in all_nodes(result.graph.node):
        node.domain = "" if node.domain == _ASIDE else node.domain
    infos = result.graph.value_info
    for index in reversed(range(len(infos))):
        if not infos[index].type.tensor_type.elem_type:  # onnx adds them, and ONNX Runtime rejects them
            del infos[index]
    return result


def _set_aside(proto: ModelProto) -> None:
    """Give nodes that broadcast as those of newer opsets another domain, and drop their attributes for that."""
    for node in all_nodes(proto.graph.node):
        names = [attribute.name for attribute in node.attribute]
        if node.op_type in _BROADCASTING and not node.domain and "axis" not in names:
            node.domain = _ASIDE
            for index in reversed(range(len(names))):
                if names[index] in ("broadcast", "consumed_inputs"):
                    del node.attribute[index]
    proto.opset_import.add(domain=_ASIDE, version=1)
