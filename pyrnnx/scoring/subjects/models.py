"""Models as subjects: a call takes whole sequences, or runs the model step by step."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, shown
from pyrnnx.models import state_pairs
from pyrnnx.models.inputs import given_names
from pyrnnx.models.model import Model, layer_values
from pyrnnx.operator.check import as_array
from pyrnnx.operator.tensor_info import Dimension, Interval, TensorInfo
from pyrnnx.scoring.subjects.interface import Input, Options, Subject, changed_axis, chosen_outputs

_STATES = ("initial_h", "initial_c")


class ModelSubject(Subject):
    """Model as a subject."""

    def __init__(self, model: Model, options: Options) -> None:
        # A copy of an IR with variables: each call resets them, and must not change the caller's model.
        self._has_variables = bool(getattr(model, "variables", ()))
        self.label, self._model = model.label, copy.deepcopy(model) if self._has_variables else model
        self._infos = {info.name: info for info in model.inputs}
        self._constants = _arrays_of(self.label, options)
        self.what = self._model, self._constants
        lengths, outputs = options.lengths, options.outputs
        if lengths is not None and (not isinstance(lengths, str) or lengths not in self._infos):
            raise ArgumentError(
                f"score: {self.label}: lengths is {shown(lengths)}; expected one of {_names_of(self._infos)}"
            )
        self.lengths, self.mixes_lengths = lengths, lengths is not None
        self._states = self._state_shapes()
        supplied = {*self._constants, *self._states, self.lengths}
        info = _sequences_input(self.label, options.input, self._infos, supplied, self._hint())
        known = _layer_axes(model)
        letters = _checked_axes(self.label, info, options.axes, known.get(info.name))
        shape = tuple(map(_fixed, info.shape or [None] * len(letters)))
        self.input = Input(info.name, named_dtype(info.dtype or "float32"), letters, shape)
        self._outputs = given_names(f"score: {self.label}", outputs) if outputs is not None else None
        names = self._outputs or [output.name for output in model.outputs]
        # Operators before a layer may change the axes, so that the layer's rows are not the rows of the input.
        same = "N" in self.input.axes and known.get(info.name) == self.input.axes
        self.axes = {output: known[output] for output in names if same and output in known}

    def _state_shapes(self) -> dict[str, tuple[str, dict[str, int]]]:
        """Return axes and sizes of the inputs that are initial states and have no other value."""
        states = {}
        for key, layer in layer_values(self._model).items():
            op = self._model.layers[key].op
            values = [layer[argument] for argument in _STATES if argument in layer]
            for name, axes in ((name, value.axes) for value in values for name in value.names):
                if name in self._infos and not self._infos[name].optional and name not in self._constants:
                    if op is None:
                        raise UnsupportedError(
                            f"score: {self.label}: {key} declares no hidden_size; expected {shown(name)} in inputs"
                        )
                    states[name] = axes, {"D": op.num_directions, "H": op.hidden_size}
        return states

    def _hint(self) -> str:
        """Return the end of a message on inputs without a value: what could supply them."""
        layers = [layer for layer in layer_values(self._model).values() if "sequence_lens" in layer]
        lengths = {name for layer in layers for name in layer["sequence_lens"].names}
        if self.lengths is None and (named := [name for name in self._infos if name in lengths]):
            return f"; or lengths={named[0]!r}, the lengths of the rows"
        try:
            pairs = state_pairs.pairs_of(self.label, self._model.inputs, self._model.outputs, None)
        except ArgumentError:
            return ""
        fed = {before: after for after, before in pairs.items() if before not in (*self._constants, *self._states)}
        words = ", ".join(f"{shown(after)} as {shown(before)}" for before, after in fed.items())
        return f"; or stream=True, which feeds {words} back from call to call" if fed else ""

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        inputs: dict[str, Any] = {self.input.name: batch, **self._constants}
        for name, (axes, sizes) in self._states.items():
            shape = [len(lengths) if axis == "N" else sizes[axis] for axis in axes]
            inputs[name] = np.zeros(shape, named_dtype(str(self._infos[name].dtype)))
        if self.lengths is not None:
            inputs[self.lengths] = lengths.astype(named_dtype(self._infos[self.lengths].dtype or "int32"))
        if self._has_variables:
            self._model.reset_state()  # type: ignore[attr-defined]  # a method of IRs only
        results: dict[str, Any] = self._model(inputs, outputs=self._outputs)
        return results


class StreamSubject(Subject):
    """Model as a subject that takes one step of each item in a push, and carries its states between pushes.

    `states` are {output: input}, as `Model.stream` takes them; `step` is the size of a step, if items are cut into
    frames.
    """

    pushes = True
    mixes_lengths = True

    def __init__(self, model: Model, states: Mapping[str, str] | None, options: Options, step: int | None) -> None:
        self.label = model.label
        values = _arrays_of(self.label, options)
        try:
            self._stream = model.stream(states)
        except PyrnnxError as error:
            raise type(error)(f"score: {error} (the states are the argument stream)") from error
        fed = set(self._stream.states.values())
        self._initial = {key: value for key, value in values.items() if key in fed}
        self._constants = {key: value for key, value in values.items() if key not in fed}
        self.what = model, self._initial, self._constants, dict(self._stream.states)
        infos = {info.name: info for info in model.inputs}
        info = _sequences_input(self.label, options.input, infos, {*self._constants, *fed})
        own_axes = _layer_axes(model)
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
        letters = _checked_axes(self.label, info, axes, known or {1: "I", 2: "NI"}.get(rank or 0), push=True)
        sizes = [_fixed(dimension) for dimension in info.shape or [None] * len(letters)]
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
            sizes = [_fixed(size) for size in info.shape or ()]
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


def _arrays_of(label: str, options: Options) -> dict[str, AnyArray]:
    return {name: as_array(f"score: {label}", shown(name), value) for name, value in (options.inputs or {}).items()}


def _layer_axes(model: Model) -> dict[str, str]:
    layers = layer_values(model).values()
    return {name: value.axes for layer in layers for value in layer.values() for name in value.names}


def _sequences_input(
    label: str, name: Any, infos: Mapping[str, TensorInfo], supplied: Iterable[Any], hint: str = ""
) -> TensorInfo:
    values = set(supplied)
    free = [key for key, info in infos.items() if key not in values and key != name and not info.optional]
    if name is not None:
        if not isinstance(name, str) or name not in infos:
            raise ArgumentError(
                f"score: {label}: input is {shown(name)}; expected one of {_names_of(infos)}", argument="input"
            )
        if free:
            raise ArgumentError(
                f"score: {label}: inputs lacks {_names_of(free)}, which the model needs besides the sequences of "
                f"{shown(name)}{hint}"
            )
        return infos[name]
    if len(free) != 1:
        problem = f"these inputs have no value: {_names_of(free)}" if free else "every input has a value"
        raise ArgumentError(
            f"score: {label}: {problem}; set the one that takes the sequences as input (--sequences), and the "
            f"others as inputs (--input){hint}"
        )
    return infos[free[0]]


def _fixed(dimension: Dimension) -> int | None:
    if isinstance(dimension, Interval):
        return dimension.low if dimension.low == dimension.high else None
    return dimension if isinstance(dimension, int) else None


def _names_of(names: Iterable[str]) -> str:
    return ", ".join(map(shown, names)) or "none"


def _checked_axes(label: str, info: TensorInfo, axes: Any, default: str | None, *, push: bool = False) -> str:
    """Return the letters of an input's axes: the argument `axes` of `score`, or the default; of a push if `push`."""
    letters = default if axes is None else axes
    example = '"NI", or "NTI" with time steps' if push else '"NTI", or "TI" for a model without batches'
    if letters is None:
        raise ArgumentError(
            f"score: {label}: the axes of {shown(info.name)} ({info.in_words()}){' in a push' if push else ''} are "
            f"unknown; expected axes, with T for time steps and N for rows, such as {example}"
        )
    is_word = isinstance(letters, str) and (not letters or (letters.isalpha() and letters.isupper()))
    if not is_word or len(set(letters)) != len(letters) or not (push or "T" in letters):
        needs = "" if push else " with a T"
        raise ArgumentError(
            f"score: {label}: axes is {shown(axes)}; expected different letters{needs}, such as {example}"
        )
    if info.shape is not None and len(info.shape) != len(letters):
        raise ArgumentError(
            f"score: {label}: axes is {shown(axes)}; expected {len(info.shape)} letters, because {shown(info.name)} is "
            f"{info.in_words()}"
        )
    return str(letters)
