"""Calls of two recurrent layers, or a layer and a function, on the same arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.calls import arranged, prepared_call, ragged_calls, run_arranged
from pyrnnx.comparison.layers import Comparison, LayerCall, compare_calls
from pyrnnx.comparison.weights import canonical_constants
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import AXIS_NAMES, CANONICAL, OUTPUTS, Convention, rearrange
from pyrnnx.testing.same import torch_modules
from pyrnnx.testing.same.functions import Call, chosen_outputs, named_results
from pyrnnx.testing.same.subjects import FunctionSubject, LayerSubject, Options, own_weights

Arrays = Mapping[str, AnyArray]
Either = LayerSubject | FunctionSubject


class Side(NamedTuple):
    """One of two that are compared; a function has the convention of the other layer."""

    label: str
    convention: Convention
    is_function: bool
    run: Callable[[Arrays], Arrays]  # from canonical arrays to outputs by canonical name, in its own arrangement


Sides = tuple[Side, Side]


class UnlikeError(Exception):
    """Raised for an output that is missing, or of another shape or kind; the message says which."""


def compare_sides(a: Either, b: Either, options: Options) -> tuple[Sides, Comparison]:
    """Run both, once or on several lengths, and compare; one of them is a layer.

    Functions may refuse rows of length 0, as PyTorch does; they are then called without such rows.
    """
    least = int(any(subject.module is not None for subject in (a, b) if isinstance(subject, LayerSubject)))
    try:
        return _compare(a, b, options, least)
    except UnlikeError:
        raise
    except Exception:
        return _compare(a, b, options, 1)


def _compare(a: Either, b: Either, options: Options, least: int) -> tuple[Sides, Comparison]:
    """Compare both on random lengths that are at least `least`."""
    owner = a if isinstance(a, LayerSubject) else b
    assert isinstance(owner, LayerSubject)
    given = owner.read_inputs(options.inputs or {})
    second = b if isinstance(a, LayerSubject) and isinstance(b, LayerSubject) else owner
    layers, arrays = prepared_call(owner.layer, second.layer, given, options.seed, least=least)
    if not arrays["sequence_lens"].any():
        raise ArgumentError(
            f"assert_same: inputs have no step to compare: X has [seq_length, batch_size, input_size] "
            f"{arrays['X'].shape}, sequence_lens is {shown(arrays['sequence_lens'].tolist())}; expected a row with a "
            "length of 1 or more"
        )
    owner, first = replace(owner, layer=layers[0]), layers[0]
    function = next((subject for subject in (a, b) if isinstance(subject, FunctionSubject)), None)
    call, known = None, first.output_names
    if function is not None:
        call, known = function.read_call(owner.order, owner.names), owner.outputs
    spellings = {first.convention.name_of(name): name for name in known} | {name: name for name in known}
    wanted = {spellings[name] for name in chosen_outputs(options.outputs, spellings)}
    sides = _side(a, layers[0], owner, call), _side(b, layers[1], owner, call)
    calls: list[LayerCall] = []
    for each in ragged_calls(layers, arrays, given, least):
        taken = each if call is None else _only_taken(call, each, given, first)
        outputs = [_canonical(side, letter, taken, layers[0], wanted) for letter, side in zip("ab", sides, strict=True)]
        calls.append(LayerCall(layers, taken, (outputs[0], outputs[1])))
    return sides, compare_calls(owner.layer, second.layer, calls, options.rule, is_random="X" not in given)


def _side(subject: Either, layer: Layer, owner: LayerSubject, call: Call | None) -> Side:
    if isinstance(subject, LayerSubject):
        run: Callable[[Arrays], Arrays] = partial(run_arranged, layer)
        if subject.module is not None:
            run = partial(_run_module, subject.module, layer)
        return Side(subject.label, layer.convention, is_function=False, run=run)
    assert call is not None

    def run_function(arrays: Arrays) -> Arrays:
        values = subject.run(call, {**arranged(layer, arrays), **own_weights(layer)})
        spellings = {name: (layer.convention.name_of(name), name) for name in owner.outputs}
        outputs = named_results(subject.label, values, spellings)
        if "Y" in outputs and torch_modules.joins_directions(layer.convention):
            outputs["Y"] = torch_modules.split_directions(outputs["Y"], layer.op.num_directions)
        return outputs

    return Side(subject.label, layer.convention, is_function=True, run=run_function)


def _run_module(module: Any, layer: Layer, arrays: Arrays) -> Arrays:
    return torch_modules.run_layer(module, arranged(layer, arrays))


def _only_taken(call: Call, arrays: Arrays, given: Arrays, layer: Layer) -> Arrays:
    """Return the arrays of a call, with defaults for those that a function does not take."""
    result = dict(arrays)
    for name in arrays:
        if name in call.takes:
            continue
        if name in given or name == "X":
            raise ArgumentError(
                f"assert_same: inputs has {layer.convention.name_of(name)}, which the function does not take; it takes "
                f"{', '.join(call.takes) or 'nothing'}"
            )
        if name in layer.constants:
            result[name] = canonical_constants(layer)[name]
        elif name == "sequence_lens":
            result[name] = np.full_like(arrays[name], len(arrays["X"]))
        else:
            result[name] = np.zeros_like(arrays[name])
    return result


def _canonical(side: Side, letter: str, arrays: Arrays, layer: Layer, wanted: set[str]) -> Arrays:
    """Return the wanted outputs of a call in canonical axes."""
    T, N, _ = arrays["X"].shape
    sizes = {"T": T, "N": N, "D": layer.op.num_directions, "H": layer.op.hidden_size}
    outputs, convention, canonical = side.run(arrays), side.convention, {}
    for name in (name for name in OUTPUTS if name in wanted):
        axes, own = convention.axes_of(name), convention.name_of(name)
        if name not in outputs:
            returned = ", ".join(map(convention.name_of, outputs)) or "nothing"
            raise UnlikeError(f"{own} is missing in {letter}, which gave {returned}")
        expected, array = tuple(sizes[axis] for axis in axes), outputs[name]
        if array.shape != expected:
            words = ", ".join(AXIS_NAMES[axis] for axis in axes)
            raise UnlikeError(f"{own} has shape {array.shape} in {letter}; expected {expected}: {words}")
        if array.dtype.kind not in "biufV":
            raise UnlikeError(f"{own} has dtype {array.dtype} in {letter}; expected real numbers")
        canonical[name] = rearrange(array, axes, CANONICAL.axes_of(name))
    return canonical
