"""Division of the inputs of `pyrnnx run --stream` into pushes, and the joined outputs of all pushes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.cli.running import Arrays, Subject, first_that_runs
from pyrnnx.errors import ArgumentError, shown


@dataclass(frozen=True)
class Cut:
    """Division into pushes: steps of a push, time axis if the model does not define it, number of random pushes."""

    steps: int
    axis: int | None
    pushes: int


@dataclass(frozen=True)
class Pushes:
    """Inputs of each push, and of all pushes together.

    `axes` has the time axis of each input that was cut; `steps` has the time steps of each push.
    """

    parts: list[Arrays]
    whole: Arrays
    axes: Mapping[str, int]
    steps: list[int]


def all_pushes(
    subject: Subject, provided: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int], cut: Cut
) -> Pushes:
    """Return the pushes for a subject after `prepare_stream`.

    Raises
    ------
    PyrnnxError
        Inputs that cannot be cut, or that the first push rejects.
    """
    shapes = {info.name: info.shape for info in subject.inputs}
    pushed = {name: array for name, array in provided.items() if name not in subject.fed and np.ndim(array)}
    stacked = {
        name for name, array in pushed.items() if (shape := shapes[name]) is not None and array.ndim == len(shape) + 1
    }
    axes = _axes(subject, {name: array.ndim for name, array in pushed.items() if name not in stacked}, cut.axis)
    parts = {
        name: list(pushed[name]) if name in stacked else _parts(pushed[name], axes[name], cut.steps)
        for name in pushed
        if name in stacked or name in axes
    }
    _check_parts(pushed, parts)
    first = {**provided, **{name: pieces[0] for name, pieces in parts.items()}}
    inputs, _ = first_that_runs(subject, first, seed, dims)
    whole = {**inputs, **provided}
    if not parts:
        random = _random(subject, {name: inputs[name] for name in inputs if name not in provided}, seed, dims, cut)
        axes |= {name: axis for name, (_, axis, _) in random.items()}
        whole |= {name: array for name, (array, _, _) in random.items()}
        parts = {name: _parts(array, axis, steps) for name, (array, axis, steps) in random.items()}
    unsized = _unsized_states(subject, inputs.keys() - provided.keys())
    if unsized and seed is None:
        raise ArgumentError(
            f"run: --stream: the sizes of the state {shown(unsized[0])} are not declared and follow from no input; "
            f"expected --input {unsized[0]}=FILE.npy for the first push, or --seed SEED"
        )
    whole = {name: value for name, value in whole.items() if name in (*provided, *unsized) or name not in subject.fed}
    number = min(map(len, parts.values()), default=cut.pushes)
    rows = [{**whole, **{name: pieces[k] for name, pieces in parts.items()}} for k in range(number)]
    steps = [next((row[name].shape[axis] for name, axis in axes.items()), 1) for row in rows]
    return Pushes([_push(subject, row) for row in rows], whole, axes, steps)


def _check_parts(pushed: Arrays, parts: Mapping[str, Sequence[AnyArray]]) -> None:
    """Raise an `ArgumentError` if the parts of inputs differ in number, or if there are none."""
    counts = {name: len(pieces) for name, pieces in parts.items()}
    if len(set(counts.values())) > 1:
        words = ", ".join(f"{shown(name)} {count}" for name, count in counts.items())
        raise ArgumentError(
            f"run: --stream: inputs have different numbers of pushes: {words}; expected the same number"
        )
    if pushed and not parts:
        raise ArgumentError(
            f"run: --stream: the time axis of {', '.join(map(shown, pushed))} is unknown; expected --time-axis K, or "
            "an array with one more axis than the model declares, an element for each push"
        )
    if not all(parts.values()):
        raise ArgumentError(f"run: --stream: {', '.join(map(shown, parts))} has no time steps; expected at least one")


def _axes(subject: Subject, ranks: Mapping[str, int], time_axis: int | None) -> dict[str, int]:
    """Return the time axis of inputs: the model's, else the one of ``--time-axis``.

    Raises
    ------
    ArgumentError
        ``--time-axis`` exceeds the rank of all inputs, or contradicts the model.
    """
    axes: dict[str, int] = {}
    for name, rank in ranks.items():
        own = subject.time_axis(name)
        if time_axis is not None and own is not None and time_axis not in (own, own - rank):
            raise ArgumentError(
                f"run: --time-axis is {time_axis}; expected {own}, the time axis of {shown(name)} in the model"
            )
        if own is not None:
            axes[name] = own
        elif time_axis is not None and -rank <= time_axis < rank:
            axes[name] = time_axis % rank
    if time_axis is not None and ranks and not axes:
        words = ", ".join(f"{shown(name)} has {rank} axes" for name, rank in ranks.items())
        raise ArgumentError(f"run: --time-axis is {time_axis}; expected an axis of an input: {words}")
    return axes


def _random(
    subject: Subject, examples: Arrays, seed: int | None, dims: Mapping[str, int], cut: Cut
) -> dict[str, tuple[AnyArray, int, int]]:
    """Return random values for all pushes, the time axis, and the steps of a push, by input with a time axis."""
    rng = np.random.default_rng(seed)
    floats = {name: array for name, array in examples.items() if name not in subject.fed and array.dtype.kind == "f"}
    axes = _axes(subject, {name: array.ndim for name, array in floats.items()}, cut.axis)
    shapes = {info.name: info.shape for info in subject.inputs}
    inputs = {}
    for name, axis in axes.items():
        shape = shapes[name]
        declared = "seq_length" if shape is None else shape[axis]  # a layer's name of this dimension
        steps = declared if isinstance(declared, int) else cut.steps
        sizes = list(floats[name].shape)
        sizes[axis] = dims[declared] if isinstance(declared, str) and declared in dims else steps * cut.pushes
        inputs[name] = rng.standard_normal(sizes).astype(floats[name].dtype), axis, steps
    return inputs


def _unsized_states(subject: Subject, names: Iterable[str]) -> list[str]:
    """Return the states whose sizes follow neither from their declarations nor from other inputs."""
    known = {size for info in subject.inputs if info.name not in subject.fed for size in info.shape or ()}
    symbols = {size for size in known if isinstance(size, str)}
    states = [info for info in subject.inputs if info.name in subject.fed and info.name in names and not info.optional]
    return [
        info.name
        for info in states
        if info.shape is not None and not all(isinstance(size, int) or size in symbols for size in info.shape)
    ]


def _parts(array: AnyArray, axis: int, steps: int) -> list[AnyArray]:
    size = array.shape[axis]
    return [np.take(array, range(k, min(k + steps, size)), axis) for k in range(0, size, steps)]


def _push(subject: Subject, inputs: Arrays) -> Arrays:
    """Return the inputs of a push with all lengths set to its number of steps: rows of a push have no other."""
    steps = [inputs[name].shape[axis] for name in inputs if (axis := subject.time_axis(name)) is not None]
    lengths = {name: np.full_like(inputs[name], min(steps, default=1)) for name in subject.lengths() & inputs.keys()}
    return {**inputs, **lengths}


def joined(subject: Subject, pushes: Pushes, results: Sequence[Arrays]) -> Arrays:
    """Return the joined outputs of all pushes: concatenated along time, the last value of states, or else stacked."""
    outputs: Arrays = {}
    declared = {info.name: info.shape for info in subject.outputs}
    for name, last in results[-1].items() if results else ():
        parts = [result[name] for result in results]
        is_state = name in subject.states or (pushes.axes and name in subject.ends)
        if is_state or not isinstance(last, np.ndarray):
            outputs[name] = last
            continue
        axis = subject.time_axis(name)
        if axis is None:
            axis = _time_of(subject, pushes, [part.shape for part in parts], declared.get(name))
        if axis is None:  # arrays of different shapes cannot be stacked
            axis = next((k for k, size in enumerate(last.shape) if size != parts[0].shape[k]), None)
        outputs[name] = np.stack(parts) if axis is None else np.concatenate(parts, axis)
    return outputs


def _time_of(
    subject: Subject, pushes: Pushes, shapes: Sequence[tuple[int, ...]], declared: Sequence[Any] | None
) -> int | None:
    """Return the time axis of an output: the one with the symbolic name of a cut input's axis, or the same index.

    In every push it must have as many elements as the push has steps, and no other declaration.
    """
    of_inputs = {info.name: info.shape for info in subject.inputs}
    rank = len(shapes[0])
    for name, axis in pushes.axes.items():
        shape = of_inputs[name]
        time = None if shape is None else shape[axis]
        own = declared if declared is not None and len(declared) == rank else [None] * rank
        places = [k for k in range(rank) if isinstance(time, str) and own[k] == time] or [axis]
        for k in places:
            if k >= rank or [sizes[k] for sizes in shapes] != pushes.steps:
                continue
            if own[k] is None or time is None or own[k] == time:
                return k
    return None
