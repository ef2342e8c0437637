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
