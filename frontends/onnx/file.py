"""ONNX files and bytes to a sound ModelProto: external data loaded, local functions inlined."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, UnsupportedError, shortened, shown
from pyrnnx.files import read_regular

from .external import load_external
from .graph.inline import check_functions, inline
from .graph.walk import DEFAULT_DOMAINS, all_nodes, check_graph, node_label
from .schemas import INPUTS

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

    Source: TypeAlias = str | os.PathLike[str] | bytes | ModelProto

# Layers check their inputs themselves, and exporters leave out the roi of Resize-11, though its text requires it.
_LENIENT = {*INPUTS, "Resize"}
LARGEST = 2**31 - 1  # bytes of a protobuf message
_FIRST_IR_WITH_OPSETS = 3


def import_onnx() -> Any:
    """The onnx package.

    Raises
    ------
    PyrnnxError
        It is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise PyrnnxError("reading and running ONNX models needs the onnx package; install pyrnnx[onnx]") from error
    return onnx


def source_label(source: Source) -> str:
    """How errors name what was given to `load_proto`."""
    return shortened(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else "ONNX model"


def load_proto(source: Source) -> ModelProto:
    """A ModelProto with its external data.

    Parameters
    ----------
    source : path, bytes or ModelProto
        A str is a path, bytes are a file's contents; a ModelProto is copied. External data is looked for beside a path,
        and nowhere else.

    Raises
    ------
    ArgumentError
        A file that cannot be read, or is larger than protobuf allows; something else than a path, bytes or ModelProto.
    FormatError
        No ONNX model; external data that is missing, too short, or outside the model's folder. Whether the parts of
        the model fit together is for `check_model`.
    """
    onnx = import_onnx()
    label = source_label(source)
    folder: Path | None = None
    model: ModelProto
    if isinstance(source, onnx.ModelProto):
        model = onnx.ModelProto()
        try:
            model.CopyFrom(source)
        except Exception as error:  # deeper, or larger, than this version of protobuf copies
            raise FormatError(f"{label}: cannot be copied ({shortened(str(error))})") from error
    elif isinstance(source, (bytes, bytearray, memoryview)):
        if memoryview(source).nbytes > LARGEST:
            raise FormatError(f"{label}: {memoryview(source).nbytes} bytes; expected at most {LARGEST}")
        model = _parse(onnx, label, bytes(source))
    elif isinstance(source, (str, os.PathLike)):
        path = Path(os.fsdecode(source))
        contents = read_regular("read_model", path, most=LARGEST, expected="an ONNX file")
        model, folder = _parse(onnx, label, contents), path.parent
    else:
        raise ArgumentError(f"read_model: {type(source).__name__} was given; expected a path, bytes or a ModelProto")
    if not model.HasField("graph"):
        raise FormatError(f"{label}: not an ONNX model (it has no graph)")
    _check_dims(model, label)
    load_external(onnx, label, tensors(model), folder)
    return model


def _parse(onnx: Any, label: str, contents: bytes) -> Any:
    try:
        model = onnx.ModelProto()
        model.ParseFromString(contents)
    except Exception as error:  # protobuf's own errors differ between its versions
        raise FormatError(f"{label}: not an ONNX model ({shortened(str(error))})") from error
    return model


def serialized(model: ModelProto, label: str) -> bytes:
    """The model as the bytes of a file.

    Raises
    ------
    UnsupportedError
        A model beyond what protobuf can write, 2 GiB: one whose weights were external data.
    """
    try:
        contents = bytes(model.SerializeToString())
    except Exception as error:  # of protobuf, whose errors differ between its versions
        raise UnsupportedError(f"{label}: cannot be pickled or copied ({shortened(str(error))})") from error
    if len(contents) > LARGEST:
        raise UnsupportedError(
            f"{label}: cannot be pickled or copied; it has {len(contents)} bytes, more than the {LARGEST} allowed"
        )
    return contents


def tensors(model: ModelProto) -> Iterable[TensorProto]:
    """Every TensorProto of a model: initializers and attributes, of all graphs and functions."""
    nodes = [model.graph.node, *(function.node for function in model.functions)]
    graphs = [model.graph]
    for node in (node for group in nodes for node in all_nodes(group)):
        for attribute in node.attribute:
            graphs += [attribute.g] if attribute.HasField("g") else []
            graphs += attribute.graphs
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
    for graph in graphs:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)


def opsets_of(model: ModelProto, label: str) -> dict[str, int]:
    """Version by domain; the default domain is "".

    Raises
    ------
    FormatError
        No version for the default domain, which a node is of; two versions of one domain, or one below 1.
    """
    versions: dict[str, int] = {}
    for one in model.opset_import:
        domain = "" if one.domain in DEFAULT_DOMAINS else one.domain
        if versions.setdefault(domain, one.version) != one.version:
            raise FormatError(
                f"{label}: opset_import has the versions {versions[domain]} and {one.version} of domain {shown(domain)}"
            )
        if one.version < 1:
            raise FormatError(
                f"{label}: opset_import has version {one.version} of domain {shown(domain)}; expected 1 or more"
            )
    if not versions and model.ir_version < _FIRST_IR_WITH_OPSETS:
        return {"": 1}
    if "" not in versions and any(node.domain in DEFAULT_DOMAINS for node in all_nodes(model.graph.node)):
        raise FormatError(f"{label}: opset_import has no version for the default domain")
    return versions


def check_model(model: ModelProto, label: str) -> None:
    """Reject a model whose texts, opsets, functions or names are not sound.

    Raises
    ------
    FormatError
    """
    _check_texts(model, label)
    _check_dims(model, label)
    _check_newest(model, label)
    opsets = opsets_of(model, label)
    check_functions(model, label)
    check_graph(model.graph, label)
    _check_inputs(model, opsets, label)


def _check_dims(model: ModelProto, label: str) -> None:
    """A negative dimension would be taken for one that the data tells."""
    for tensor in tensors(model):
        if any(size < 0 for size in tensor.dims):
            raise FormatError(f"{label}: tensor {shown(tensor.name)} has dims {shown(list(tensor.dims))}, below 0")


def _check_newest(model: ModelProto, label: str) -> None:
    """What an opset that the onnx package does not know means is told by nothing here."""
    newest = import_onnx().defs.onnx_opset_version()
    for part in (model, *model.functions):
        for one in part.opset_import:
            if one.domain in DEFAULT_DOMAINS and one.version > newest:
                raise UnsupportedError(
                    f"{label}: opset_import has version {one.version} of the default domain; expected at most "
                    f"{newest}, the newest that the installed onnx package has"
                )


def _check_inputs(model: ModelProto, opsets: Mapping[str, int], label: str) -> None:
    """Reject nodes without an input that their operator needs; operators that onnx does not know may take any."""
    required: dict[tuple[str, str], list[str]] = {}
    for node in all_nodes(model.graph.node):
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        key = domain, node.op_type
        if key not in required:
            required[key] = _required_inputs(node.op_type, opsets.get(domain, 1), domain)
        for position, name in enumerate(required[key]):
            if position >= len(node.input) or not node.input[position]:
                raise FormatError(f"{label}: {node_label(node)}: its input {name} is missing; the operator needs it")


def _required_inputs(operator: str, version: int, domain: str) -> list[str]:
    """The inputs of an operator that are neither optional nor variadic: always its first ones."""
    defs = import_onnx().defs
    if operator in _LENIENT and not domain:
        return []
    try:
        schema = defs.get_schema(operator, version, domain)
    except Exception:  # of a class that differs between versions: no such operator
        return []
    return [one.name for one in schema.inputs if one.option == defs.OpSchema.FormalParameterOption.Single]


def _check_texts(model: ModelProto, label: str) -> None:
    """Texts that are not UTF-8 are read as bytes, but can be written nowhere."""
    left: list[Any] = [model]
    while left:
        message = left.pop()
        tensor = message.DESCRIPTOR.name == "TensorProto"  # whose data is not to be copied for this
        fields = [(None, [message.name, message.doc_string])] if tensor else message.ListFields()
        for field, value in fields:
            values = value if hasattr(value, "append") or hasattr(value, "add") else [value]
            if field is not None and field.message_type is not None:
                left.extend(values)
            elif field is None or field.type == field.TYPE_STRING:
                for text in values:
                    if not isinstance(text, str):
                        kind = message.DESCRIPTOR.name
                        raise FormatError(f"{label}: the text {shown(text)} in a {kind} is not UTF-8")


def inlined(model: ModelProto, label: str) -> ModelProto:
    """The model without local functions, its default domain spelt ""; the model itself where that is so already.

    Raises
    ------
    PyrnnxError
        Functions that cannot be inlined.
    """
    result = model
    if model.functions:
        result = inline(model, label)
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
    return result
