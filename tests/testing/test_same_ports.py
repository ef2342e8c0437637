"""Names of mistakes in ports of a layer as users write them, with one bug each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from layers import random_layer
from rows import few_rows
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
    "rows": """
def port(X, sequence_lens, initial_h, initial_c):
    (T, N, _), (D, _, H) = X.shape, initial_h.shape
    Y, Y_h, Y_c = np.zeros((T, D, N, H)), np.zeros((D, N, H)), np.zeros((D, N, H))
    for d, (W, R, b) in enumerate(weights):
        for n, length in enumerate(sequence_lens):
            h, c = initial_h[d, n], initial_c[d, n]
            for k in range(length):
                t = length - 1 - k if d else k
                sums = clipped(X[t, n] @ W.T + h @ R.T + b)
                i, o, f, g = np.split(sums, 4)
                c = sigmoid(f) * c + sigmoid(i) * tanh(g)
                h = sigmoid(o) * tanh(c)
                Y[t, d, n] = h
            if length:
                Y_h[d, n], Y_c[d, n] = h, c
    return Y, Y_h, Y_c
""",
}
OPERATORS = {
    "RNN": RecurrentOp("RNN", H, activations=["Relu"]),
    "GRU": RecurrentOp("GRU", H),
    "LSTM": RecurrentOp("LSTM", H),
    "rows": RecurrentOp("LSTM", H, "bidirectional", clip=0.5),
}
STATES = "initial_h[d, n], initial_c[d, n]"
# The bug, the port, its edits, and what the message says.
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
    ("the other GRU", "GRU", {"(r * h) @ Rh.T + bh + ch": "r * (h @ Rh.T + ch) + bh"}, "linear_before_reset were 1"),
    ("z and 1 - z", "GRU", {"(1 - z) * n + z * h": "z * n + (1 - z) * h"}, "(1-zt) and zt were exchanged in H"),
    (
        "a row's end",
        "rows",
        {"length - 1": "T - 1"},
        "the reverse direction began at the last time step of X, whatever",
    ),
    (
        "lengths ignored",
        "rows",
        {"range(length)": "range(T)", "length - 1": "T - 1", "if length": "if T"},
        "every row had all time steps, whatever sequence_lens says",
    ),
    ("order of Y", "rows", {"Y[t": "Y[k"}, "Y of the reverse direction were in the order in which it runs"),
    ("direction ignored", "rows", {"if d else k": "if False else k"}, "the reverse direction ran forward"),
    ("no step", "rows", {"if length": "if True"}, "the last states of a row of length 0 were its initial ones"),
    (
        "a step too many",
        "rows",
        {"range(length)": "range(max(length, 1))", "length - 1": "max(length - 1, 0)", "if length": "if True"},
        "a row of length 0 had one step",
    ),
    ("the last Y", "rows", {"Y, Y_h, Y_c\n": "Y, Y[-1], Y_c\n"}, "Y_h were Y at the last time step"),
    ("the first Y", "rows", {"Y, Y_h, Y_c\n": "Y, Y[0], Y_c\n"}, "Y_h were Y at the first time step"),
    ("no initial_h", "rows", {"initial_h[d": "0 * initial_h[d"}, "initial_h were zero"),
    ("h and c", "rows", {STATES: "initial_c[d, n], initial_h[d, n]"}, "initial_h and initial_c were exchanged"),
    (
        "the first states",
        "rows",
        {STATES: "initial_h[0, n], initial_c[0, n]"},
        "both directions had the initial states",
    ),
    (
        "axes of states",
        "rows",
        {STATES: "(state.reshape(N, D, H)[n, d] for state in (initial_h, initial_c))"},
        "initial_h and initial_c had the axes [batch_size, num_directions, hidden_size]",
    ),
    ("gate order", "rows", {"i, o, f, g": "i, f, o, g"}, "the gates of W, R and B were in the order i, f, o, c"),
    ("R", "rows", {"R.T": "np.hstack(np.split(R, 4))"}, "R were transposed, gate by gate"),
    ("no clip", "rows", {"clipped(": "("}, "there were no clip"),
    ("clip of H", "rows", {"sigmoid(o) * tanh(c)": "clipped(sigmoid(o) * tanh(c))"}, "clip bounded H, too"),
    ("clip of C", "rows", {"tanh(c)": "tanh(clipped(c))"}, "clip bounded the argument of h, too"),
    *(("right", name, {}, "") for name in PORTS),
]


def port(name: str, layer: Layer, edits: dict[str, str]) -> Callable[..., Any]:
    text = PORTS[name]
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    weights, gates, clip = layer.weights, layer.op.gates, layer.op.clip
    Wb, Rb = np.split(weights["B"], 2, axis=1)
    blocks = {"W": weights["W"][0], "R": weights["R"][0], "b": Wb[0], "c": Rb[0]}
    names: dict[str, Any] = {
        f"{name}{gate}": block
        for name, array in blocks.items()
        for gate, block in zip(gates, np.split(array, len(gates)), strict=True)
    }
    names |= {"np": np, "tanh": np.tanh, "relu": lambda x: np.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
    names["hard"] = lambda alpha, x: np.clip(alpha * x + 0.5, 0, 1)
    names["clipped"] = lambda x: x if clip is None else np.clip(x, -clip, clip)
    names["weights"] = list(zip(weights["W"], weights["R"], Wb + Rb, strict=True))
    exec(text, names)
    function: Callable[..., Any] = names["port"]
    return function


@few_rows(("bug", "name", "edits", "words"), BUGS[::6], [row for row in BUGS if row not in BUGS[::6]], repr)
def test_bugs_of_ports_are_named(bug: str, name: str, edits: dict[str, str], words: str) -> None:
    layer = random_layer(OPERATORS[name], I, np.float64)
    lengths = {"sequence_lens": [6, 0, 2]} if name == "rows" else {}
    if words:
        assert words in "; ".join(named(layer, port(name, layer, edits), **lengths))
    else:
        assert_same(layer, port(name, layer, edits))
