"""Check of `pyrnnx convert`: the written file computes the same as its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.cli.arrays import given_inputs
from pyrnnx.comparison.agreement import LONG, agreement
from pyrnnx.comparison.layers import run_layer
from pyrnnx.comparison.model_runs import first_run, random_calls
from pyrnnx.comparison.models import run_models
from pyrnnx.errors import ArgumentError
from pyrnnx.layers.layer import Layer
from pyrnnx.load import load
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.stacks.stack import Stack

SIZES = {"T": 5, "N": 3}  # sizes of the inputs of layers and stacks
Pairs = dict[str, tuple[Any, Any]]  # outputs of the target and of the source, by name


class Verified(NamedTuple):
    """Result of the check, which makes one call.

    Attributes
    ----------
    differences : mapping
        Largest difference of each output of the target from the source.
    same : bool
        Whether all differences are within tolerance.
    inputs : mapping
        Shapes of the inputs by name.
    not_run : sequence of str
        Branches of Ifs that the call did not run.
    unknown : sequence of str
        Ifs inside bodies, of which the branches that ran are unknown.
    """

    differences: Mapping[str, float]
    same: bool
    inputs: Mapping[str, tuple[int, ...]]
    not_run: Sequence[str] = ()
    unknown: Sequence[str] = ()


def provided(source: Model | Layer | Stack, texts: Sequence[str] | None) -> dict[str, AnyArray]:
    """Return the arrays of ``--input`` by the names of a model's inputs.

    Raises
    ------
    ArgumentError
        The source is no whole model, or a text is rejected by `given_inputs`.
    """
    if texts and not isinstance(source, Model):
        raise ArgumentError(
            "convert: --input was given; expected it only for whole models, because layers are checked on random inputs"
        )
    return given_inputs("convert: --input", texts, source.inputs) if isinstance(source, Model) else {}


def calls(model: Model, arrays: Mapping[str, AnyArray]) -> Iterator[dict[str, AnyArray]]:
    """Yield inputs of calls of a model: these arrays, and random ones for all other inputs."""
    return random_calls(model, arrays, 0, {}, "convert", "--input")


def verify(source: Model | Layer | Stack, target: Path, arrays: Mapping[str, AnyArray]) -> Verified:
    """Read the target, and compare its outputs with the source's on the same inputs.

    Inputs of a model that are not in `arrays` are random.

    Raises
    ------
    PyrnnxError
        The models take different inputs, for example if a variable has become an input.
    """
    written: Any = load(target)
    if not isinstance(source, Model):
        pairs, feeds = _run_stack(source, written) if isinstance(source, Stack) else _run_layer(source, written)
        return verified(pairs, feeds)
    if arrays:
        matched, ran = first_run(lambda inputs: run_models(source, written, inputs, 0), calls(source, arrays), str)
    else:  # random inputs of the sizes that either model declares
        matched, ran = run_models(source, written, None, 0)
    pairs = {name: (b, a) for name, (a, b) in matched.values(ran).items() if matched.names[name][0]}
    as_onnx = (source, ran.inputs_a) if target.suffix == ".xml" else (written, ran.inputs_b)
    return verified(pairs, ran.inputs_a, *as_onnx)


def verified(
    pairs: Pairs, inputs: Mapping[str, Any], model: Any = None, model_inputs: Mapping[str, Any] | None = None
) -> Verified:
    """Compare outputs by name; `model` is the ONNX model of the two, whose branches are known."""
    outputs, expected = ({name: pair[place] for name, pair in pairs.items()} for place in (0, 1))
    result = agreement(outputs, expected, LONG)
    shapes = {name: np.shape(array) for name, array in inputs.items()}
    branches: tuple[list[str], list[str]] = ([], [])
    if model is not None and model_inputs is not None:
        from pyrnnx.frontends.onnx.branches import branches_not_run

        branches = branches_not_run(model, model_inputs)
    return Verified(result.differences, result.apart is None, shapes, *branches)


def _run_layer(layer: Layer, written: Model) -> tuple[Pairs, dict[str, Any]]:
    """Return the outputs of a model of one layer and of the layer, and the inputs of the model."""
    (values,) = layer_values(written).values()
    inputs = {info.name for info in written.inputs}
    names = [name for name in CALL_ARGUMENTS if name in values and inputs & {*values[name].names}]
    rows = [len(array) for name, array in layer.constants.items() if name == "sequence_lens"]
    rows += [array.shape[layer.convention.axes_of(name).index("N")] for name, array in layer.constants.items()]
    sizes = {**SIZES, "N": rows[0] if rows else SIZES["N"], "I": layer.input_size}
    if "T" not in layer.convention.axes_of("X"):
        sizes["T"] = 1
    sizes |= {"D": layer.op.num_directions, "H": layer.op.hidden_size}
    shapes = {name: [sizes[axis] for axis in CANONICAL.axes_of(name)] for name in names}
    arrays = _arrays(shapes, sizes["T"], layer.dtype)
    feeds = {
        next(key for key in values[name].names if key in inputs): rearrange(
            array, CANONICAL.axes_of(name), values[name].axes
        )
        for name, array in arrays.items()
    }
    results, expected = written(feeds), run_layer(layer, arrays)
    pairs = {}
    for name, value in values.items():
        for output in (output for output in value.names if output in results and name in expected):
            pairs[output] = results[output], rearrange(expected[name], CANONICAL.axes_of(name), value.axes)
    return pairs, feeds


def _run_stack(stack: Stack, written: Model) -> tuple[Pairs, dict[str, Any]]:
    """Return the outputs of a model of a stack and of the stack, and the inputs of both."""
    T, N = SIZES["T"], SIZES["N"]
    of_X = [N, T] if stack.batch_first else [T, N]
    shapes: dict[str, list[int]] = {}
    for info in written.inputs:
        free = iter(of_X if info.name == "X" else [N])  # the open dimension of states and lengths is the batch
        shapes[info.name] = [size if isinstance(size, int) else next(free) for size in info.shape or ()]
    arrays = _arrays(shapes, T, stack.dtype)
    results = written(arrays)
    expected = stack.run(**arrays)
    return dict(zip(results, zip(results.values(), expected, strict=True), strict=True)), arrays


def _arrays(shapes: Mapping[str, Sequence[int]], T: int, dtype: Any) -> dict[str, Any]:
    """Return random arrays of these shapes; unequal lengths for an input of lengths."""
    rng = np.random.default_rng(0)
    return {
        name: np.resize(np.arange(T, 0, -2, dtype=np.int32), shape)
        if name.startswith("sequence_len")
        else rng.standard_normal(shape).astype(dtype)
        for name, shape in shapes.items()
    }
