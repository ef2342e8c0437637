"""Files that `pyrnnx convert` reads and writes, and what the written one lacks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyrnnx._internal.writing import check_writable, write_files
from pyrnnx.errors import ArgumentError, FormatError, UnsupportedError, shown, wrong_suffix
from pyrnnx.layers.layer import Layer
from pyrnnx.load import load, read_model_or_layer
from pyrnnx.models.model import Model, layer_values
from pyrnnx.stacks.stack import Stack

MODELS, KERAS = (".onnx", ".xml"), (".keras",)
TORCH = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
Options = Mapping[str, Any]  # of the command line, by their names without dashes; None, False or empty if not given


def check_target(source: str, target: str, *, force: bool) -> list[Path]:
    """Return the target, and for an IR its file of weights."""
    path = Path(target)
    if path.suffix not in MODELS:
        raise ArgumentError(f"convert: {shown(target)}: {wrong_suffix(path, '.onnx or .xml')}")
    files = [path, path.with_suffix(".bin")] if path.suffix == ".xml" else [path]
    for file in files:
        for read in filter(os.path.exists, _files_of(source)):
            if os.path.exists(file) and os.path.samefile(file, read):  # also through links
                raise ArgumentError(
                    f"convert: {shown(str(file))} is the same file as {shown(str(read))}, which is read; expected "
                    "another name"
                )
        if os.path.lexists(file) and not force:
            raise ArgumentError(f"convert: {shown(str(file))} exists already; --force replaces it")
        check_writable("convert", file)
    return files


def _files_of(source: str) -> list[Path]:
    path = Path(source)
    if path.suffix.lower() == ".onnx" and path.exists():
        from pyrnnx.frontends.onnx.file import external_files

        return [path, *external_files(path)]
    return [path, path.with_suffix(".bin")] if path.suffix.lower() == ".xml" else [path]


def read_source(path: str, options: Options) -> Model | Layer | Stack:
    """Read a file, or the part of it that the options choose."""
    suffix = Path(path).suffix.lower()
    if suffix in TORCH:
        from pyrnnx.frontends.torch import from_state_dict

        given = {"nonlinearity": options["nonlinearity"]} if options["nonlinearity"] else {}
        if options["prefix"]:
            given["prefix"] = f"{options['prefix'].removesuffix('.')}."  # it is the name of a module
        torch_stack: Stack = from_state_dict(path, batch_first=options["batch-first"], **given)
        return torch_stack
    if suffix in KERAS:
        from pyrnnx.frontends.keras import from_file

        keras_stack: Stack = from_file(path, options["layer"])
        return keras_stack
    if suffix not in MODELS:
        allowed = f"one of {', '.join((*MODELS, *TORCH, *KERAS))}"
        raise FormatError(f"convert: {shown(path)}: {wrong_suffix(path, allowed)}")
    source: Any = read_model_or_layer(path)
    if isinstance(source, Model) and options["layer"] is not None:
        name = options["layer"]
        is_index = name not in source.layers and name.removeprefix("-").isdecimal() and len(name) < 10
        source = source.layers[int(name) if is_index else name]
    if isinstance(source, (Model, Layer)):
        return source
    raise UnsupportedError(f"{source.label}: its weights are no constants; expected a layer with its weights")


def check_options(source: Model | Layer | Stack, origin: str, target: Path, options: Options) -> None:
    suffix, to_onnx = Path(origin).suffix.lower(), target.suffix == ".onnx"
    if isinstance(source, Model):
        allowed = {"input", "dim"}
    else:
        allowed = {
            *(["opset"] if to_onnx else []),
            *(["optional-input"] if to_onnx or isinstance(source, Stack) else []),
        }
        allowed |= {"prefix", "nonlinearity", "batch-first"} if suffix in TORCH else {"layer"}
    for name in options:
        if options[name] and name not in allowed:
            raise ArgumentError(
                f"convert: --{name} does not apply to {shown(origin)}, {_kind(source)}, written as {target.suffix}; "
                "expected it left out"
            )
    if isinstance(source, Model) and suffix == target.suffix:
        raise ArgumentError(
            f"convert: {shown(origin)} is a model in {target.suffix} already; expected another suffix, or --layer"
        )


def _kind(source: Model | Layer | Stack) -> str:
    return "a model" if isinstance(source, Model) else "a layer" if isinstance(source, Layer) else "weights"


def write_target(source: Model | Layer | Stack, target: Path, options: Options) -> None:
    """Write the target completely or not at all."""
    to_onnx = target.suffix == ".onnx"
    if isinstance(source, Model) and to_onnx:
        from pyrnnx.frontends.openvino import to_onnx as exported

        write_files(source.label, {target: [exported(source).SerializeToString()]})
        return
    written: Any = source
    if to_onnx or isinstance(source, Stack):
        from pyrnnx.frontends.onnx import write_model as write_onnx

        given = {"opset": options["opset"], "inputs": options["optional-input"]}
        arguments: dict[str, Any] = {name: value for name, value in given.items() if value}
        written = write_onnx(written, target if to_onnx else None, **arguments)
    if not to_onnx:
        from pyrnnx.frontends.openvino import write_model as write_ir

        write_ir(written, target)


def losses(source: Model | Layer | Stack, origin: str, target: Path, options: Options) -> list[str]:
    """Return sentences on differences of the target from the source in use."""
    sentences = []
    if isinstance(source, Stack) and options["layer"] is None and options["prefix"] is None:
        sentences.append(f"only {source.label} of {shown(origin)} is written, and no other layers that it may have")
    is_rnn = isinstance(source, Stack) and source.layers[0].op.cell == "RNN"
    if is_rnn and options["nonlinearity"] is None and Path(origin).suffix.lower() in TORCH:
        sentences.append("weights of an RNN of PyTorch do not contain its nonlinearity; using tanh (--nonlinearity)")
    variables = [info.name for info in getattr(source, "variables", ())]
    if variables:
        words = ", ".join(variables)
        sentences.append(f"its variables ({words}) are inputs and outputs now: pass the outputs to the next call")
    if target.suffix == ".onnx":
        return sentences
    defaults = [info.name for info in source.inputs if info.optional] if isinstance(source, Model) else []
    if defaults:
        sentences.append(f"inputs with a default ({', '.join(defaults)}) are constants now")
    if _has_free_lengths(source, target, options):
        sentences.append(
            "OpenVINO's CPU plugin ignores sequence_lengths if a dimension of X is dynamic: fix the shapes"
        )
    return sentences


def _has_free_lengths(source: Model | Layer | Stack, target: Path, options: Options) -> bool:
    if isinstance(source, Layer):
        return any(info.name == "sequence_lengths" for info in load(target).inputs)
    if isinstance(source, Stack):
        return "sequence_lens" in (options["optional-input"] or ())
    is_dynamic = any(not isinstance(size, int) for info in source.inputs for size in info.shape or (None,))
    return is_dynamic and any("sequence_lens" in values for values in layer_values(source).values())
