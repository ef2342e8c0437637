"""Mutants of the cells' equations: gates, the reset gate, clip."""

from __future__ import annotations

from itertools import combinations

from mutant import OPERATORS, Mutant, table

# By the cases that kill an exchange of two gates.
ORDERS = {
    ("GRU-defaults", "GRU-only-B", "GRUSequence-5-defaults", "GRUCell-3-defaults"): ("GRU", "zrh"),
    ("LSTM-defaults", "LSTM-only-B"): ("LSTM", "iofc"),
    ("LSTMSequence-5-defaults", "LSTMCell-4-defaults"): ("LSTM", "fico"),
}


def exchanged(order: str, a: str, b: str) -> str:
    return order.translate(str.maketrans(a + b, b + a))


GATES = (
    *(
        Mutant(
            f"{cell} of gates {order}: gates {a} and {b} are exchanged",
            OPERATORS,
            f'"{cell}": "{order}"',
            f'"{cell}": "{exchanged(order, a, b)}"',
            killed_by,
        )
        for killed_by, (cell, order) in ORDERS.items()
        for a, b in combinations(order, 2)
    ),
    *table(r"""
OpenVINO's gates in ONNX's order [operators.py]
    "LSTM": "fico" => "LSTM": "iofc"
    LSTMSequence-5-defaults LSTMSequence-1-defaults LSTMCell-4-defaults LSTMCell-1-defaults
GRU: z weighs the new value, not the state [cells.py]
    (1.0 - zt) * ht + zt * Ht_1 => zt * ht + (1.0 - zt) * Ht_1
    GRU-defaults GRUCell-3-defaults
LSTM: i and f change places in C [cells.py]
    Ct = ft * Ct_1 + it * ct => Ct = it * Ct_1 + ft * ct
    LSTM-defaults LSTMCell-4-defaults
RNN: R is not transposed, as the texts of opsets 1 to 6 write it [cells.py]
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T + Wb["i"] + Rb["i"])\n    Ht =>
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"] + Wb["i"] + Rb["i"])\n    Ht
    RNN-opset1 RNN-opset6
"""),
)

RESET = table(r"""
linear_before_reset is ignored but for the form of B [operators.py]
    linear_before_reset=bool(a.linear_before_reset) => linear_before_reset=False
    GRU-linear_before_reset=1-bias GRU-opset3-linear_before_reset GRUSequence-5-linear_before_reset,
    GRUCell-3-linear_before_reset
linear_before_reset: Rb_h is not behind the reset gate [cells.py]
    rt * (Ht_1 @ R["h"].T + Rb["h"]) + Wb["h"] => rt * (Ht_1 @ R["h"].T) + Rb["h"] + Wb["h"]
    GRU-linear_before_reset=1-bias GRUSequence-5-linear_before_reset
linear_before_reset: Wb_h is behind the reset gate [cells.py]
    rt * (Ht_1 @ R["h"].T + Rb["h"]) + Wb["h"] => rt * (Ht_1 @ R["h"].T + Rb["h"] + Wb["h"])
    GRU-linear_before_reset=1-bias GRUCell-3-linear_before_reset
without linear_before_reset Rb_h is behind the reset gate [cells.py]
    (rt * Ht_1) @ R["h"].T + Rb["h"] => (rt * Ht_1) @ R["h"].T + rt * Rb["h"]
    GRU-only-B GRU-linear_before_reset=0-bias
OpenVINO with linear_before_reset: the last two blocks of B are exchanged [operators.py]
    split(B, order + "H") => split(B, order[:-1] + "H" + order[-1])
    GRUSequence-5-linear_before_reset GRUCell-3-linear_before_reset
""")

CLIP = table(r"""
clip is ignored [cells.py]
    return np.minimum(np.maximum(x, -self.clip), self.clip) => return x
    RNN-only-clip GRU-only-clip LSTM-only-clip RNNSequence-5-clip GRUCell-3-clip LSTMCell-1-clip
clip bounds from above only [cells.py]
    return np.minimum(np.maximum(x, -self.clip), self.clip) => return np.minimum(x, self.clip)
    RNN-only-clip GRU-only-clip LSTM-only-clip LSTMSequence-5-clip
RNN: clip before the bias [cells.py]
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T + Wb["i"] + Rb["i"])\n    Ht =>
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T) + Wb["i"] + Rb["i"]\n    Ht
    RNN-clip RNNCell-1-clip
LSTM: clip before the bias of c [cells.py]
    c_in = p.clipped(Xt @ W["c"].T + Ht_1 @ R["c"].T + Wb["c"] + Rb["c"]) =>
    c_in = p.clipped(Xt @ W["c"].T + Ht_1 @ R["c"].T) + Wb["c"] + Rb["c"]
    LSTM-input_forget=0-clip LSTMCell-4-clip
LSTM: clip before the peephole of o [cells.py]
    P["o"] * Ct + Wb["o"] + Rb["o"]) => Wb["o"] + Rb["o"]) + P["o"] * Ct
    LSTM-input_forget=0-clip LSTMCell-1-clip
LSTM: clip also on what goes into h [cells.py]
    Ht = ot * h(Ct) => Ht = ot * h(p.clipped(Ct))
    LSTM-input_forget=0-clip LSTMSequence-5-clip
LSTM: clip also on C [cells.py]
    Ct = ft * Ct_1 + it * ct => Ct = p.clipped(ft * Ct_1 + it * ct)
    LSTM-input_forget=0-clip LSTMCell-4-clip
OpenVINO: clip 0 bounds by 0 [operators.py]
    return clip or np.inf => return np.inf if clip is None else clip
    RNNSequence-5-clip=0 GRUCell-3-clip=0 LSTMSequence-1-clip=0
""")
