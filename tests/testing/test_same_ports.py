"""Names of mistakes in ports of a layer as users write them, with one bug each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from layers import random_layer
from rows import each_row
from same_messages import named

from pyrnnx import Layer, RecurrentOp
from pyrnnx.testing import assert_same

I, H = 4, 5

PORTS = {
    "RNN": """
def port(X, initial_h):
    h, Y = initial_h[0], []
    for x in X:
        h = relu(x @ Wi.T + h @ Ri.T + bi + ci)
        Y.append(h)
    return np.stack(Y)[:, None], h[None]
""",
    "GRU": """
def port(X, initial_h):
    h, Y = initial_h[0], []
    for x in X:
        z = sigmoid(x @ Wz.T + h @ Rz.T + bz + cz)
        r = sigmoid(x @ Wr.T + h @ Rr.T + br + cr)
        n = tanh(x @ Wh.T + (r * h) @ Rh.T + bh + ch)
        h = (1 - z) * n + z * h
        Y.append(h)
    return np.stack(Y)[:, None], h[None]
""",
    "LSTM": """
def port(X, initial_h, initial_c):
    h, c, Y = initial_h[0], initial_c[0], []
    for x in X:
        i = sigmoid(x @ Wi.T + h @ Ri.T + bi + ci)
        f = sigmoid(x @ Wf.T + h @ Rf.T + bf + cf)
        o = sigmoid(x @ Wo.T + h @ Ro.T + bo + co)
        old, c = c, f * c + i * tanh(x @ Wc.T + h @ Rc.T + bc + cc)
        h = o * tanh(c)
        Y.append(h)
    return np.stack(Y)[:, None], h[None], c[None]
""",
}
# The bug, the cell, the edits of its port, and what the message says.
BUGS: list[tuple[str, Any, dict[str, str], str]] = [
    ("a reset gate that is forgotten", "GRU", {"(r * h) @ Rh": "h @ Rh"}, "rt were 1"),
    ("tanh for sigmoid", "GRU", {"z = sigmoid": "z = tanh"}, "the activation of zt were Tanh"),
    ("tanh for all sigmoids", "LSTM", {"sigmoid": "tanh"}, "activation f were Tanh"),
    ("tanh for relu", "RNN", {"relu": "tanh"}, "the activation of it were Tanh"),
    ("hard sigmoid", "GRU", {"sigmoid(": "hard(0.2, "}, "activation f were HardSigmoid with alpha 0.2"),
    ("hard sigmoid of PyTorch", "LSTM", {"sigmoid(": "hard(1 / 6, "}, "activation f were HardSigmoid with alpha 1/6"),
    ("a bias added twice", "GRU", {"bz + cz": "bz + cz + bz"}, "Wbz were added twice in z"),
    ("both biases added twice", "LSTM", {"bf + cf": "2 * (bf + cf)"}, "Wbf and Rbf were added twice in f"),
    ("Rb of the candidate missing", "GRU", {"bh + ch": "bh"}, "Rbh were left out of h"),
    ("initial_h in the blend", "GRU", {"z * h": "z * initial_h[0]"}, "Ht-1 were initial_h in zt*Ht-1 of H"),
    ("z forgotten", "GRU", {"(1 - z) * n + z * h": "n"}, "zt were 0"),
    ("1 - z forgotten", "GRU", {"(1 - z) * n": "n"}, "(1-zt) were left out of (1-zt)*ht in H"),
    ("h from the old c", "LSTM", {"o * tanh(c)": "o * tanh(old)"}, "Ct were Ct-1 in Ct of k"),
    ("tanh(c) missing", "LSTM", {"o * tanh(c)": "o * c"}, "the activation of h(Ct) were left out"),
    ("forget bias + 1", "LSTM", {"bf + cf": "bf + cf + 1"}, "1 were added to the argument of f"),
    ("Y_c = Y_h", "LSTM", {"h[None], c[None]": "h[None], h[None]"}, "Y_c were Y_h"),
    ("forget gate forgotten", "LSTM", {"f * c + i": "c + i"}, "ft were 1"),
    ("a product left out", "LSTM", {"h @ Ro.T": "0"}, "Ro*Ht-1 were left out of o"),
    ("right", "RNN", {}, ""),
    ("right", "GRU", {}, ""),
    ("right", "LSTM", {}, ""),
]


def port(layer: Layer, edits: dict[str, str]) -> Callable[..., Any]:
    text = PORTS[layer.op.cell]
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    gates, (Wb, Rb) = layer.op.gates, np.split(layer.weights["B"][0], 2)
    blocks = {"W": layer.weights["W"][0], "R": layer.weights["R"][0], "b": Wb, "c": Rb}
    names: dict[str, Any] = {
        f"{name}{gate}": block
        for name, array in blocks.items()
        for gate, block in zip(gates, np.split(array, len(gates)), strict=True)
    }
    names |= {"np": np, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
    names["hard"] = lambda alpha, x: np.clip(alpha * x + 0.5, 0, 1)
    exec(text, names)
    function: Callable[..., Any] = names["port"]
    return function


@each_row(("bug", "cell", "edits", "words"), BUGS, ids=[f"{row[0]}, {row[1]}" for row in BUGS])
def test_bugs_of_ports_are_named(bug: str, cell: Any, edits: dict[str, str], words: str) -> None:
    activations: Any = ["Relu"] if cell == "RNN" else None
    layer = random_layer(RecurrentOp(cell, H, activations=activations), I, np.float64)
    if words:
        assert words in named(layer, port(layer, edits))
    else:
        assert_same(layer, port(layer, edits))
