"""accelerate: copies of models with tensors and objects that PyTorch does not copy; for `pytest -m torch`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from pyrnnx import UnsupportedError
from pyrnnx.frontends.torch import accelerate, why_not

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")
from torch_calls import DOUBLE, TOLERANCE, assert_same  # noqa: E402

nn = torch.nn


class Streaming(torch.nn.Module):  # type: ignore[misc]
    """A model that keeps its last states, with their gradients, in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 4, **DOUBLE)
        self.kept = [None]
        self.own_forward = self.forward

    def forward(self, x: Any) -> Any:
        y, self.kept[0] = self.gru(x, self.kept[0])
        return y


def test_copies_of_tensors_with_gradients() -> None:
    model, x = Streaming(), torch.randn(2, 1, 3, **DOUBLE)
    model(x)
    fast = accelerate(model)
    assert fast.kept[0] is model.kept[0]
    assert fast.own_forward.__self__ is fast
    with torch.no_grad():
        for _ in range(5):
            np.testing.assert_allclose(fast(x), model(x), atol=TOLERANCE)
        assert fast.kept[0] is not model.kept[0]
        again = accelerate(model)  # a tensor without gradients is copied
        again.kept[0].zero_()
        assert model.kept[0].abs().min() > 0


@pytest.mark.filterwarnings("ignore")  # weight_norm is deprecated
def test_copies_of_weight_normed_modules() -> None:
    conv = nn.utils.weight_norm(nn.Conv1d(4, 8, 3))
    model = nn.ModuleDict(
        {"conv": conv, "gru": nn.utils.weight_norm(nn.GRU(8, 8), "weight_hh_l0"), "rnn": nn.RNN(8, 8)}
    )
    fast, x = accelerate(model.double().eval()), torch.randn(2, 4, 9, **DOUBLE)
    for _ in range(5):
        with torch.no_grad():
            frames = model["conv"](x).permute(2, 0, 1)
            np.testing.assert_array_equal(fast["conv"](x).permute(2, 0, 1), frames)
            assert_same(fast["gru"], model["gru"], frames)
            assert_same(fast["rnn"], model["rnn"], frames)
            model["conv"].weight_g.mul_(1.1)
            model["gru"].weight_hh_l0_g.mul_(0.9)
    assert why_not(fast)["rnn"] is None
    assert "weight-normed" in (why_not(fast)["gru"] or "")


def test_copies_of_compiled_modules() -> None:
    """The copy runs itself: PyTorch's recurrent modules also copy the compiled call, which runs the original."""
    module = nn.LSTM(3, 4, 2, dropout=0.5, **DOUBLE).train()
    plain = nn.LSTM(3, 4, 2, **DOUBLE).eval()
    plain.load_state_dict(module.state_dict())
    module.compile(backend="eager")
    fast = accelerate(nn.Sequential(module)).eval()
    for _ in range(5):
        assert_same(fast, plain, torch.randn(5, 2, 3, **DOUBLE))
    assert why_not(fast) == {"0": None}
    assert module._compiled_call_impl is not None


@pytest.mark.parametrize("value", [threading.Lock(), (k for k in range(3))])
def test_models_that_cannot_be_copied(value: Any) -> None:
    model, x = nn.Sequential(nn.GRU(3, 4)), torch.randn(2, 3)
    model.attribute = value
    message = (
        r"accelerate: the model cannot be copied \(cannot pickle .*\); pass inplace=True to change the model itself"
    )
    with pytest.raises(UnsupportedError, match=message):
        accelerate(model)
    fast = accelerate(model, inplace=True)
    with torch.no_grad():
        fast(x)
    assert why_not(fast) == {"0": None}
