"""Runs of a model, or of one of its layers alone, for `pyrnnx run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pyrnnx._internal.dtypes import INTEGERS, AnyArray
from pyrnnx.comparison.calls import prepared_call
from pyrnnx.comparison.models.runs import try_alone
from pyrnnx.errors import ArgumentError, PyrnnxError, shortened, shown
from pyrnnx.models.model import Model
from pyrnnx.operator.conventions import CALL_ARGUMENTS, CANONICAL, rearrange
from pyrnnx.operator.tensor_info import TensorInfo
from pyrnnx.testing.same.errors import named_after

Arrays = dict[str, Any]


class Run(NamedTuple):
    """Inputs and outputs of a call by name, and the call."""

    inputs: Arrays
    outputs: Arrays
    call: Callable[[], Arrays]


def inputs_of(subject: Any) -> Sequence[TensorInfo]:
    """Return the inputs of a model, or of a layer by the names of its convention."""
    if isinstance(subject, Model):
        return subject.inputs
    if subject.op is None:
        raise ArgumentError(f"run: {subject.label} does not declare its hidden_size; expected a layer with weights")
    optional = {*CALL_ARGUMENTS} - {"X", *subject.convention.required} | {*getattr(subject, "constants", ())}
    return [
        TensorInfo(name, aliases=() if name == argument else (argument,), optional=argument in optional)
        for name, argument in _arguments(subject).items()
    ]


def _arguments(layer: Any) -> dict[str, str]:
    """Return the arguments of a layer by the names of its convention."""
    arguments = [name for name in CALL_ARGUMENTS if name != "initial_c" or layer.op.has_cell_state]
    convention = layer.convention
    return {convention.name_of(name): name for name in arguments if name == "X" or convention.axes_of(name)}


def run_model(model: Model, given: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Run:
    """Run a model on the given inputs, and with a seed on random numbers for the others."""
    integers = [shown(info.name) for info in model.inputs if info.name not in given and info.dtype in INTEGERS]
    hint = f"; set the integers {', '.join(integers)} by --input NAME=NUMBER" if integers else ""

    def words(error: PyrnnxError) -> str:
        return (
            f"run: {shortened(model.label)} does not run on random inputs of its declared sizes; set others by --dim "
            f"or --input{hint} ({shortened(str(error).removeprefix(f'{model.label}: '))})"
        )

    tries = try_alone(model, given, seed or 0, dims, "run", "--input", str if seed is None else words)
    inputs, outputs = next(iter(tries))
    return Run(inputs, outputs, lambda: model(inputs))


def run_layer(layer: Any, given: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int]) -> Run:
    """Run a layer as `run_model` runs a model; if it has no weights, they are random."""
    convention, arguments = layer.convention, _arguments(layer)
    canonical: Arrays = {}
    for name, array in given.items():
        argument = arguments[name]
        axes = convention.axes_of(argument)
        if array.ndim != len(axes):
            raise ArgumentError(f"run: input {shown(name)} has shape {array.shape}; expected {len(axes)} axes")
        canonical[argument] = rearrange(array, axes, CANONICAL.axes_of(argument))
    with named_after("run"):
        (bound, _), arrays = prepared_call(layer, layer, canonical, seed or 0, dims)
    lengths = () if "sequence_lens" in convention.required else ("sequence_lens",)
    random = set() if seed is None else {*arrays} - {*getattr(layer, "constants", ()), *lengths}
    inputs: Arrays = {}
    for name, argument in arguments.items():
        if name in given:
            inputs[name] = given[name]
        elif argument in random:
            array = arrays[argument]
            array = array if argument == "sequence_lens" else array.astype(bound.dtype)
            inputs[name] = rearrange(array, CANONICAL.axes_of(argument), convention.axes_of(argument))

    def call() -> Arrays:
        results = bound.run(**{arguments[name]: array for name, array in inputs.items()})
        return dict(zip(map(convention.name_of, bound.output_names), results, strict=True))

    return Run(inputs, call(), call)
