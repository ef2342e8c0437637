"""A model without local functions: every call of one replaced by its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyrnnx.errors import PyrnnxError, shortened

from .check import check_graph, opsets_of
from .local_functions import function_key, key_of_call
from .walk import DEFAULT_DOMAINS, all_nodes, node_label

if TYPE_CHECKING:
    from onnx import ModelProto


def inlined(model: ModelProto, opsets: Mapping[str, int], label: str) -> tuple[ModelProto, Mapping[str, int]]:
    """The model without local functions, its default domain spelt "", and its opsets.

    Parameters
    ----------
    model : onnx.ModelProto
        It is returned itself where that is so already.
    opsets : mapping
        As `opsets_of` gives them for it.

    Raises
    ------
    PyrnnxError
        Functions that cannot be inlined.
    """
    result = model
    if model.functions:
        result = _without_functions(model, label)
        opsets = opsets_of(result, label)
    spelt = {(one.domain, one.version) for one in result.opset_import}
    if spelt != set(opsets.items()) or any(node.domain == DEFAULT_DOMAINS[1] for node in all_nodes(result.graph.node)):
        if result is model:
            result = type(model)()
            result.CopyFrom(model)
        del result.opset_import[:]
        for domain, version in opsets.items():
            result.opset_import.add(domain=domain, version=version)
        for node in all_nodes(result.graph.node):
            if node.domain == DEFAULT_DOMAINS[1]:
                node.domain = ""
    return result, opsets


def _without_functions(model: ModelProto, label: str) -> ModelProto:
    """The model with every call of a local function in its place.

    Raises
    ------
    PyrnnxError
        Functions that onnx cannot inline.
    """
    import onnx.inliner

    try:
        result = onnx.inliner.inline_local_functions(model, convert_version=True)
    except Exception as error:
        raise PyrnnxError(f"{label}: its functions cannot be inlined ({shortened(str(error))})") from error
    local = {function_key(one.domain, one.name, "")[:2] for one in model.functions}
    for node in all_nodes(result.graph.node):
        if key_of_call(node)[:2] in local:
            raise PyrnnxError(f"{label}: the function of {node_label(node)} cannot be inlined; its opset differs")
    check_graph(result.graph, label)
    return result
