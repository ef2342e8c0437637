"""Equations of the cells, and the loop over time.

The equations are the same in all versions of ONNX and OpenVINO; only the arrangement of arrays differs, so weights are
indexed by the letters of their gates here. In the equations, * is a matrix product and (.) an elementwise product. They
omit clip and coupled gates, whose code has a comment with the attribute's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from .arguments import Array

Gates = Mapping[str, Array]  # by letter

# Values of a step: argument and result of each gate's activation, then the states
STEP_VALUES = {
    "RNN": ("i_in", "i", "H"),
    "GRU": ("z_in", "z", "r_in", "r", "h_in", "h", "H"),
    "LSTM": ("i_in", "i", "o_in", "o", "f_in", "f", "c_in", "c", "C", "H"),
}


@dataclass(frozen=True)
class Direction:
    """Parameters of one direction."""

    W: Gates  # [H, I]
    R: Gates  # [H, H]
    Wb: Gates  # [H]
    Rb: Gates  # [H]
    functions: Sequence[Callable[[Array], Array]]  # f, g, h
    clip: float = np.inf
    reverse: bool = False
    linear_before_reset: bool = False  # GRU only
    P: Gates = field(default_factory=dict)  # [H]; LSTM only
    coupled_gate: str = ""  # LSTM only: the gate that is 1 - the other

    def clipped(self, x: Array) -> Array:
        """Apply clip: "bounds the elements of a tensor in the range of [-threshold, +threshold]"."""
        if self.clip == np.inf:
            return x
        return np.minimum(np.maximum(x, -self.clip), self.clip)


def split(array: Array, order: str) -> dict[str, Array]:
    """Return the blocks of the gates along the first axis, by letter."""
    blocks = array.reshape(len(order), len(array) // len(order), *array.shape[1:])
    return dict(zip(order, blocks, strict=True))


# One step. Xt is [rows, I]; Ht_1 and Ct_1, the states of the previous step, are [rows, H].


def rnn_step(p: Direction, Xt: Array, Ht_1: Array) -> dict[str, Array]:
    (f,), W, R, Wb, Rb = p.functions, p.W, p.R, p.Wb, p.Rb

    # Ht = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Wbi + Rbi)
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T + Wb["i"] + Rb["i"])
    Ht = f(i_in)

    return {"i_in": i_in, "i": Ht, "H": Ht}


def gru_step(p: Direction, Xt: Array, Ht_1: Array) -> dict[str, Array]:
    (f, g), W, R, Wb, Rb = p.functions, p.W, p.R, p.Wb, p.Rb

    # zt = f(Xt*(Wz^T) + Ht-1*(Rz^T) + Wbz + Rbz)
    z_in = p.clipped(Xt @ W["z"].T + Ht_1 @ R["z"].T + Wb["z"] + Rb["z"])
    zt = f(z_in)

    # rt = f(Xt*(Wr^T) + Ht-1*(Rr^T) + Wbr + Rbr)
    r_in = p.clipped(Xt @ W["r"].T + Ht_1 @ R["r"].T + Wb["r"] + Rb["r"])
    rt = f(r_in)

    if p.linear_before_reset:
        # ht = g(Xt*(Wh^T) + (rt (.) (Ht-1*(Rh^T) + Rbh)) + Wbh)
        h_in = p.clipped(Xt @ W["h"].T + rt * (Ht_1 @ R["h"].T + Rb["h"]) + Wb["h"])
    else:
        # ht = g(Xt*(Wh^T) + (rt (.) Ht-1)*(Rh^T) + Rbh + Wbh)
        h_in = p.clipped(Xt @ W["h"].T + (rt * Ht_1) @ R["h"].T + Rb["h"] + Wb["h"])
    ht = g(h_in)

    # Ht = (1 - zt) (.) ht + zt (.) Ht-1
    Ht = (1.0 - zt) * ht + zt * Ht_1

    return {"z_in": z_in, "z": zt, "r_in": r_in, "r": rt, "h_in": h_in, "h": ht, "H": Ht}


def lstm_step(p: Direction, Xt: Array, Ht_1: Array, Ct_1: Array) -> dict[str, Array]:
    (f, g, h), W, R, Wb, Rb, P = p.functions, p.W, p.R, p.Wb, p.Rb, p.P

    # it = f(Xt*(Wi^T) + Ht-1*(Ri^T) + Pi (.) Ct-1 + Wbi + Rbi)
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T + P["i"] * Ct_1 + Wb["i"] + Rb["i"])
    it = f(i_in)

    # ft = f(Xt*(Wf^T) + Ht-1*(Rf^T) + Pf (.) Ct-1 + Wbf + Rbf)
    f_in = p.clipped(Xt @ W["f"].T + Ht_1 @ R["f"].T + P["f"] * Ct_1 + Wb["f"] + Rb["f"])
    ft = f(f_in)

    # input_forget: "Couple the input and forget gates if 1": the parameters of one of them are unused
    if p.coupled_gate == "f":
        f_in, ft = np.full_like(f_in, np.nan), 1.0 - it
    elif p.coupled_gate == "i":
        i_in, it = np.full_like(i_in, np.nan), 1.0 - ft

    # ct = g(Xt*(Wc^T) + Ht-1*(Rc^T) + Wbc + Rbc)
    c_in = p.clipped(Xt @ W["c"].T + Ht_1 @ R["c"].T + Wb["c"] + Rb["c"])
    ct = g(c_in)

    # Ct = ft (.) Ct-1 + it (.) ct
    Ct = ft * Ct_1 + it * ct

    # ot = f(Xt*(Wo^T) + Ht-1*(Ro^T) + Po (.) Ct + Wbo + Rbo)
    o_in = p.clipped(Xt @ W["o"].T + Ht_1 @ R["o"].T + P["o"] * Ct + Wb["o"] + Rb["o"])
    ot = f(o_in)

    # Ht = ot (.) h(Ct)
    Ht = ot * h(Ct)

    gates = {"i_in": i_in, "i": it, "o_in": o_in, "o": ot, "f_in": f_in, "f": ft, "c_in": c_in, "c": ct}
    return {**gates, "C": Ct, "H": Ht}


Step = Callable[..., dict[str, Array]]  # (direction, Xt, *states) -> values of the step by name
STEPS: dict[str, Step] = {"RNN": rnn_step, "GRU": gru_step, "LSTM": lstm_step}


@np.errstate(over="ignore", invalid="ignore")  # infinity and NaN are ordinary results
def run_directions(
    cell: str,
    directions: Sequence[Direction],
    X: Array,
    lens: Array,
    states: Mapping[str, Array],
    *,
    steps: bool,
) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    """Return Y, the last states and, with `steps`, the values of every step.

    X is [T, N, I], Y [T, D, N, H], lens [N]. `states` are the initial "H" and, for an LSTM, "C", [D, N, H].
    """
    T, N = X.shape[:2]
    D, _, H = states["H"].shape
    step = STEPS[cell]
    Y = np.zeros((T, D, N, H))  # zero beyond a row's length
    last = {name: np.zeros((D, N, H)) for name in states}  # zero for a row of length 0
    values = {name: np.full((T, D, N, H), np.nan) for name in (STEP_VALUES[cell] if steps else ())}
    X = np.ascontiguousarray(X)
    even = bool((lens == lens[:1]).all())
    for d, direction in enumerate(directions):
        current = {name: initial[d].copy() for name, initial in states.items()}
        for k in range(int(lens.max(initial=0))):
            rows: Array | slice
            t: Array | int
            if even:  # slices of all rows are faster than an index
                rows, t = slice(None), int(lens[0]) - 1 - k if direction.reverse else k
            else:
                rows = np.flatnonzero(lens > k)  # rows with a k-th step
                t = lens[rows] - 1 - k if direction.reverse else np.full(rows.shape, k)
            computed = step(direction, X[t, rows], *(state[rows].copy() for state in current.values()))
            Y[t, d, rows] = computed["H"]
            for name, state in current.items():
                state[rows] = last[name][d, rows] = computed[name]
            for name, array in values.items():
                array[t, d, rows] = computed[name]
    return Y, last, values
