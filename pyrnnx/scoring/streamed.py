"""Models that are scored push by push: a push has a step of each item that is not over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.models.inputs import given_names
from pyrnnx.models.model import Model, layer_values
from pyrnnx.models.state_pairs import described
from pyrnnx.operator.check import as_array
from pyrnnx.operator.tensor_info import TensorInfo
from pyrnnx.scoring.declared import fixed, sequences_input
from pyrnnx.scoring.interface import Input, Subject
from pyrnnx.scoring.proof import Proof, proof_of_push


class Streamed(Subject):
    """Model as a subject that takes one step of each item in a push, and carries its states between pushes.

    Parameters
    ----------
    model : Model
    states : mapping or None
        {output: input} of the states, as `Model.stream` takes it.
    name, axes, constants, outputs
        As the arguments `input`, `axes`, `inputs` and `outputs` of `score`. `constants` may have initial states.
    step : int or None
        Size of a step, if items are cut into frames.
    """

    pushes = True
    has_lengths = True

    def __init__(
        self,
        model: Model,
        states: Mapping[str, str] | None,
        name: str | None,
        axes: str | None,
        constants: Mapping[str, Any],
        outputs: Sequence[str] | None,
        step: int | None,
    ) -> None:
        self.label, self._original = model.label, model
        self.axes = {}
        values = {key: as_array(f"score: {self.label}", shown(key), value) for key, value in constants.items()}
        try:
            pairs = model.stream(states).states
        except PyrnnxError as error:
            raise type(error)(f"score: {error}".replace("expected states=", "expected stream=")) from error
        fed = set(pairs.values())
        self._initial = {key: value for key, value in values.items() if key in fed}
        self._constants = self._given = {key: value for key, value in values.items() if key not in fed}
        infos = {info.name: info for info in model.inputs}
        info = sequences_input(self.label, name, infos, {*self._constants, *fed})
        self._axes, sizes = self._push_axes(info, axes, _layer_axes(model).get(info.name), step)
        dtype = np.dtype(named_dtype(info.dtype or "float32"))
        self._stream = _prepared(model, self._constants, info.name, sizes).stream(states)
        if not getattr(model, "variables", ()):
            self._constants = {}  # part of the prepared model
        known = [output.name for output in model.outputs]
        self._outputs = [output for output in known if output not in pairs]
        if outputs is not None:
            self._outputs = list(given_names(f"score: {self.label}", outputs))
        for output in self._outputs:
            if output not in known:
                raise ArgumentError(
                    f"score: {self.label}: outputs has {shown(output)}; expected names out of {', '.join(known)}"
                )
        by_axis = dict(zip(self._axes, sizes, strict=True))
        self._rows_of_states = {info.name: self._rows_axis(info, by_axis) for info in self._stream.state_infos}
        self._proof = Proof()
        if "N" in by_axis:
            pushed = {info.name: (self._axes, sizes)}
            self._proof = proof_of_push(self._stream, pushed, self._constants, self._outputs, self._rows_of_states)
        rows = by_axis.get("N")
        if self._proof.rows and "N" in by_axis and rows is None:
            self.why_one_row, rows = f"rows may depend on each other: {self._proof.rows}", 1
        steps = [axis for axis in self._axes if axis not in "NT"]
        self.input = Input(
            info.name,
            dtype,
            "".join((*("N" * ("N" in by_axis)), "T", *steps)),
            (*([rows] * ("N" in by_axis)), None, *(by_axis[axis] for axis in steps)),
        )
        layer_axes = _layer_axes(model)
        same = layer_axes.get(info.name) == self._axes
        self._times = {
            output: layer_axes[output].index("T")
            for output in self._outputs
            if same and "T" in layer_axes.get(output, "")
        }

    def _push_axes(
        self, info: TensorInfo, axes: Any, known: str | None, step: int | None
    ) -> tuple[str, tuple[int | None, ...]]:
        """Return the axes of a push, and their sizes as far as they are known."""
        where = f"score: {self.label}: axes is {shown(axes)}"
        rank = None if info.shape is None else len(info.shape)
        letters = axes if axes is not None else known or {1: "I", 2: "NI"}.get(rank or 0)
        if letters is None:
            raise ArgumentError(
                f"score: {self.label}: the axes of {shown(info.name)} ({info.in_words()}) in a push are unknown; "
                'expected axes with N for rows, and T for time steps if there are any, such as "NCI" or "NTI"'
            )
        if not isinstance(letters, str) or len(set(letters)) != len(letters) or not (letters + "A").isalpha():
            raise ArgumentError(f'{where}; expected different letters, such as "NI" or "NTI"')
        if rank not in (None, len(letters)):
            raise ArgumentError(f"{where}; expected {rank} letters, because {shown(info.name)} is {info.in_words()}")
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

    def _rows_axis(self, info: TensorInfo, sizes: Mapping[str, int | None]) -> int | None:
        """Return the axis of a state that has the rows of a push: the only one with the declared size of the rows."""
        if "N" not in sizes or info.shape is None:
            return None
        places = [k for k, dimension in enumerate(info.shape) if fixed(dimension) == sizes["N"]]
        return places[0] if len(places) == 1 else None

    @property
    def what(self) -> Any:
        return self._original, self._initial, self._given, dict(self._stream.states)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the model before its preparation, which workers do not need."""
        return {**vars(self), "_original": None}

    def proof(self) -> Proof:
        axes = {}
        for output in self._outputs:
            if output in self._proof.axes:
                rows = self._proof.axes[output][0]
                is_later = output in self._times and self._times[output] < rows
                axes[output] = rows + 1 - is_later, 0
        return Proof(self._proof.rows, axes=axes)

    def call(self, batch: AnyArray, lengths: AnyArray) -> Mapping[str, AnyArray]:
        """Return the outputs [pushes, ...] of items; a push has the rows of the items that are not over."""
        steps, rows = int(lengths.max(initial=0)), len(lengths)
        if not steps:  # a push shows the shapes of the outputs
            shape = [1 if axis == "T" else size for axis, size in zip(self.input.axes, batch.shape, strict=True)]
            results_of_zeros = self.call(np.zeros(shape, batch.dtype), np.ones_like(lengths))
            return {name: array[:0] for name, array in results_of_zeros.items()}
        leave = self.input.size("N") is None and "N" in self.input.axes
        frames = np.moveaxis(batch, self.input.axes.index("T"), 0)
        self._stream.restore(self._starts(rows))
        active = np.arange(rows)
        results: dict[str, list[tuple[AnyArray, AnyArray]]] = {name: [] for name in self._outputs}
        for step in range(steps):
            stay = np.flatnonzero(lengths[active] > step) if leave else active
            if len(stay) < len(active):
                self._keep(stay)
                active = active[stay]
            frame = frames[step][active] if "N" in self.input.axes else frames[step]
            outputs = self._stream.push({self.input.name: self._push(frame), **self._constants})
            for name, pieces in results.items():
                pieces.append((active, outputs[name]))
        return {name: self._joined(name, pieces, rows) for name, pieces in results.items()}

    def _push(self, frame: AnyArray) -> AnyArray:
        """Return the steps of all rows as the model takes them."""
        order = self.input.axes.replace("T", "")
        if "T" in self._axes:
            frame, order = frame[np.newaxis], f"T{order}"
        return np.ascontiguousarray(frame.transpose([order.index(axis) for axis in self._axes]))

    def _starts(self, rows: int) -> dict[str, AnyArray]:
        """Return the initial states of a number of rows; a layer supplies those that are missing."""
        self._stream.reset()
        known = {**self._stream.state, **self._initial}
        fed = set(self._stream.states.values())
        starts = {}
        for info in self._stream.state_infos:
            place, value = self._rows_of_states[info.name], known.get(info.name)
            if value is None and info.name in fed:
                shape = [rows if k == place else fixed(size) for k, size in enumerate(info.shape or (None,))]
                if place is None:  # one row at a time
                    shape = [1 if size is None else size for size in shape] if shape.count(None) == 1 else shape
                if None in shape:
                    raise ArgumentError(
                        f"score: {self.label}: the size of the state {described(info)} is unknown; expected its "
                        f"initial value, an array of one row, in inputs={{{shown(info.name)}: array}}"
                    )
                value = np.zeros([size or 0 for size in shape], named_dtype(str(info.dtype)))
            if value is not None:
                one_row = place is not None and value.ndim > place and value.shape[place] == 1
                starts[info.name] = np.repeat(value, rows, place) if one_row else value
        return starts

    def _keep(self, places: AnyArray) -> None:
        """Keep the states of these rows only."""
        states = self._stream.state
        for name, value in states.items():
            axis = self._rows_of_states[name]
            assert axis is not None  # rows share pushes only if this is proven
            states[name] = np.take(value, places, axis)
        self._stream.restore(states)

    def _joined(self, name: str, pieces: Sequence[tuple[AnyArray, AnyArray]], rows: int) -> AnyArray:
        """Return the results of all pushes [pushes, ...], with zeros for rows that are over."""
        _, first = pieces[0]
        if len(pieces[-1][0]) == rows:
            joined = np.stack([array for _, array in pieces])
        else:
            axis = self._proof.axes[name][0]
            shape = [*first.shape]
            shape[axis] = rows
            joined = np.zeros([len(pieces), *shape], first.dtype)
            by_row = np.moveaxis(joined, axis + 1, 1)
            for step, (active, array) in enumerate(pieces):
                by_row[step, active] = np.moveaxis(array, axis, 0)
        if name in self._times and joined.shape[self._times[name] + 1] == 1:
            joined = joined.squeeze(self._times[name] + 1)
        return joined


def _layer_axes(model: Model) -> dict[str, str]:
    """Return the axes of the inputs and outputs of recurrent layers, by name."""
    layers = layer_values(model).values()
    return {name: value.axes for layer in layers for value in layer.values() for name in value.names}


def _prepared(model: Model, constants: Mapping[str, Any], name: str, sizes: Sequence[int | None]) -> Any:
    """Return the model for pushes of these sizes and with these constants; an IR with variables as it is."""
    from pyrnnx.frontends import onnx as frontend

    if not isinstance(model, frontend.Model):
        if getattr(model, "variables", ()):
            return model
        from pyrnnx.frontends.openvino import to_onnx

        model = frontend.Model(to_onnx(model), model.label, runtime=model.runtime)  # type: ignore[attr-defined]
    return model.specialized(constants, {name: sizes})
