"""Single steps that can be checked by hand: one unit, whole numbers, simple activations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyrnnx import reference

ONE, TWO, THREE = (["Affine"] * count for count in (1, 2, 3))  # Affine's defaults give x


def column(*values: float) -> Any:
    """A weight of one unit and one input, [1, gates, 1]."""
    return np.reshape(np.array(values, float), (1, -1, 1))


def row(*values: float) -> Any:
    return np.reshape(np.array(values, float), (1, -1))


def numbers(results: Any) -> list[float]:
    return [float(np.squeeze(one)) for one in results]


X, H, C = np.full((1, 1, 1), 2.0), np.full((1, 1, 1), 3.0), np.full((1, 1, 1), 5.0)


def test_rnn() -> None:
    results = reference.rnn(X, column(7), column(11), B=row(100, 1000), initial_h=H, activations=ONE)
    assert numbers(results) == [2 * 7 + 3 * 11 + 100 + 1000] * 2


@pytest.mark.parametrize("linear_before_reset", [0, 1])
def test_gru(linear_before_reset: int) -> None:
    W, R, B = column(1, 4, 6), column(2, 5, 7), row(10, 20, 30, 100, 200, 300)
    z = 2 * 1 + 3 * 2 + 10 + 100  # 118
    r = 2 * 4 + 3 * 5 + 20 + 200  # 243
    inner = r * (3 * 7 + 300) if linear_before_reset else (r * 3) * 7 + 300
    h = 2 * 6 + inner + 30
    attributes: dict[str, Any] = {"activations": TWO, "linear_before_reset": linear_before_reset}
    *results, values = reference.gru(X, W, R, B=B, initial_h=H, **attributes, steps=True)
    assert numbers(results) == [(1 - z) * h + z * 3] * 2
    assert {name: float(np.squeeze(one)) for name, one in values.items()} == {
        **{"z_in": z, "z": z, "r_in": r, "r": r, "h_in": h, "h": h},
        "H": (1 - z) * h + z * 3,
    }


# An LSTM whose gates differ in all parameters; ONNX has them in the order i, o, f, c, OpenVINO in f, i, c, o.
W, R, Wb, Rb = ({g: 10 * k + n for n, g in enumerate("iofc", 1)} for k in range(4))
P = {"i": 41, "o": 42, "f": 43}
I_GATE = 2 * 1 + 3 * 11 + 41 * 5 + 21 + 31  # 292: W, R, P on the cell state before, Wb, Rb
F_GATE = 2 * 3 + 3 * 13 + 43 * 5 + 23 + 33  # 316
C_GATE = 2 * 4 + 3 * 14 + 24 + 34  # 108
# input_forget of ONNX, and of OpenVINO
COUPLED = {"": (I_GATE, F_GATE), "f": (I_GATE, 1 - I_GATE), "i": (1 - F_GATE, F_GATE)}


def lstm_by_hand(coupled_gate: str) -> dict[str, float]:
    i, f = COUPLED[coupled_gate]
    C = f * 5 + i * C_GATE
    o = 2 * 2 + 3 * 12 + 42 * C + 22 + 32  # P on the new cell state
    return {"i": i, "o": o, "f": f, "c": C_GATE, "C": C, "H": o * C}


def in_order(gates: dict[str, int], order: str) -> list[int]:
    return [gates[g] for g in order]


def assert_values(values: dict[str, Any], wanted: dict[str, float], coupled_gate: str) -> None:
    ins = {f"{g}_in": np.nan if g == coupled_gate else wanted[g] for g in "iofc"}  # one that is not computed has none
    found = {name: float(np.squeeze(one)) for name, one in values.items()}
    np.testing.assert_equal(found, {**wanted, **ins})


@pytest.mark.parametrize("coupled_gate", COUPLED)
def test_lstm(coupled_gate: str) -> None:
    wanted = lstm_by_hand(coupled_gate)
    *results, values = reference.lstm(
        X,
        column(*in_order(W, "iofc")),
        column(*in_order(R, "iofc")),
        B=row(*in_order(Wb, "iofc"), *in_order(Rb, "iofc")),
        P=row(*in_order(P, "iof")),
        initial_h=H,
        initial_c=C,
        activations=THREE,
        input_forget=int(coupled_gate != ""),
        coupled_gate=coupled_gate or "f",
        steps=True,
    )
    assert numbers(results) == [wanted["H"], wanted["H"], wanted["C"]]
    assert_values(values, wanted, coupled_gate)


@pytest.mark.parametrize("input_forget", [False, True])
def test_lstm_of_openvino(input_forget: bool) -> None:
    """Version 1: P in the order f, i, o, and i = 1 - f; sequence and cell."""
    wanted = lstm_by_hand("i" if input_forget else "")
    B = {g: Wb[g] + Rb[g] for g in "fico"}
    weights = [column(*in_order(W, "fico")), column(*in_order(R, "fico")), row(*in_order(B, "fico"))]
    weights.append(row(*in_order(P, "fio")))
    attributes: dict[str, Any] = {"activations": THREE, "input_forget": input_forget, "steps": True}
    Y, Ho, Co, values = reference.run("LSTMSequence-1", X, H, C, [1], *weights, **attributes)
    assert numbers((Y, Ho, Co)) == [wanted["H"], wanted["H"], wanted["C"]]
    assert_values(values, wanted, "i" if input_forget else "")
    *states, values = reference.run("LSTMCell-1", X[0], H[0], C[0], *(one[0] for one in weights), **attributes)
    assert numbers(states) == [wanted["H"], wanted["C"]]
    assert_values(values, wanted, "i" if input_forget else "")


def test_clip_bounds_each_gate_but_not_the_cell_state() -> None:
    """Every gate is bounded to 50: C = 50 * 5 + 50 * 50 goes into h as it is, and P of o sees it as it is."""
    *results, values = reference.lstm(
        X,
        column(*in_order(W, "iofc")),
        column(*in_order(R, "iofc")),
        P=row(1, -1, 1),
        initial_h=H,
        initial_c=C,
        activations=THREE,
        clip=50,
        steps=True,
    )
    # i: 2 + 33 + 5 = 40; f: 6 + 39 + 5 = 50; c: 8 + 42 = 50; o: 4 + 36 - C, far below -50
    assert {name: float(np.squeeze(values[name])) for name in "iofcC"} == {
        "i": 40,
        "o": -50,
        "f": 50,
        "c": 50,
        "C": 2250,
    }
    assert numbers(results) == [-50 * 2250, -50 * 2250, 2250]


def test_gru_of_openvino() -> None:
    """B with linear_before_reset: the sums of z and of r, Wb of h, Rb of h."""
    W, R = column(1, 4, 6), column(2, 5, 7)
    z, r = 2 * 1 + 3 * 2 + 110, 2 * 4 + 3 * 5 + 220
    for linear, B, h in (
        (False, row(110, 220, 330), 2 * 6 + (r * 3) * 7 + 330),
        (True, row(110, 220, 30, 300), 2 * 6 + r * (3 * 7 + 300) + 30),
    ):
        wanted = (1 - z) * h + z * 3
        attributes: dict[str, Any] = {"activations": TWO, "linear_before_reset": linear}
        assert numbers(reference.run("GRUSequence-5", X, H, [1], W, R, B, **attributes)) == [wanted, wanted]
        cell = reference.run("GRUCell-3", X[0], H[0], W[0], R[0], B[0], **attributes)
        assert numbers(cell) == [wanted]


def test_activation_parameters() -> None:
    """ONNX: the next one that is given; OpenVINO: the one at the function's place."""
    names = ["Tanh", "Affine", "LeakyRelu"]
    (functions,) = reference.resolve_activations("LSTM", 1, names=names, alphas=[2, 3], betas=[5])
    assert [(f.name, f.alpha, f.beta) for f in functions] == [("Tanh", 0, 0), ("Affine", 2, 5), ("LeakyRelu", 3, 0)]
    W, R, B = np.ones((4, 1)), np.zeros((4, 1)), np.zeros(4)
    attributes: dict[str, Any] = {"activations_alpha": [7, 2, 3], "activations_beta": [7, 5]}
    gate = np.tanh(1.0)  # of f, i and o
    for c, new in ((-1.0, gate * -1 + gate * (2 * 1 + 5)), (-9.0, gate * -2)):
        states = reference.run("LSTMCell-4", np.ones((1, 1)), [[0.0]], [[c]], W, R, B, activations=names, **attributes)
        h = new if new > 0 else 3 * new  # LeakyRelu, by the alpha in the third place
        assert numbers(states) == pytest.approx([gate * h, new], rel=1e-15)


def test_directions_lengths_and_axes() -> None:
    """h = 10*h + x writes down the initial state and the steps in their order."""
    X = np.array([[1, 4, 7], [2, 5, 8], [3, 6, 9]], float)[:, :, None]
    W, R = np.ones((2, 1, 1)), np.full((2, 1, 1), 10.0)
    initial_h = np.array([[1, 2, 3], [4, 5, 6]], float)[:, :, None]
    lens = [3, 2, 0]
    attributes: dict[str, Any] = {"direction": "bidirectional", "activations": TWO}
    Y, Y_h = reference.rnn(X, W, R, initial_h=initial_h, sequence_lens=lens, **attributes)
    assert Y[:, 0, :, 0].T.tolist() == [[11, 112, 1123], [24, 245, 0], [0, 0, 0]]
    assert Y[:, 1, :, 0].T.tolist() == [[4321, 432, 43], [554, 55, 0], [0, 0, 0]]
    assert Y_h[:, :, 0].tolist() == [[1123, 245, 0], [4321, 554, 0]]
    X, initial_h = X.swapaxes(0, 1), initial_h.swapaxes(0, 1)
    Y_1, Y_h_1 = reference.rnn(X, W, R, initial_h=initial_h, sequence_lens=lens, layout=1, **attributes)
    assert Y_1[..., 0].tolist() == Y[..., 0].transpose(2, 0, 1).tolist()
    assert Y_h_1[..., 0].tolist() == Y_h[..., 0].T.tolist()
    attributes["activations"] = ONE
    Y_2, Ho = reference.run("RNNSequence-5", X, initial_h, lens, W, R, np.zeros((2, 1)), **attributes)
    assert Y_2[..., 0].tolist() == Y[..., 0].transpose(2, 1, 0).tolist()
    assert Ho[..., 0].tolist() == Y_h[..., 0].T.tolist()
