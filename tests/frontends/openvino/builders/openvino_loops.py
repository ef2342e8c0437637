"""TensorIterators written by hand, as old converters wrote them: cells of opset1, Reshapes, ports in every edge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from layers import random_inputs, random_weights
from numpy.typing import NDArray
from openvino_nets import Bin, Port, edges, layer, net, parameter, result

from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, RecurrentOp
from pyrnnx.operator.op import CellName

Array = NDArray[Any]
N, T, I, H = 3, 5, 4, 6
VERSIONS = {"RNN": "opset1", "GRU": "opset3", "LSTM": "opset4"}
F32 = "FP32"


def connection(tag: str, **attributes: Any) -> str:
    return f"<{tag} " + " ".join(f'{key}="{value}"' for key, value in attributes.items()) + "/>"


def port_map(*entries: str) -> str:
    return f"<port_map>{''.join(entries)}</port_map>"


def back_edges(*pairs: tuple[int, int]) -> str:
    made = "".join(f'<edge from-layer="{a}" from-port="0" to-layer="{b}" to-port="0"/>' for a, b in pairs)
    return f"<back_edges>{made}</back_edges>"


def looped(
    kind: CellName, *, reverse: bool = False, data: Mapping[str, Any] | None = None
) -> tuple[str, bytes, list[Array]]:
    """The XML, the .bin and inputs: X [N, T, I], h, and c of an LSTM, to Y and the last states."""
    op, store = RecurrentOp(kind, H), Bin()
    weights = random_weights(op, I, convention=OPENVINO_CELL, seed=kind)
    arrays = random_inputs(op, (T, N, I), convention=OPENVINO_SEQUENCE, seed=kind)
    states = [arrays[name][:, 0] for name in ("H", "C") if name in arrays]
    count = len(states)
    row, state = (F32, (N, I)), (F32, (N, H))
    constants = [store.constant(20 + k, name, a, "f32", F32) for k, (name, a) in enumerate(weights.items())]
    first, last = len(states) + 4, 40
    cell: list[Port] = [row, *[state] * count, *((F32, a.shape) for a in weights.values())]
    body_layers = [
        parameter(0, "x", f"{N},1,{I}", (N, 1, I)),
        *(parameter(1 + k, f"state{k}", f"{N},{H}", (N, H)) for k in range(count)),
        *constants,
        store.constant(30, "row", np.array([N, I]), "i64", "I64"),
        store.constant(31, "part", np.array([N, 1, H]), "i64", "I64"),
        layer(32, "in", "Reshape", {"special_zero": "false"}, [(F32, (N, 1, I)), ("I64", (2,))], [row]),
        layer(33, "cell", f"{kind}Cell", {"hidden_size": H, **(data or {})}, cell, [state] * count, VERSIONS[kind]),
        layer(34, "out", "Reshape", {"special_zero": "false"}, [state, ("I64", (3,))], [(F32, (N, 1, H))]),
        *(result(last + k, f"next{k}", (N, H)) for k in range(count)),
        result(last + 5, "row_out", (N, 1, H)),
    ]
    inner = edges(
        "0.0 32.0", "30.0 32.1", "32.2 33.0", *(f"{1 + k}.0 33.{1 + k}" for k in range(count)),
        *(f"{20 + k}.0 33.{1 + count + k}" for k in range(len(weights))),
        f"33.{first} 34.0", "31.0 34.1", *(f"33.{first + k} {last + k}.0" for k in range(count)), f"34.2 {last + 5}.0",
    )  # fmt: skip
    sliced = {"axis": 1, "start": -1, "end": 0, "stride": -1, "part_size": 1} if reverse else {"axis": 1}
    ports = port_map(
        connection("input", external_port_id=0, internal_layer_id=0, internal_port_id=0, **sliced),
        *(connection("input", external_port_id=1 + k, internal_layer_id=1 + k) for k in range(count)),
        connection("output", external_port_id=1 + count, internal_layer_id=last + 5, **sliced),
        *(connection("output", external_port_id=2 + count + k, internal_layer_id=last + k) for k in range(count)),
    )
    edge = back_edges(*((last + k, 1 + k) for k in range(count)))
    loop = layer(
        10, "loop", "TensorIterator", None, [(F32, (N, T, I)), *[state] * count], [(F32, (N, T, H)), *[state] * count]
    )
    body = f"<body><layers>{''.join(body_layers)}</layers><edges>{inner}</edges></body>"
    outer = [
        parameter(0, "X", f"{N},{T},{I}", (N, T, I)),
        *(parameter(1 + k, f"first{k}", f"{N},{H}", (N, H)) for k in range(count)),
        loop.replace("</layer>", f"{ports}{edge}{body}</layer>"),
        result(11, "Y", (N, T, H)),
        *(result(12 + k, f"last{k}", (N, H)) for k in range(count)),
    ]
    around = edges(
        "0.0 10.0", *(f"{1 + k}.0 10.{1 + k}" for k in range(count)),
        f"10.{1 + count} 11.0", *(f"10.{2 + count + k} {12 + k}.0" for k in range(count)),
    )  # fmt: skip
    return net(outer, around, "10"), store.data, [arrays["X"], *states]


def nested(depth: int) -> str:
    """Loops of one iteration in each other."""
    inner = '<layers><layer id="0" name="p" type="Parameter" version="opset1"><data shape="1" element_type="f32"/>'
    inner += '<output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>'
    leaf = inner + result(9, "r", (1,)) + f"</layers><edges>{edges('0.0 9.0')}</edges>"
    text = leaf
    for _ in range(depth):
        loop = layer(5, "loop", "TensorIterator", None, [(F32, (1,))], [(F32, (1,))])
        ports = port_map(
            connection("input", external_port_id=0, internal_layer_id=0, axis=0),
            connection("output", external_port_id=1, internal_layer_id=9, axis=0),
        )
        loop = loop.replace("</layer>", f"{ports}<body>{text}</body></layer>")
        text = inner + loop + result(9, "r", (1,)) + f"</layers><edges>{edges('0.0 5.0', '5.1 9.0')}</edges>"
    return f'<net name="deep" version="11">{text}</net>'
