"""Layers of OpenVINO as XML, with arrays that fit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from layers import gate_count, random_arrays
from numpy.typing import NDArray

import pyrnnx.frontends.openvino as frontend
from pyrnnx import OPENVINO_SEQUENCE, PyrnnxError, RecurrentOp
from pyrnnx.frontends.openvino import IRLayer
from pyrnnx.testing.cases import draw

Array = NDArray[Any]
DEFAULTS = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}
N, T, I, H = 3, 5, 4, 6

LABEL = "LSTMSequence 'decoder/lstm' (id 17)"


def good_arrays() -> list[Array]:
    arrays = random_arrays(RecurrentOp("LSTM", H), (T, N, I), convention=OPENVINO_SEQUENCE, lens=(T, 0, 2))
    return [*arrays.values()]


def rejected(call: Callable[[], Any], *words: str) -> str:
    with pytest.raises(PyrnnxError) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"
    return message


# Any operation, by its versioned name


def split(kind: str) -> tuple[str, str, int | None]:
    """ "LSTMCell-4" or "LSTMCell" -> LSTM, Cell, 4 or None."""
    name, _, version = kind.partition("-")
    cell = name[: name.lower().index("cell" if name.lower().endswith("cell") else "sequence")]
    return cell.upper(), name[len(cell) :].capitalize(), int(version) if version else None


def number_of_weights(kind: str) -> int:
    """W, R, B, and P of an LSTM of version 1."""
    cell, _, version = split(kind)
    return 4 if (cell, version) == ("LSTM", 1) else 3


def shapes_of(kind: str, D: int = 1, lbr: bool = False) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Inputs and outputs in port order."""
    cell, form, _ = split(kind)
    GH, states = gate_count(cell) * H, 2 if cell == "LSTM" else 1
    BH = 4 * H if lbr else GH
    peepholes = [(D, 3 * H)] if number_of_weights(kind) == 4 else []
    if form == "Sequence":
        inputs = [(N, T, I), *[(N, D, H)] * states, (N,), (D, GH, I), (D, GH, H), (D, BH), *peepholes]
        return inputs, [(N, D, T, H), *[(N, D, H)] * states]
    inputs = [(N, I), *[(N, H)] * states, (GH, I), (GH, H), (BH,), *(shape[1:] for shape in peepholes)]
    return inputs, [(N, H)] * states


def write(
    kind: str,
    data: Mapping[str, Any] | None = None,
    *,
    shapes: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] | None = None,
    ids: Callable[[int], int] = int,
    precision: str = "",
    attributes: str = 'id="3" name="one"',
) -> str:
    """A `<layer>`; of the version that the kind names, if it does."""
    data = {"hidden_size": H, **(data or {})}
    D = 2 if str(data.get("direction", "")).strip().lower() == "bidirectional" else 1
    inputs, outputs = shapes or shapes_of(
        kind, D, str(data.get("linear_before_reset")).strip().lower() in ("true", "1")
    )
    integers = next((k for k, shape in enumerate(inputs) if len(shape) == 1), None) if "equence" in kind else None
    name, _, version = kind.partition("-")
    if version:
        attributes += f' version="opset{version}"'

    def port(k: int, shape: tuple[int, ...]) -> str:
        said = f' precision="{"I32" if k == integers else precision}"' if precision else ""
        return f'<port id="{ids(k)}"{said}>' + "".join(f"<dim>{size}</dim>" for size in shape) + "</port>"

    first, pairs = len(inputs), " ".join(f'{key}="{value}"' for key, value in data.items())
    return (
        f'<layer {attributes} type="{name}"><data {pairs}/>'
        f"<input>{''.join(port(k, shape) for k, shape in enumerate(inputs))}</input>"
        f"<output>{''.join(port(first + k, shape) for k, shape in enumerate(outputs))}</output></layer>"
    )


# One layer, to be broken in one place or another
_OWN = {"direction": "forward", "hidden_size": H, "activations": "sigmoid,tanh,tanh", "activations_alpha": ""}
_OWN |= {"activations_beta": "", "clip": "0.5"}
GOOD = write("LSTMSequence-5", _OWN, precision="FP32", attributes='id="17" name="decoder/lstm"')


def make_arrays(layer: IRLayer, dtype: Any = np.float32, seed: int = 0) -> list[Array]:
    """Arrays for the ports of a layer; open dimensions get N, T or I."""
    rng = np.random.default_rng(seed)
    arrays = []
    for port in layer.inputs:
        shape = tuple((N, T, I)[k] if size is None else size for k, size in enumerate(port.shape))
        if port.name == "sequence_lengths":
            arrays.append(np.array([T, 0, 2][: shape[0]] if shape[0] == N else [3] * shape[0], np.int32))
        else:
            name = {"H": "initial_h", "C": "initial_c"}.get(port.name, port.name)
            arrays.append(draw(rng, name, shape).astype(dtype))
    return arrays


def function(kind: str, *arrays: Array, **attributes: Any) -> tuple[Array, ...]:
    """The function of that name; of the version that the kind names, if it does."""
    cell, form, version = split(kind)
    if cell == "LSTM" and version is not None:
        attributes = {"opset": version, **attributes}
    outputs = getattr(frontend, f"{cell}_{form}".lower())(*arrays, **attributes)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def assert_same(actual: tuple[Array, ...], wanted: tuple[Array, ...]) -> None:
    assert len(actual) == len(wanted)
    for a, w in zip(actual, wanted, strict=True):
        np.testing.assert_array_equal(a, w, strict=True)
