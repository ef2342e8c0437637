"""Whole IRs written by hand, small enough to break at one point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from layers import random_inputs, random_weights
from numpy.typing import NDArray

from pyrnnx import OPENVINO_SEQUENCE, RecurrentOp

Array = NDArray[Any]
Port = str | tuple[str, Sequence[int]] | tuple[str, Sequence[int], str]  # precision, dimensions, names
N, T, I, H = 3, 5, 4, 6
LSTM = RecurrentOp("LSTM", H)


def port(identifier: int, given: Port) -> str:
    precision, dims, names = (*given, "")[:3] if isinstance(given, tuple) else (given, (), "")
    said = f' names="{names}"' if names else ""
    return f'<port id="{identifier}" precision="{precision}"{said}>{"".join(f"<dim>{d}</dim>" for d in dims)}</port>'


def layer(
    identifier: int | str,
    name: str,
    kind: str,
    data: Mapping[str, Any] | None = None,
    inputs: Iterable[Port] = (),
    outputs: Iterable[Port] = (),
    version: str = "opset1",
    more: str = "",
) -> str:
    """A `<layer>`; its ports are numbered from 0, those of outputs after those of inputs."""
    given, results = list(inputs), list(outputs)
    text = f'<layer id="{identifier}" name="{name}" type="{kind}" version="{version}"{more}>'
    if data:
        pairs = " ".join(f'{key}="{value}"' for key, value in data.items())
        text += f"<data {pairs}/>"
    if given:
        text += f"<input>{''.join(port(k, one) for k, one in enumerate(given))}</input>"
    if results:
        text += f"<output>{''.join(port(len(given) + k, one) for k, one in enumerate(results))}</output>"
    return text + "</layer>"


def parameter(
    identifier: int | str, name: str, shape: str, dims: Sequence[int], kind: str = "f32", names: str = ""
) -> str:
    precision = {"f32": "FP32", "i32": "I32", "i64": "I64", "f64": "FP64", "boolean": "BOOL"}.get(kind, kind)
    data = {"shape": shape, "element_type": kind}
    return layer(identifier, name, "Parameter", data, outputs=[(precision, dims, names)])


def result(identifier: int | str, name: str, dims: Sequence[int], precision: str = "FP32", more: str = "") -> str:
    return layer(identifier, name, "Result", inputs=[(precision, dims)], more=more)


def edges(*ends: str) -> str:
    """ "0.0 3.1": from layer 0, port 0, to layer 3, port 1."""
    text = ""
    for one in ends:
        (a, p), (b, q) = (end.split(".") for end in one.split())
        text += f'<edge from-layer="{a}" from-port="{p}" to-layer="{b}" to-port="{q}"/>\n'
    return text


def net(layers: Iterable[str], connections: str, version: str = "11", name: str = "small") -> str:
    return (
        f'<?xml version="1.0"?>\n<net name="{name}" version="{version}"><layers>\n'
        + "\n".join(layers)
        + f"\n</layers><edges>\n{connections}</edges><rt_info/></net>"
    )


class Bin:
    """A .bin in the making: constants one after the other, each after a byte that shifts it off its alignment."""

    def __init__(self) -> None:
        self.data = b""

    def constant(self, identifier: int | str, name: str, array: Array, kind: str, precision: str) -> str:
        self.data += b"\xee"
        offset, content = len(self.data), array.tobytes()
        self.data += content
        shape = ", ".join(map(str, array.shape))
        data = {"element_type": kind, "shape": shape, "offset": offset, "size": len(content)}
        return layer(identifier, name, "Const", data, outputs=[(precision, array.shape)])


def weights(seed: int = 0) -> dict[str, Array]:
    return random_weights(LSTM, I, convention=OPENVINO_SEQUENCE, seed=seed)


def lstm_net() -> tuple[str, bytes]:
    """X (batch and length open), H, C, lengths -> ReLU -> LSTMSequence with constant weights -> Y, Ho, Co."""
    store, arrays = Bin(), weights()
    state, Y = ("FP32", (-1, 1, H)), ("FP32", (-1, 1, -1, H))
    lstm = layer(
        8,
        "lstm",
        "LSTMSequence",
        {"direction": "forward", "hidden_size": H, "activations": "sigmoid, tanh, tanh", "clip": "0"},
        [("FP32", (-1, -1, I)), state, state, ("I32", (-1,)), *(("FP32", a.shape) for a in arrays.values())],
        [(*Y, "Y"), (*state, "Ho"), (*state, "Co")],
        "opset5",
    )
    layers = [
        parameter(0, "X", "1..8,?,4", (-1, -1, I), names="X"),
        parameter(1, "H", "?,1,6", (-1, 1, H), names="H"),
        parameter(2, "C", "?,1,6", (-1, 1, H), names="C"),
        parameter(3, "lengths", "?", (-1,), "i32", names="lengths"),
        *(store.constant(4 + k, name, a, "f32", "FP32") for k, (name, a) in enumerate(arrays.items())),
        layer(7, "relu", "ReLU", None, [("FP32", (-1, -1, I))], [("FP32", (-1, -1, I), "x")]),
        lstm,
        result(9, "Y/sink_port_0", (-1, 1, -1, H)),
        result(10, "Ho/sink_port_0", (-1, 1, H)),
        result(11, "Co/sink_port_0", (-1, 1, H)),
    ]
    connections = edges(
        "0.0 7.0", "7.1 8.0", "1.0 8.1", "2.0 8.2", "3.0 8.3", "4.0 8.4", "5.0 8.5", "6.0 8.6",
        "8.7 9.0", "8.8 10.0", "8.9 11.0",
    )  # fmt: skip
    return net(layers, connections), store.data


def lstm_inputs(seed: int = 1) -> dict[str, Array]:
    arrays = random_inputs(LSTM, (T, N, I), convention=OPENVINO_SEQUENCE, lens=(T, 0, 2), seed=seed)
    return arrays | {"lengths": arrays.pop("sequence_lengths")}
