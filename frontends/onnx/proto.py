"""ONNX files and bytes to a sound ModelProto: external data loaded, local functions inlined."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, TypeAlias

from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError
from pyrnnx.frontends.onnx.functions import check_functions, inline
from pyrnnx.frontends.onnx.graphs import DEFAULT_DOMAINS, all_nodes, check_graph

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

    Source: TypeAlias = str | os.PathLike[str] | bytes | ModelProto

_EXTERNAL = 1  # onnx.TensorProto.EXTERNAL
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
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else "ONNX model"


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
        A file that cannot be read; something else than a path, bytes or ModelProto.
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
        model.CopyFrom(source)
    elif isinstance(source, (bytes, bytearray, memoryview)):
        model = _parse(onnx, label, bytes(source))
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        try:
            contents = path.read_bytes()
        except (OSError, ValueError) as error:  # ValueError: a null character in the path
            raise ArgumentError(f"{label}: cannot be read ({error}); expected an ONNX file") from error
        model, folder = _parse(onnx, label, contents), path.parent
    else:
        raise ArgumentError(f"read_model: {type(source).__name__} was given; expected a path, bytes or a ModelProto")
    if not model.HasField("graph"):
        raise FormatError(f"{label}: not an ONNX model (it has no graph)")
    _load_external(onnx, label, model, folder)
    return model


def _parse(onnx: Any, label: str, contents: bytes) -> Any:
    try:
        model = onnx.ModelProto()
        model.ParseFromString(contents)
    except Exception as error:  # protobuf's own errors differ between its versions
        raise FormatError(f"{label}: not an ONNX model ({error})") from error
    return model


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


def _load_external(onnx: Any, label: str, model: ModelProto, folder: Path | None) -> None:
    for tensor in tensors(model):
        if tensor.data_location != _EXTERNAL:
            continue
        where = {entry.key: entry.value for entry in tensor.external_data}
        location = where.get("location", "")
        what = f"{label}: the data of tensor {tensor.name!r} is in the file {location!r}"
        if folder is None:
            raise FormatError(f"{what}; expected a path to the model, so that the file can be found beside it")
        if _leaves(location) or not (folder / location).resolve().is_relative_to(folder.resolve()):
            raise FormatError(f"{what}; expected a file in the model's folder")
        if not (folder / location).is_file():
            raise FormatError(f"{what}, which does not exist in {os.fspath(folder)!r}")
        _check_place(what, where, (folder / location).stat().st_size)
        try:
            onnx.external_data_helper.load_external_data_for_tensor(tensor, os.fspath(folder))
        except Exception as error:  # further checks of onnx itself, which differ between its versions
            raise FormatError(f"{what}, which cannot be used ({error})") from error
        tensor.data_location = onnx.TensorProto.DEFAULT
        del tensor.external_data[:]


def _check_place(what: str, where: Mapping[str, str], size: int) -> None:
    """Reject an offset and a length that are not inside a file of that size."""
    try:
        offset = int(where.get("offset", "0"))
        length = int(where.get("length", str(size - offset)))
    except ValueError as error:
        raise FormatError(f"{what}, at no place in it ({error})") from None
    if offset < 0 or length < 0 or offset + length > size:
        raise FormatError(f"{what}, from byte {offset} on for {length} bytes; it has {size}")


def _leaves(location: str) -> bool:
    """Whether a path is absolute, or goes up, on any system."""
    paths = (PurePosixPath(location), PureWindowsPath(location))
    return not location or any(p.is_absolute() or p.drive or p.root or ".." in p.parts for p in paths)


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
                f"{label}: opset_import has the versions {versions[domain]} and {one.version} of domain {domain!r}"
            )
        if one.version < 1:
            raise FormatError(
                f"{label}: opset_import has version {one.version} of domain {domain!r}; expected 1 or more"
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
    opsets_of(model, label)
    check_functions(model, label)
    check_graph(model.graph, label)


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
                        raise FormatError(f"{label}: the text {text!r} in a {message.DESCRIPTOR.name} is not UTF-8")


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
