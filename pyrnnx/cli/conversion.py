"""Conversion of models, layers and weights from one file to another."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pyrnnx._internal.writing import check_writable, write_files
from pyrnnx.cli.arguments import chosen_layer
from pyrnnx.cli.targets import check_not_read
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, UnsupportedError, shown, wrong_suffix
from pyrnnx.layers.layer import Layer
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model, layer_values
from pyrnnx.stacks.stack import Stack

MODELS, KERAS = (".onnx", ".xml"), (".keras",)
TORCH = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
OF_OPENVINO = ("relu", "sigmoid", "tanh")  # activations that OpenVINO's CPU plugin runs


@dataclass(frozen=True)
class Options:
    """Options of the command line for the source and the target; None or empty if they are not given."""

    layer: str | None = None
    prefix: str | None = None
    operator: str | None = None
    nonlinearity: str | None = None
    batch_first: bool = False
    opset: int | None = None
    optional_input: Sequence[str] = ()


def check_target(source: str, target: str, *, force: bool) -> Path:
    """Return the path of the target.

    Raises
    ------
    ArgumentError
        Another suffix; a file of the source; an existing file without `force`; a path that is not writable.
    """
    path = Path(target)
    if path.suffix not in MODELS:
        raise ArgumentError(f"convert: {shown(target)}: {wrong_suffix(path, '.onnx or .xml')}")
    written = [path, path.with_suffix(".bin")] if path.suffix == ".xml" else [path]
    for file in written:
        check_not_read("convert", file, [source])
        if os.path.lexists(file) and not force:
            raise ArgumentError(f"convert: {shown(str(file))} exists already; --force replaces it")
        check_writable("convert", file)
    return path


def read_source(path: str, options: Options) -> Model | Layer | Stack:
    """Read a file, or the part of it that the options choose.

    Raises
    ------
    PyrnnxError
        An unknown suffix; options that do not apply to such a file; what its front-end rejects; a layer without
        weights.
    """
    suffix = Path(path).suffix.lower()
    if suffix in TORCH:
        from pyrnnx.frontends.torch import from_state_dict

        _reject(path, options, ("layer",), "weights of PyTorch")
        prefix = _with_dot(options.prefix)
        choices = {"prefix": prefix, "operator": options.operator, "nonlinearity": options.nonlinearity}
        arguments = {name: value for name, value in choices.items() if value is not None}
        with _options_named():
            stack: Stack = from_state_dict(path, batch_first=options.batch_first, **arguments)
        return stack
    if suffix not in (*MODELS, *KERAS):
        allowed = f"one of {', '.join((*MODELS, *TORCH, *KERAS))}"
        raise FormatError(f"convert: {shown(path)}: {wrong_suffix(path, allowed)}")
    what = "a model of Keras" if suffix in KERAS else "a model"
    _reject(path, options, ("prefix", "operator", "nonlinearity", "batch_first"), what)
    if suffix in KERAS:
        from pyrnnx.frontends.keras import from_file

        with _options_named():
            keras_stack: Stack = from_file(path, options.layer)
        return keras_stack
    read = read_model_or_layer(path)
    if isinstance(read, Model):
        if options.layer is None:
            return read
        layer = chosen_layer(read.layers, options.layer)
    else:
        _reject(path, options, ("layer",), "a single layer")
        layer = read
    if not isinstance(layer, Layer):
        raise UnsupportedError(f"{layer.label}: its weights are no constants; expected a layer with its weights")
    return layer


def _with_dot(prefix: str | None) -> str | None:
    """Return a prefix with a final ".", because it is the name of a module."""
    return f"{prefix}." if prefix and not prefix.endswith(".") else prefix


@contextmanager
def _options_named() -> Iterator[None]:
    """Rewrite errors of front-ends to name options instead of arguments."""
    try:
        yield
    except PyrnnxError as error:
        text = re.sub(r"^from_\w+: ", "convert: ", str(error)).removesuffix(", or None")
        text = re.sub(r": (layer|prefix|operator|nonlinearity) (is|was) ", r": --\1 \2 ", text, count=1)
        raise type(error)(text) from error


def _reject(path: str, options: Options, names: Sequence[str], what: str) -> None:
    for field in fields(options):
        if field.name in names and getattr(options, field.name) not in (None, False):
            flag = field.name.replace("_", "-")
            raise ArgumentError(f"convert: --{flag} does not apply to {shown(path)}, {what}; expected it left out")


def write_target(source: Model | Layer | Stack, origin: str, target: Path, options: Options) -> None:
    """Write the target completely or not at all.

    Raises
    ------
    PyrnnxError
        A node or layer that the format cannot express; a whole model that has the format already; options that do not
        apply.
    """
    to_onnx = target.suffix == ".onnx"
    if options.opset is not None and (isinstance(source, Model) or not to_onnx):
        raise ArgumentError("convert: --opset was given; expected it only for layers and weights written as .onnx")
    if options.optional_input and (isinstance(source, Model) or not (to_onnx or isinstance(source, Stack))):
        raise ArgumentError(
            "convert: --optional-input was given; expected it only for weights, and for layers written as .onnx"
        )
    if isinstance(source, Model) and Path(origin).suffix.lower() == target.suffix:
        raise ArgumentError(
            f"convert: {shown(origin)} is a model in {target.suffix} already; expected another suffix, or --layer"
        )
    if to_onnx and isinstance(source, Model):
        from pyrnnx.frontends.openvino import to_onnx as exported

        write_files(source.label, {target: [exported(source).SerializeToString()]})
        return
    written: Any = source
    if isinstance(source, Stack) or (to_onnx and isinstance(source, Layer)):
        from pyrnnx.frontends.onnx import write_model as write_onnx

        arguments: dict[str, Any] = {} if options.opset is None else {"opset": options.opset}
        if options.optional_input:
            arguments["inputs"] = options.optional_input
        try:
            written = write_onnx(source, target if to_onnx else None, **arguments)
        except PyrnnxError as error:  # the command's --input is another argument
            raise type(error)(re.sub(r": inputs (has|is) ", r": --optional-input \1 ", str(error), count=1)) from error
    if not to_onnx:
        from pyrnnx.frontends.openvino import write_model as write_ir

        write_ir(written, target)


def losses(source: Model | Layer | Stack, target: Path, options: Options) -> list[str]:
    """Return sentences on differences of the target from the source in use."""
    sentences = []
    layers = source.layers.values() if isinstance(source, Model) else getattr(source, "layers", [source])
    variables = [info.name for info in getattr(source, "variables", ())]
    if variables:
        words = ", ".join(variables)
        sentences.append(f"its variables ({words}) are inputs and outputs now: pass the outputs to the next call")
    if target.suffix == ".onnx":
        return sentences
    defaults = [info.name for info in source.inputs if info.optional] if isinstance(source, Model) else []
    if defaults:
        sentences.append(f"inputs with a default ({', '.join(defaults)}) are constants now")
    activations = {
        activation for layer in layers if layer.op for direction in layer.op.activations for activation in direction
    }
    unsupported = {activation.name.lower() for activation in activations} - {*OF_OPENVINO}
    if unsupported:
        sentences.append(f"OpenVINO's CPU plugin does not run {', '.join(sorted(unsupported))}")
    if _has_free_lengths(source, options):
        sentences.append(
            "OpenVINO's CPU plugin ignores sequence_lengths if a dimension of X is dynamic: fix the shapes"
        )
    return sentences


def _has_free_lengths(source: Model | Layer | Stack, options: Options) -> bool:
    """Return whether a layer of the target takes sequence lengths although X has a dynamic dimension."""
    if isinstance(source, Layer):
        return "T" in source.convention.axes_of("X")
    if isinstance(source, Stack):
        return "sequence_lens" in options.optional_input
    is_dynamic = any(not isinstance(size, int) for info in source.inputs for size in info.shape or (None,))
    return is_dynamic and any("sequence_lens" in values for values in layer_values(source).values())
