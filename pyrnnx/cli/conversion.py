"""Models, layers and weights read from one file and written to another, and whether both compute the same."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyrnnx.comparison.layers import run_layer
from pyrnnx.comparison.models import run_models
from pyrnnx.comparison.numbers import deviation
from pyrnnx.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, UnsupportedError, shown
from pyrnnx.files import check_writable, write_files
from pyrnnx.layer import Layer
from pyrnnx.load import load
from pyrnnx.model import Model
from pyrnnx.stack import Stack
from pyrnnx.testing.numbers import long_tolerance

MODELS, KERAS = (".onnx", ".xml"), (".keras",)
TORCH = (".safetensors", ".pt", ".pth", ".bin", ".ckpt")
SIZES = {"T": 5, "N": 3}  # of what both are run on
OF_OPENVINO = ("relu", "sigmoid", "tanh")  # activations that its CPU plugin runs


@dataclass(frozen=True)
class Options:
    """What the command line says of the source and of what is written; None, or empty: nothing."""

    layer: str | None = None
    prefix: str | None = None
    operator: str | None = None
    nonlinearity: str | None = None
    batch_first: bool = False
    opset: int | None = None
    inputs: Sequence[str] = ()


class Verified(NamedTuple):
    """Of what was read back: the largest difference of each output from the source, and whether none matters."""

    differences: Mapping[str, float]
    same: bool


def check_target(source: str, target: str, *, force: bool) -> Path:
    """The path to write to.

    Raises
    ------
    ArgumentError
        Another suffix; a file that the source is read from; a file that is there, without `force`; a path where
        nothing can be written.
    """
    path = Path(target)
    if path.suffix not in MODELS:
        raise ArgumentError(f"convert: {shown(target)}: the name ends in {shown(path.suffix)}; expected .onnx or .xml")
    written = [path, path.with_suffix(".bin")] if path.suffix == ".xml" else [path]
    if os.path.abspath(source) in map(os.path.abspath, written):
        raise ArgumentError(f"convert: {shown(target)} is what is to be converted; expected another name")
    for one in written:
        if os.path.lexists(one) and not force:
            raise ArgumentError(f"convert: {shown(str(one))} is there already; --force replaces it")
        check_writable("convert", one)
    there = [one for one in written if one.exists()]
    for read in _read_files(Path(source)) if there else ():
        for one in there:
            if read.exists() and one.samefile(read):
                raise ArgumentError(
                    f"convert: {shown(str(one))} would be replaced, and {shown(source)} is read from it; expected "
                    "another name"
                )
    return path


def _read_files(source: Path) -> list[Path]:
    """The files that `read_source` reads."""
    suffix = source.suffix.lower()
    if suffix == ".xml":
        return [source, source.with_suffix(".bin")]
    if suffix == ".onnx":
        from pyrnnx.frontends.onnx.file import external_files

        return [source, *external_files(source)]
    return [source]


def read_source(path: str, options: Options) -> Model | Layer | Stack:
    """What the file holds, of which the options choose a part.

    Raises
    ------
    PyrnnxError
        A suffix that is not known; options that mean nothing for such a file; what its front-end rejects; a layer
        without weights.
    """
    suffix = Path(path).suffix.lower()
    if suffix in TORCH:
        from pyrnnx.frontends.torch import from_state_dict

        _reject(path, options, ("layer",), "weights of PyTorch")
        given = {"prefix": _whole(options.prefix), "operator": options.operator, "nonlinearity": options.nonlinearity}
        chosen = {name: value for name, value in given.items() if value is not None}
        with _options_named():
            stack: Stack = from_state_dict(path, batch_first=options.batch_first, **chosen)
        return stack
    if suffix not in (*MODELS, *KERAS):
        raise FormatError(
            f"convert: {shown(path)}: the file name ends in {shown(suffix)}; expected one of "
            f"{', '.join((*MODELS, *TORCH, *KERAS))}"
        )
    what = "a model of Keras" if suffix in KERAS else "a model"
    _reject(path, options, ("prefix", "operator", "nonlinearity", "batch_first"), what)
    if suffix in KERAS:
        from pyrnnx.frontends.keras import from_file

        with _options_named():
            found: Stack = from_file(path, options.layer)
        return found
    read = load(path)
    if isinstance(read, Model):
        if options.layer is None:
            return read
        layer = read.layers[options.layer]
    else:
        _reject(path, options, ("layer",), "a single layer")
        layer = read
    if not isinstance(layer, Layer):
        raise UnsupportedError(f"{layer.label}: its weights are no constants; expected a layer with its weights")
    return layer


def _whole(prefix: str | None) -> str | None:
    """With the "." that ends it, for no module has names without."""
    return f"{prefix}." if prefix and not prefix.endswith(".") else prefix


@contextmanager
def _options_named() -> Iterator[None]:
    """Errors of front-ends, with options for arguments."""
    try:
        yield
    except PyrnnxError as error:
        text = re.sub(r": (layer|prefix|operator|nonlinearity) (is|was) ", r": --\1 \2 ", str(error), count=1)
        raise type(error)(text) from error


def _reject(path: str, options: Options, names: Sequence[str], what: str) -> None:
    for field in fields(options):
        if field.name in names and getattr(options, field.name) not in (None, False):
            flag = field.name.replace("_", "-")
            raise ArgumentError(f"convert: --{flag} was given with {shown(path)}, {what}; it means nothing there")


def write_target(source: Model | Layer | Stack, origin: str, target: Path, options: Options) -> None:
    """Write all, or nothing.

    Raises
    ------
    PyrnnxError
        What the format cannot express: named with the node or layer; a whole model that has that format already;
        options that mean nothing for it.
    """
    to_onnx = target.suffix == ".onnx"
    if options.opset is not None and (isinstance(source, Model) or not to_onnx):
        raise ArgumentError("convert: --opset was given; it is of layers and weights that are written as .onnx")
    if options.inputs and (isinstance(source, Model) or not (to_onnx or isinstance(source, Stack))):
        raise ArgumentError("convert: --input was given; it is of weights, and of layers that are written as .onnx")
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

        more: dict[str, Any] = {} if options.opset is None else {"opset": options.opset}
        if options.inputs:
            more["inputs"] = options.inputs
        written = write_onnx(source, target if to_onnx else None, **more)
    if not to_onnx:
        from pyrnnx.frontends.openvino import write_model as write_ir

        write_ir(written, target)


def losses(source: Model | Layer | Stack, target: Path, options: Options) -> list[str]:
    """What is not, or not at once, as it was: a sentence each."""
    found = []
    layers = source.layers.values() if isinstance(source, Model) else getattr(source, "layers", [source])
    variables = [info.name for info in getattr(source, "variables", ())]
    if variables:
        found.append(f"its variables ({', '.join(variables)}) are inputs and outputs now: feed these back into those")
    if target.suffix == ".onnx":
        return found
    defaults = [info.name for info in source.inputs if info.optional] if isinstance(source, Model) else []
    if defaults:
        found.append(f"inputs with a default ({', '.join(defaults)}) are constants now")
    names = {one.name.lower() for layer in layers if layer.op for each in layer.op.activations for one in each}
    if names - {*OF_OPENVINO}:
        found.append(f"OpenVINO's CPU plugin does not run {', '.join(sorted(names - {*OF_OPENVINO}))}")
    if _has_free_lengths(source, options):
        found.append("OpenVINO's CPU plugin ignores sequence_lengths while a dimension of X is dynamic: fix the shapes")
    return found


def _has_free_lengths(source: Model | Layer | Stack, options: Options) -> bool:
    """Whether a layer will be given lengths of sequences whose X has a dynamic dimension."""
    if isinstance(source, Layer):
        return "T" in source.convention.axes_of("X")
    if isinstance(source, Stack):
        return "sequence_lens" in options.inputs
    is_dynamic = any(not isinstance(size, int) for info in source.inputs for size in info.shape or (None,))
    return is_dynamic and any("sequence_lens" in one for one in source._layer_values().values())


def verify(source: Model | Layer | Stack, target: Path) -> Verified:
    """Read the file and run it beside the source on the same random inputs.

    Raises
    ------
    PyrnnxError
        Models that cannot be given the same inputs, such as those that take what was a variable.
    """
    written: Any = load(target)
    if isinstance(source, Model):
        matched, ran = run_models(source, written, None, 0)
        pairs = {
            name: (matched.in_a(first, second, ran.outputs_b.get(second)), ran.outputs_a.get(first))
            for name, (first, second) in matched.names.items()
            if first
        }
    elif isinstance(source, Stack):
        pairs = _run_stack(source, written)
    else:
        pairs = _run_layer(source, written)
    differences, same = {}, True
    for name, (one, wanted) in pairs.items():
        found = deviation(one, wanted)
        differences[name] = np.inf if found is None else found.largest
        same = same and found is not None and found.within(long_tolerance(np.asarray(wanted)), 0.0)
    return Verified(differences, same)


def _run_layer(layer: Layer, written: Model) -> dict[str, tuple[Any, Any]]:
    """The outputs of a model of one layer, and of the layer, by name."""
    (values,) = written._layer_values().values()
    taken = {info.name for info in written.inputs}
    asked = [name for name in CALL_ARGUMENTS if name in values and taken & {*values[name].names}]
    held = [len(array) for name, array in layer.constants.items() if name == "sequence_lens"]
    held += [array.shape[layer.convention.axes_of(name).index("N")] for name, array in layer.constants.items()]
    sizes = {**SIZES, "N": held[0] if held else SIZES["N"], "I": layer.input_size}
    if "T" not in layer.convention.axes_of("X"):
        sizes["T"] = 1
    sizes |= {"D": layer.op.num_directions, "H": layer.op.hidden_size}
    arrays = _arrays({name: [sizes[one] for one in CANONICAL.axes_of(name)] for name in asked}, sizes["T"], layer.dtype)
    given = {
        next(one for one in values[name].names if one in taken): rearrange(
            array, CANONICAL.axes_of(name), values[name].axes
        )
        for name, array in arrays.items()
    }
    results, expected = written(given), run_layer(layer, arrays)
    pairs = {}
    for name, one in values.items():
        for output in (output for output in one.names if output in results and name in expected):
            pairs[output] = results[output], rearrange(expected[name], CANONICAL.axes_of(name), one.axes)
    return pairs


def _run_stack(stack: Stack, written: Model) -> dict[str, tuple[Any, Any]]:
    """The outputs of a model of a stack, and of the stack, by name."""
    T, N = SIZES["T"], SIZES["N"]
    of_X = [N, T] if stack.batch_first else [T, N]
    shapes: dict[str, list[int]] = {}
    for info in written.inputs:
        free = iter(of_X if info.name == "X" else [N])  # states and lengths have a row for each sequence, in any form
        shapes[info.name] = [one if isinstance(one, int) else next(free) for one in info.shape or ()]
    arrays = _arrays(shapes, T, stack.dtype)
    results = written(arrays)
    expected = stack.run(**arrays)
    return dict(zip(results, zip(results.values(), expected, strict=True), strict=True))


def _arrays(shapes: Mapping[str, Sequence[int]], T: int, dtype: Any) -> dict[str, Any]:
    """Random numbers; lengths that are not equal, where any are asked for."""
    rng = np.random.default_rng(0)
    return {
        name: np.resize(np.arange(T, 0, -2, dtype=np.int32), shape)
        if name.startswith("sequence_len")
        else rng.standard_normal(shape).astype(dtype)
        for name, shape in shapes.items()
    }
