"""Models as subjects that are called step by step: a push has a step of each item that is not over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.models.model import Model
from pyrnnx.operator.tensor_info import TensorInfo
from pyrnnx.scoring.subjects.interface import Input, Options, Subject, changed_axis, chosen_outputs
from pyrnnx.scoring.subjects.models import arrays_of, checked_axes, fixed, layer_axes, sequences_input


class StreamSubject(Subject):
    """Model as a subject that takes one step of each item in a push, and carries its states between pushes.

    `states` are {output: input}, as `Model.stream` takes them; `step` is the size of a step, if items are cut into
    frames.
    """

    pushes = True
    mixes_lengths = True

    def __init__(self, model: Model, states: Mapping[str, str] | None, options: Options, step: int | None) -> None:
        self.label = model.label
        values = arrays_of(self.label, options)
        try:
            self._stream = model.stream(states)
        except PyrnnxError as error:
            raise type(error)(f"score: {error} (the states are the argument stream)") from error
        fed = set(self._stream.states.values())
        self._initial = {key: value for key, value in values.items() if key in fed}
        self._constants = {key: value for key, value in values.items() if key not in fed}
        self.what = model, self._initial, self._constants, dict(self._stream.states)
        infos = {info.name: info for info in model.inputs}
        info = sequences_input(self.label, options.input, infos, {*self._constants, *fed})
        own_axes = layer_axes(model)
        self._axes, sizes = self._push_axes(info, options.axes, own_axes.get(info.name), step)
        known = [output.name for output in model.outputs]
        own = [output for output in known if output not in self._stream.states]
        chosen = chosen_outputs(f"score: {self.label}", options.outputs, known)
        self._outputs = own if options.outputs is None else chosen
        by_axis = dict(zip(self._axes, sizes, strict=True))
        steps = "".join(axis for axis in self._axes if axis not in "NT")
        letters = f"{'N' if 'N' in by_axis else ''}T{steps}"
        shape = tuple(None if axis == "T" else by_axis[axis] for axis in letters)
        self.input = Input(info.name, named_dtype(info.dtype or "float32"), letters, shape)
        same = own_axes.get(info.name) == self._axes
        self._times = {
            name: own_axes[name].index("T") for name in self._outputs if same and "T" in own_axes.get(name, "")
        }
        # Shapes of states and outputs in the first calls, with one row and with two.
        self._shapes: dict[int, dict[str, tuple[int, ...]]] = {}

    def _push_axes(
        self, info: TensorInfo, axes: Any, known: str | None, step: int | None
    ) -> tuple[str, tuple[int | None, ...]]:
        """Return the axes of a push, and their sizes as far as they are known."""
        rank = None if info.shape is None else len(info.shape)
        letters = checked_axes(self.label, info, axes, known or {1: "I", 2: "NI"}.get(rank or 0), push=True)
        sizes = [fixed(dimension) for dimension in info.shape or [None] * len(letters)]
        if "T" in letters:
            place = letters.index("T")
            if sizes[place] not in (None, 1):
                raise ArgumentError(
                    f"score: {self.label}: a push of {shown(info.name)} ({info.in_words()}) has {sizes[place]} time "
                    "steps; expected 1 or any number: leave T out of axes if they are one frame"
                )
            sizes[place] = 1
        opened = [k for k, size in enumerate(sizes) if size is None and letters[k] not in "NT"]
        if step is not None and len(opened) == 1:
            sizes[opened[0]] = step
        return letters, tuple(sizes)

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        """Return the outputs [pushes, ...] of items; a push has the rows of the items that are not over."""
        steps, rows = int(lengths.max(initial=0)), len(lengths)
        assert (np.diff(lengths) <= 0).all()
        if not steps:  # a push shows the shapes of the outputs
            shape = [1 if axis == "T" else size for axis, size in zip(self.input.axes, batch.shape, strict=True)]
            results_of_zeros = self.call(np.zeros(shape, batch.dtype), np.ones_like(lengths))
            return {name: array[:0] for name, array in results_of_zeros.items()}
        has_rows = "N" in self.input.axes
        leave = has_rows and self.input.size("N") is None
        frames = np.moveaxis(batch, self.input.axes.index("T"), 0)
        self._stream.restore(self._starts(rows))
        before = rows
        results: dict[str, list[AnyArray]] = {name: [] for name in self._outputs}
        for step in range(steps):
            # The longest items come first, so that the rows of items that are not over are the first ones.
            active = int(np.count_nonzero(lengths > step)) if leave else rows
            if active < before:
                state = self._stream.state
                left = {name: value.take(range(active), self._rows_axis(name)) for name, value in state.items()}
                self._stream.restore(left)
            before = active
            frame = frames[step][:active] if has_rows else frames[step]
            outputs = self._stream.push({self.input.name: self._push(frame), **self._constants})
            if step == 0 and leave and rows in (1, 2) and rows not in self._shapes:
                arrays = {**self._stream.state, **{name: outputs[name] for name in self._outputs}}
                self._shapes[rows] = {name: np.shape(array) for name, array in arrays.items()}
            for name, pieces in results.items():
                pieces.append(outputs[name])
        return {name: self._joined(name, pieces) for name, pieces in results.items()}

    def _rows_axis(self, name: str) -> int:
        axis = changed_axis(name, self._shapes[1][name], self._shapes[2][name])
        if axis is None:
            raise ArgumentError(f"{shown(name)} has no axis of rows; expected one, or batch=1")
        return axis

    def _push(self, frame: AnyArray) -> AnyArray:
        """Return the steps of all rows as the model takes them."""
        order = self.input.axes.replace("T", "")
        if "T" in self._axes:
            frame, order = frame[np.newaxis], f"T{order}"
        return np.ascontiguousarray(frame.transpose([order.index(axis) for axis in self._axes]))

    def _starts(self, rows: int) -> dict[str, AnyArray]:
        """Return the initial states of a number of rows, as far as the stream does not make them itself.

        The only open size of a state is its number of rows.
        """
        self._stream.reset()
        known = {**self._stream.state, **self._initial}
        fed = set(self._stream.states.values())
        starts: dict[str, AnyArray] = {}
        for info in self._stream.state_infos:
            sizes = [fixed(size) for size in info.shape or ()]
            value = known.get(info.name)
            if sizes.count(None) != 1:
                starts |= {} if value is None else {info.name: value}
                continue
            axis = sizes.index(None)
            if value is None and info.name in fed:
                value = np.zeros([rows if size is None else size for size in sizes], named_dtype(str(info.dtype)))
            if value is not None:
                is_one = value.ndim == len(sizes) and value.shape[axis] == 1
                starts[info.name] = np.repeat(value, rows, axis) if is_one else value
        return starts

    def _joined(self, name: str, pieces: Sequence[AnyArray]) -> AnyArray:
        """Return the results of all pushes [pushes, ...], with zeros for rows that are over."""
        first = pieces[0]
        if pieces[-1].shape == first.shape:
            joined = np.stack(pieces)
        else:
            axis = self._rows_axis(name)
            joined = np.zeros([len(pieces), *first.shape], first.dtype)
            by_row = np.moveaxis(joined, axis + 1, 1)
            for step, array in enumerate(pieces):
                by_row[step, : array.shape[axis]] = np.moveaxis(array, axis, 0)
        time = self._times.get(name)
        return joined if time is None or joined.shape[time + 1] != 1 else joined.squeeze(time + 1)
