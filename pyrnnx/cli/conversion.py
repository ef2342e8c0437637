"""Files that `pyrnnx convert` reads and writes, and what the written one lacks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrnnx._internal.extras import needs
from pyrnnx._internal.writing import check_writable, write_files
from pyrnnx.cli.arguments import chosen_layer
from pyrnnx.cli.arrays import check_not_read
from pyrnnx.errors import (
    ArgumentError,
    FormatError,
    UnsupportedError,
    listed,
    printable,
    shortened,
    shown,
    wrong_suffix,
)
from pyrnnx.layers.layer import Layer
from pyrnnx.load import read_model_or_layer
from pyrnnx.models.model import Model, layer_values
from pyrnnx.stacks.stack import Stack

MODELS, KERAS = (".onnx", ".xml"), (".keras",)
TORCH = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
OF_OPENVINO = ("relu", "sigmoid", "tanh")  # activations that OpenVINO's CPU plugin runs
LISTED = 5  # names that a warning lists


@dataclass(frozen=True)
class Options:
    """Options of the command line for the source and the target; None or empty if they are not given."""

    layer: str | None
    prefix: str | None
    operator: str | None
    nonlinearity: str | None
    batch_first: bool
    opset: int | None
    optional_input: Sequence[str]
    runtime: str | None

    def reject(self, names: Sequence[str], words: str) -> None:
        """Raise if one of these options is given; `words` say what it does not apply to."""
        for name in names:
            if getattr(self, name):
                flag = name.replace("_", "-")
                raise ArgumentError(f"convert: --{flag} does not apply {words}; expected it left out")


def check_target(source: str, target: str, options: Options, *, force: bool) -> Path:
    """Return the path of the target."""
    path = Path(target)
    if path.suffix not in MODELS:
        raise ArgumentError(f"convert: {shown(target)}: {wrong_suffix(path, '.onnx or .xml')}")
    if options.runtime is not None:
        words = f"with --for {options.runtime}"
        if Path(source).suffix.lower() != ".onnx" or path.suffix != ".onnx":
            raise ArgumentError(f"convert: {shown(source)} and {shown(target)} {words}: expected two names in .onnx")
        options.reject(("layer", "prefix", "operator", "nonlinearity", "batch_first", "opset", "optional_input"), words)
        try:
            import pyrnnx.onnxruntime  # noqa: F401
        except ImportError as error:
            raise ArgumentError(needs("convert: --for onnxruntime", "onnxruntime", "onnx")) from error
    for file in written_files(path):
        check_not_read("convert", file, [source])
        if os.path.lexists(file) and not force:
            raise ArgumentError(f"convert: {shown(str(file))} exists already; --force replaces it")
        check_writable("convert", file)
    return path


def written_files(target: Path) -> list[Path]:
    """Return the target and its file of weights."""
    return [target, target.with_suffix(".bin")] if target.suffix == ".xml" else [target]


def read_source(path: str, options: Options) -> Model | Layer | Stack:
    """Read a file, or the part of it that the options choose."""
    suffix = Path(path).suffix.lower()
    if suffix in TORCH:
        return _torch_stack(path, options)
    if suffix not in (*MODELS, *KERAS):
        allowed = f"one of {', '.join((*MODELS, *TORCH, *KERAS))}"
        raise FormatError(f"convert: {shown(path)}: {wrong_suffix(path, allowed)}")
    of_torch = "prefix", "operator", "nonlinearity", "batch_first"
    options.reject(of_torch, f"to {shown(path)}, a model{' of Keras' if suffix in KERAS else ''}")
    if suffix in KERAS:
        from pyrnnx.frontends.keras import from_file

        keras_stack: Stack = from_file(path, options.layer)
        return keras_stack
    layer = read_model_or_layer(path)
    if isinstance(layer, Model):
        if options.layer is None:
            return layer
        layer = chosen_layer(layer.layers, options.layer)
    else:
        options.reject(("layer",), f"to {shown(path)}, a single layer")
    if not isinstance(layer, Layer):
        raise UnsupportedError(f"{layer.label}: its weights are no constants; expected a layer with its weights")
    return layer


def _torch_stack(path: str, options: Options) -> Stack:
    from pyrnnx.frontends.torch import from_state_dict

    options.reject(("layer",), f"to {shown(path)}, weights of PyTorch")
    prefix = options.prefix
    if prefix and not prefix.endswith("."):
        prefix += "."  # it is the name of a module
    choices = {"prefix": prefix, "operator": options.operator, "nonlinearity": options.nonlinearity}
    arguments = {name: value for name, value in choices.items() if value is not None}
    stack: Stack = from_state_dict(path, batch_first=options.batch_first, **arguments)
    return stack


def write_target(source: Model | Layer | Stack, origin: str, target: Path, options: Options) -> None:
    """Write the target completely or not at all."""
    to_onnx, is_model = target.suffix == ".onnx", isinstance(source, Model)
    if options.runtime is not None:
        from pyrnnx.onnxruntime import rewrite

        write_files(origin, {target: [rewrite(origin).SerializeToString()]})
        return
    if options.opset is not None and (is_model or not to_onnx):
        raise ArgumentError("convert: --opset was given; expected it only for layers and weights written as .onnx")
    if options.optional_input and (is_model or not (to_onnx or isinstance(source, Stack))):
        raise ArgumentError(
            "convert: --optional-input was given; expected it only for weights, and for layers written as .onnx"
        )
    if is_model and Path(origin).suffix.lower() == target.suffix:
        raise ArgumentError(
            f"convert: {shown(origin)} is a model in {target.suffix} already; expected another suffix, or --layer"
        )
    written: Any = source
    if is_model and to_onnx:
        from pyrnnx.frontends.openvino import to_onnx as exported

        write_files(source.label, {target: [exported(source).SerializeToString()]})
    elif to_onnx or isinstance(source, Stack):
        from pyrnnx.frontends.onnx import write_model as write_onnx

        arguments: dict[str, Any] = {} if options.opset is None else {"opset": options.opset}
        if options.optional_input:
            arguments["inputs"] = options.optional_input
        written = write_onnx(written, target if to_onnx else None, **arguments)
    if not to_onnx:
        from pyrnnx.frontends.openvino import write_model as write_ir

        write_ir(written, target)


def losses(source: Model | Layer | Stack, target: Path, options: Options) -> list[str]:
    """Return sentences on differences of the target from the source in use."""
    sentences = []
    variables = [info.name for info in getattr(source, "variables", ())]
    if variables:
        words = ", ".join(variables)
        sentences.append(f"its variables ({words}) are inputs and outputs now: pass the outputs to the next call")
    if target.suffix == ".onnx":
        return sentences
    defaults = [info.name for info in source.inputs if info.optional] if isinstance(source, Model) else []
    if defaults:
        sentences.append(f"inputs with a default ({', '.join(defaults)}) are constants now")
    layers = source.layers.values() if isinstance(source, Model) else getattr(source, "layers", [source])
    directions = [direction for layer in layers if layer.op for direction in layer.op.activations]
    unsupported = {activation.name.lower() for direction in directions for activation in direction} - {*OF_OPENVINO}
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


def left_out(path: str, layer: str | None, stack: Stack) -> list[str]:
    """Return the names of layers (Keras) or modules (PyTorch) in the file of a stack that are not in the stack.

    Layers of Keras that compute nothing when a model runs are not among them.
    """
    if Path(path).suffix.lower() in KERAS:
        from pyrnnx.frontends.keras.file import other_layers

        return [f"{class_name} {shown(name)}" for class_name, name in other_layers(path, layer)]
    from pyrnnx.frontends.torch.files import open_arrays

    own = f"{stack.name}." if stack.name else ""
    with ExitStack() as closing:
        names = open_arrays(path, closing).names
        others = [name for name in names if not name.startswith(own)]
    return list(dict.fromkeys(shown(name.rpartition(".")[0] or name) for name in others))


def remarks(path: str, stack: Stack, others: Sequence[str], nonlinearity: str | None) -> Iterator[str]:
    """Yield sentences about the result `others` of `left_out`, and about facts that a file does not contain."""
    if others:
        names = printable(listed(map(shortened, others), LISTED))
        yield f"only {stack.label} is written; left out: {names}"
    if Path(path).suffix.lower() in TORCH and nonlinearity is None and stack.layers[0].op.cell == "RNN":
        yield "weights of an RNN of PyTorch do not contain its nonlinearity; using tanh (--nonlinearity)"
