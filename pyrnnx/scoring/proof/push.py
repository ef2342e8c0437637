"""The proof for one push of a stream: rows of results and of states depend only on the same rows of the push."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrnnx.errors import PyrnnxError, shortened, shown
from pyrnnx.models.state_pairs import described
from pyrnnx.models.stream import ModelStream, carrier_of
from pyrnnx.operator.tensor_info import TensorInfo
from pyrnnx.scoring.declared import fixed
from pyrnnx.scoring.proof.graph import Proof, follow
from pyrnnx.scoring.proof.values import ROWS, Atom, Axis, UnprovenError, Value, axis_of, constant


def proof_of_push(
    stream: ModelStream,
    pushed: Mapping[str, tuple[str, Sequence[int | None]]],
    constants: Mapping[str, Any],
    outputs: Sequence[str],
    rows_of_states: Mapping[str, int | None],
) -> Proof:
    """Return the proof for a push, whose states keep their axes of rows.

    Parameters
    ----------
    stream : ModelStream
    pushed : mapping
        Letters and sizes of the axes of inputs, by name. N is the axis of rows.
    constants : mapping
        Inputs with the same value in every push.
    outputs : sequence of str
        Outputs of the model to prove, in addition to the states.
    rows_of_states : mapping
        Axis of rows of each state; None if it is unknown.
    """
    carrier = carrier_of(stream)
    if not hasattr(carrier.model, "folded"):
        return Proof("the states are variables of an IR")
    states = {**stream.states, **carrier.states}
    inputs = {name: constant(array) for name, array in constants.items()}
    try:
        inputs |= {name: _pushed(name, axes, sizes) for name, (axes, sizes) in pushed.items()}
        rows = next(sizes[axes.index("N")] for axes, sizes in pushed.values())
        inputs |= {info.name: _state(info, rows_of_states[info.name], rows) for info in stream.state_infos}
        proto, tensors = carrier.model.folded()
        proof = follow(proto, tensors, inputs, [*outputs, *states])
        for output, state in states.items():
            if not proof.rows and proof.axes[output][0] != rows_of_states[state]:
                raise UnprovenError(f"output {shown(output)} has its rows on another axis than {shown(state)}")
    except UnprovenError as error:
        return Proof(str(error))
    except PyrnnxError as error:
        return Proof(f"its graph cannot be analysed: {shortened(str(error))}")
    return Proof(proof.rows, axes=proof.axes)


def _pushed(name: str, axes: str, sizes: Sequence[int | None]) -> Value:
    return Value(
        tuple(
            (Atom(ROWS, size),) if axis == "N" else _axis(f"{name}/{axis}", size)
            for axis, size in zip(axes, sizes, strict=True)
        )
    )


def _state(info: TensorInfo, place: int | None, rows: int | None) -> Value:
    if place is None:
        raise UnprovenError(f"the state {described(info)} has no axis that is certain to be the rows")
    return Value(
        tuple(
            (Atom(ROWS, rows),) if k == place else _axis(f"{info.name}/{k}", fixed(dimension))
            for k, dimension in enumerate(info.shape or ())
        )
    )


def _axis(label: str, size: int | None) -> Axis:
    return (Atom(label, None),) if size is None else axis_of(size)
