"""PyTorch modules converted by OpenVINO, compared with PyTorch."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from openvino_irs import check, openvino, save

pytestmark = pytest.mark.torch

T, N, I, H = 5, 3, 4, 6
# float32 through up to two layers one after the other, whose outputs are below 1
TOLERANCE = 2e-5
# weights that float16 has exactly are not rounded when saved, but sums of two biases are, by up to 2^-12 each
COMPRESSED = 1e-3
# of packed sequences OpenVINO converts those for LSTM only
CASES = [*product(("RNN", "GRU", "LSTM"), (False, True), (False, True), [False]), ("LSTM", False, True, True)]


def make_module(torch: Any, cell: str, both: bool, *, states: bool, packed: bool) -> Any:
    """Two layers; called with X, lengths if they are `packed`, and initial `states`."""
    Module: Any = torch.nn.Module
    rnn = torch.nn.utils.rnn

    class Sequence(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.rnn = getattr(torch.nn, cell)(I, H, num_layers=2, batch_first=both, bidirectional=both)

        def forward(self, x: Any, *rest: Any) -> Any:
            lengths, state = (rest[0], rest[1:]) if packed else (None, rest)
            if packed:
                x = rnn.pack_padded_sequence(x, lengths, batch_first=both, enforce_sorted=False)
            y, last = self.rnn(x, None if not states else tuple(state) if cell == "LSTM" else state[0])
            if packed:
                y, _ = rnn.pad_packed_sequence(y, batch_first=both)
            return (y, *(last if isinstance(last, tuple) else (last,)))

    torch.manual_seed(0)
    return Sequence().half().float().eval()


@pytest.mark.parametrize(("cell", "both", "states", "packed"), CASES)
@pytest.mark.filterwarnings("ignore")  # of torch's tracer
def test_converted(cell: str, both: bool, states: bool, packed: bool, tmp_path: Path) -> None:
    """Shapes are open or fixed; weights are saved in float16 or float32."""
    torch = pytest.importorskip("torch")
    module, layers = make_module(torch, cell, both, states=states, packed=packed), 4 if both else 2
    tensors, open_shapes = [torch.rand((N, T, I) if both else (T, N, I)) - 0.5], [[-1, -1, I]]
    if packed:
        tensors.append(torch.tensor([T, 2, 3]))
        open_shapes.append([-1])
    for _ in range(states * (2 if cell == "LSTM" else 1)):
        tensors.append(torch.rand(layers, N, H) - 0.5)
        open_shapes.append([layers, -1, H])
    with torch.no_grad():
        expected = [output.numpy() for output in module(*tensors)]
    for shapes, f16 in ((open_shapes, True), ([list(tensor.shape) for tensor in tensors], False)):
        example = tuple(tensors) if len(tensors) > 1 else tensors[0]
        model = openvino.convert_model(module, example_input=example, input=list(map(openvino.PartialShape, shapes)))
        arrays = [tensor.numpy() for tensor in tensors]
        check(save(model, tmp_path, f16=f16), arrays, tolerance=COMPRESSED if f16 else TOLERANCE, expected=expected)
