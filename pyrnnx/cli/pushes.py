"""Inputs of `pyrnnx run --stream` as those of pushes, and what these give as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyrnnx.cli.running import Arrays, Subject, first_that_runs
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shown


@dataclass(frozen=True)
class Cut:
    """How inputs become pushes: of so many time steps along `axis`, where it is not known; or `pushes` random ones."""

    steps: int
    axis: int | None
    pushes: int


@dataclass(frozen=True)
class Pushes:
    """The inputs of each push, and those of all of them.

    `axes`: of the inputs that were cut along time, which axis that is; `steps`: time steps of each push.
    """

    parts: list[Arrays]
    whole: Arrays
    axes: Mapping[str, int]
    steps: list[int]


def all_pushes(
    subject: Subject, given: Mapping[str, AnyArray], seed: int | None, dims: Mapping[str, int], cut: Cut
) -> Pushes:
    """Of a subject that is prepared for a stream.

    Raises
    ------
    PyrnnxError
        Inputs that cannot be cut, or with which no first push runs.
    """
    shapes = {info.name: info.shape for info in subject.inputs}
    pushed = {name: array for name, array in given.items() if name not in subject.fed and np.ndim(array)}
    stacked = {
        name for name, array in pushed.items() if (shape := shapes[name]) is not None and array.ndim == len(shape) + 1
    }
    axes = _axes(subject, {name: array.ndim for name, array in pushed.items() if name not in stacked}, cut.axis)
    parts = {
        name: list(pushed[name]) if name in stacked else _parts(pushed[name], axes[name], cut.steps)
        for name in pushed
        if name in stacked or name in axes
    }
    counts = {name: len(one) for name, one in parts.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{shown(name)} {count}" for name, count in counts.items())
        raise ArgumentError(f"run: --stream: inputs are cut into different numbers of pushes: {told}")
    if pushed and not parts:
        raise ArgumentError(
            f"run: --stream: the time axis of {', '.join(map(shown, pushed))} is not known; expected --time-axis K, or "
            "an array with an axis more than the model declares, an element for each push"
        )
    if not all(parts.values()):
        raise ArgumentError(f"run: --stream: {', '.join(map(shown, parts))} has no time steps; expected one at least")
    heads = {**given, **{name: one[0] for name, one in parts.items()}}
    inputs, _ = first_that_runs(subject, heads, seed, dims)
    whole = {**inputs, **given}
    if not parts:
        made = _random(subject, {name: inputs[name] for name in inputs if name not in given}, seed, dims, cut)
        axes |= {name: axis for name, (_, axis, _) in made.items()}
        whole |= {name: array for name, (array, _, _) in made.items()}
        parts = {name: _parts(array, axis, steps) for name, (array, axis, steps) in made.items()}
    untold = _untold(subject, inputs.keys() - given.keys())
    if untold and seed is None:
        raise ArgumentError(
            f"run: --stream: the sizes of the state {shown(untold[0])} are not declared, and no input tells them; "
            f"expected --input {untold[0]}=FILE.npy for the first push, or --random SEED"
        )
    kept = {name: value for name, value in whole.items() if name in given or name not in subject.fed or name in untold}
    number = min(map(len, parts.values()), default=cut.pushes)
    rows = [{**kept, **{name: one[k] for name, one in parts.items()}} for k in range(number)]
    steps = [next((row[name].shape[axis] for name, axis in axes.items()), 1) for row in rows]
    return Pushes([_push(subject, row) for row in rows], kept, axes, steps)


def _axes(subject: Subject, ranks: Mapping[str, int], asked: int | None) -> dict[str, int]:
    """Which axis of inputs is time: as the model tells, or else as was asked for.

    Raises
    ------
    ArgumentError
        One that was asked for, and that none of them has, or that the model contradicts.
    """
    found: dict[str, int] = {}
    for name, rank in ranks.items():
        own = subject.time_axis(name)
        if asked is not None and own is not None and asked not in (own, own - rank):
            raise ArgumentError(
                f"run: --time-axis is {asked}; the model tells that time is axis {own} of {shown(name)}"
            )
        if own is not None:
            found[name] = own
        elif asked is not None and -rank <= asked < rank:
            found[name] = asked % rank
    if asked is not None and ranks and not found:
        told = ", ".join(f"{shown(name)} has {rank} axes" for name, rank in ranks.items())
        raise ArgumentError(f"run: --time-axis is {asked}; {told}")
    return found


def _random(
    subject: Subject, made: Arrays, seed: int | None, dims: Mapping[str, int], cut: Cut
) -> dict[str, tuple[AnyArray, int, int]]:
    """Of inputs with a time axis: random ones for all pushes, or as long as `dims` says; the axis; steps of each."""
    rng = np.random.default_rng(seed)
    floats = {name: one for name, one in made.items() if name not in subject.fed and one.dtype.kind == "f"}
    axes = _axes(subject, {name: one.ndim for name, one in floats.items()}, cut.axis)
    shapes = {info.name: info.shape for info in subject.inputs}
    found = {}
    for name, axis in axes.items():
        shape = shapes[name]
        declared = "seq_length" if shape is None else shape[axis]  # the name that a layer's own has
        steps = declared if isinstance(declared, int) else cut.steps
        sizes = list(floats[name].shape)
        sizes[axis] = dims[declared] if isinstance(declared, str) and declared in dims else steps * cut.pushes
        found[name] = rng.standard_normal(sizes).astype(floats[name].dtype), axis, steps
    return found


def _untold(subject: Subject, names: Iterable[str]) -> list[str]:
    """States of whose sizes neither their declarations nor the other inputs tell all."""
    told = {one for info in subject.inputs if info.name not in subject.fed for one in info.shape or ()}
    symbols = {one for one in told if isinstance(one, str)}
    states = [info for info in subject.inputs if info.name in subject.fed and info.name in names and not info.optional]
    return [
        info.name
        for info in states
        if info.shape is not None and not all(isinstance(one, int) or one in symbols for one in info.shape)
    ]


def _parts(array: AnyArray, axis: int, steps: int) -> list[AnyArray]:
    size = array.shape[axis]
    return [np.take(array, range(k, min(k + steps, size)), axis) for k in range(0, size, steps)]


def _push(subject: Subject, inputs: Arrays) -> Arrays:
    """With lengths as they have to be: a push has no rows of other lengths."""
    steps = [inputs[name].shape[axis] for name in inputs if (axis := subject.time_axis(name)) is not None]
    lengths = {name: np.full_like(inputs[name], min(steps, default=1)) for name in subject.lengths() & inputs.keys()}
    return {**inputs, **lengths}


def joined(subject: Subject, pushes: Pushes, results: Sequence[Arrays]) -> Arrays:
    """What pushes gave: along time where that is an axis, the last of states, and the others one above the other."""
    found: Arrays = {}
    declared = {info.name: info.shape for info in subject.outputs}
    for name, last in results[-1].items() if results else ():
        parts = [one[name] for one in results]
        is_state = name in subject.states or (pushes.axes and name in subject.ends)
        if is_state or not isinstance(last, np.ndarray):
            found[name] = last
            continue
        axis = subject.time_axis(name)
        if axis is None:
            axis = _time_of(subject, pushes, [one.shape for one in parts], declared.get(name))
        if axis is None:  # no arrays of several sizes stand above each other
            axis = next((k for k, size in enumerate(last.shape) if size != parts[0].shape[k]), None)
        found[name] = np.stack(parts) if axis is None else np.concatenate(parts, axis)
    return found


def _time_of(
    subject: Subject, pushes: Pushes, shapes: Sequence[tuple[int, ...]], declared: Sequence[Any] | None
) -> int | None:
    """Which axis of an output is that along which inputs were cut: one of its name, or else in the same place.

    It has as many elements as each push has steps, and the model declares nothing else.
    """
    of_inputs = {info.name: info.shape for info in subject.inputs}
    rank = len(shapes[0])
    for name, axis in pushes.axes.items():
        shape = of_inputs[name]
        time = None if shape is None else shape[axis]
        own = declared if declared is not None and len(declared) == rank else [None] * rank
        places = [k for k in range(rank) if isinstance(time, str) and own[k] == time] or [axis]
        for k in places:
            if k >= rank or [one[k] for one in shapes] != pushes.steps:
                continue
            if own[k] is None or time is None or own[k] == time:
                return k
    return None
