"""What PyTorch itself exports, by both of its exporters, written as IR; torch is the witness."""

from __future__ import annotations

import io
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyrnnx.frontends.openvino import read_model, write_model

openvino = pytest.importorskip("openvino")
pytestmark = pytest.mark.torch

T, N, I, H = 5, 3, 4, 6
# float32 through two layers one after the other, whose outputs are below 1
TOLERANCE = 1e-5
CASES = list(product(("RNN", "GRU", "LSTM"), (1, 2), (False, True), (False, True), ("none", "linear", "last")))


def make_module(torch: Any, case: Any, states: bool) -> Any:
    cell, layers, both, first, head = case
    nn, size = torch.nn, H * (1 + both)
    Module: Any = nn.Module
    heads = {
        "none": nn.Identity(),
        "linear": nn.Sequential(nn.Linear(size, 3), nn.ReLU(), nn.Dropout(0.1)),
        "last": nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 3), nn.Softmax(-1)),
    }

    class Stack(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.rnn = getattr(nn, cell)(I, H, num_layers=layers, bidirectional=both, batch_first=first)
            self.head = heads[head]

        def forward(self, x: Any, *rest: Any) -> Any:
            state = None if not states else rest if cell == "LSTM" else rest[0]
            y, last = self.rnn(x, state)
            if head == "last":
                y = y[:, -1] if first else y[-1]
            return (self.head(y), *(last if isinstance(last, tuple) else (last,)))

    return Stack().eval()


def check(torch: Any, case: Any, states: bool, path: Path, *, dynamo: bool) -> None:
    torch.manual_seed(0)
    cell, layers, both, first, _ = case
    module = make_module(torch, case, states)

    def make_inputs(T: int, N: int) -> list[Any]:
        given = [torch.rand((N, T, I) if first else (T, N, I)) - 0.5]
        count = (1 + (cell == "LSTM")) * states
        return [*given, *(torch.rand(layers * (1 + both), N, H) - 0.5 for _ in range(count))]

    inputs, file = make_inputs(T, N), io.BytesIO()
    names = ["x", "h", "c"][: len(inputs)]
    options: dict[str, Any] = {"dynamo": True}
    if not dynamo:
        open_axes = {"x": {0: "a", 1: "b"}, **{name: {1: "n"} for name in names[1:]}}
        options = {"dynamo": False, "dynamic_axes": open_axes}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's exporters
        torch.onnx.export(module, tuple(inputs), file, input_names=names, **options)
        write_model(file.getvalue(), path)
        for given in [inputs] if dynamo else [inputs, make_inputs(7, N)]:
            arrays = dict(zip(names, (one.numpy() for one in given), strict=True))
            compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
            there = compiled(arrays)
            results = (read_model(path)(arrays).values(), [there[port] for port in compiled.outputs])
            for a, b, c in zip(*results, module(*given), strict=True):
                np.testing.assert_allclose(a, c.numpy(), atol=TOLERANCE, rtol=0)
                np.testing.assert_allclose(b, c.numpy(), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("states", [False, True], ids=["", "states"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_tracing_exporter(case: Any, states: bool, tmp_path: Path) -> None:
    """With batch and time open."""
    check(pytest.importorskip("torch"), case, states, tmp_path / "model.xml", dynamo=False)


@pytest.mark.parametrize("case", CASES[::7], ids=str)
def test_exporter(case: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    check(torch, case, True, tmp_path / "model.xml", dynamo=True)
