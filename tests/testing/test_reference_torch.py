"""PyTorch in float64 as a witness: nn.RNN, nn.GRU and nn.LSTM, both directions, packed sequences, states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyrnnx.testing import reference

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TOLERANCE = 1e-12  # float64: sums in another order, over 7 steps
# PyTorch's gates, by the letters of ONNX: r, z, n of a GRU and i, f, g, o of an LSTM
ORDERS = {"RNN": "i", "GRU": "rzh", "LSTM": "ifco"}
ONNX_ORDERS = {"RNN": "i", "GRU": "zrh", "LSTM": "iofc"}
MODULES = {"RNN": torch.nn.RNN, "RNN relu": torch.nn.RNN, "GRU": torch.nn.GRU, "LSTM": torch.nn.LSTM}
T, N, I, H = 7, 4, 3, 5
LENS = {"full": None, "mixed": (5, 7, 1, 3), "one": (1, 1, 1, 1)}  # it packs no empty sequence


def as_onnx(cell: str, array: Any) -> Any:
    """The gates' blocks along the first axis in ONNX's order."""
    blocks = dict(zip(ORDERS[cell], np.split(np.array(array), len(ORDERS[cell])), strict=True))
    return np.concatenate([blocks[gate] for gate in ONNX_ORDERS[cell]])


def weights(cell: str, module: Any, bias: bool) -> dict[str, Any]:
    state = {name: value.numpy() for name, value in module.state_dict().items()}
    ends = ["_l0", "_l0_reverse"] if module.bidirectional else ["_l0"]
    given = {
        "W": np.stack([as_onnx(cell, state["weight_ih" + end]) for end in ends]),
        "R": np.stack([as_onnx(cell, state["weight_hh" + end]) for end in ends]),
    }
    if bias:
        both = [[as_onnx(cell, state[name + end]) for name in ("bias_ih", "bias_hh")] for end in ends]
        given["B"] = np.stack([np.concatenate(one) for one in both])
    return given


def run_torch(module: Any, X: Any, states: list[Any], lens: tuple[int, ...] | None) -> tuple[Any, ...]:
    """Y, Y_h and Y_c of ONNX."""
    given = [torch.tensor(state) for state in states]
    sequence = torch.tensor(X)
    if lens is not None:
        sequence = torch.nn.utils.rnn.pack_padded_sequence(sequence, lens, enforce_sorted=False)
    with torch.no_grad():
        output, last = module(sequence, tuple(given) if len(given) > 1 else given[0])
    if lens is not None:
        output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, total_length=T)
    last = last if isinstance(last, tuple) else (last,)
    D = given[0].shape[0]
    Y = output.numpy().reshape(T, N, D, H).transpose(0, 2, 1, 3)  # [T, N, D*H] there
    return (Y, *(one.numpy() for one in last))


@pytest.mark.parametrize("lens", LENS)
@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("bidirectional", [False, True], ids=["forward", "bidirectional"])
@pytest.mark.parametrize("kind", MODULES)
def test_same_numbers(kind: str, bidirectional: bool, bias: bool, lens: str) -> None:
    torch.manual_seed(1)
    cell, _, function = kind.partition(" ")
    more = {"nonlinearity": function} if function else {}
    module = MODULES[kind](I, H, bias=bias, bidirectional=bidirectional, dtype=torch.float64, **more)
    D = 2 if bidirectional else 1
    rng = np.random.default_rng(2)
    X = rng.normal(size=(T, N, I))
    states = [rng.normal(size=(D, N, H)) for _ in range(2 if cell == "LSTM" else 1)]
    attributes: dict[str, Any] = {"direction": "bidirectional" if bidirectional else "forward"}
    if function:
        attributes["activations"] = [function.capitalize()] * D
    if cell == "GRU":
        attributes["linear_before_reset"] = 1  # PyTorch's n = tanh(W x + b + r * (R h + b))
    given = dict(zip(("initial_h", "initial_c"), states, strict=False))
    found = reference.run(cell, X, **weights(cell, module, bias), **given, sequence_lens=LENS[lens], **attributes)
    wanted = run_torch(module, X, states, LENS[lens])
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)
        assert np.abs(other).max() > 0.1  # and they are numbers


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
def test_reverse_is_the_second_direction(cell: str) -> None:
    torch.manual_seed(3)
    module = MODULES[cell](I, H, bidirectional=True, dtype=torch.float64)
    X, zeros = np.random.default_rng(4).normal(size=(T, N, I)), np.zeros((2, N, H))
    wanted = run_torch(module, X, [zeros] * (2 if cell == "LSTM" else 1), LENS["mixed"])
    second = {name: one[1:] for name, one in weights(cell, module, bias=True).items()}
    more = {"linear_before_reset": 1} if cell == "GRU" else {}
    found = reference.run(cell, X, **second, sequence_lens=LENS["mixed"], direction="reverse", **more)
    np.testing.assert_allclose(found[0], wanted[0][:, 1:], rtol=0, atol=TOLERANCE)
    for one, other in zip(found[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(one, other[1:], rtol=0, atol=TOLERANCE)


ACTIVATIONS: dict[str, Any] = {
    "Relu": torch.relu,
    "Tanh": torch.tanh,
    "Sigmoid": torch.sigmoid,
    "LeakyRelu": lambda x: torch.nn.functional.leaky_relu(x, 0.125),
    "HardSigmoid": torch.nn.functional.hardsigmoid,  # x/6 + 1/2
    "Elu": lambda x: torch.nn.functional.elu(x, 0.75),
    "Softsign": torch.nn.functional.softsign,
    "Softplus": lambda x: torch.nn.functional.softplus(x, threshold=1000),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    alpha = {"LeakyRelu": 0.125, "HardSigmoid": 1 / 6, "Elu": 0.75}.get(name, 0.0)
    x = np.linspace(-8, 8, 101)
    wanted = ACTIVATIONS[name](torch.tensor(x)).numpy()
    np.testing.assert_allclose(reference.Activation(name, alpha, 0.5)(x), wanted, rtol=0, atol=TOLERANCE)
