"""PyTorch modules converted by OpenVINO, compared with PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from openvino_irs import check, openvino, save

pytestmark = pytest.mark.torch

T, N, I, H = 5, 3, 4, 6
CELLS = ("RNN", "GRU", "LSTM")
# float32 through up to three layers one after the other, whose outputs are below 1
TOLERANCE = 2e-5
# weights that float16 has exactly are not rounded when saved, but sums of two biases are, by up to 2^-12 each
COMPRESSED = 1e-3


@dataclass(frozen=True)
class Case:
    cell: str
    num_layers: int = 1
    bidirectional: bool = False
    batch_first: bool = False
    bias: bool = True
    states: bool = False
    packed: bool = False

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in vars(self).items() if value and name != "cell"]
        return "-".join([self.cell, *words])


CASES = (
    *(
        Case(cell, layers, both, first, bias=not states, states=states)
        for cell, layers, (both, first), states in product(CELLS, (1, 3), ((False, True), (True, False)), (False, True))
    ),
    # of packed sequences OpenVINO converts those for LSTM only
    Case("LSTM", packed=True),
    Case("LSTM", packed=True, bidirectional=True, batch_first=True, states=True),
)


def make_module(torch: Any, case: Case) -> Any:
    nn = torch.nn
    Module: Any = nn.Module
    pack, pad = nn.utils.rnn.pack_padded_sequence, nn.utils.rnn.pad_packed_sequence

    class Sequence(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            options = {name: getattr(case, name) for name in ("num_layers", "bidirectional", "batch_first", "bias")}
            self.rnn = getattr(nn, case.cell)(I, H, **options)

        def forward(self, x: Any, *rest: Any) -> Any:
            left = list(rest)
            lens = left.pop(0) if case.packed else None
            state = None if not case.states else tuple(left) if case.cell == "LSTM" else left[0]
            if case.packed:
                x = pack(x, lens, batch_first=case.batch_first, enforce_sorted=False)
            y, last = self.rnn(x, state)
            if case.packed:
                y, _ = pad(y, batch_first=case.batch_first)
            return (y, *(last if isinstance(last, tuple) else (last,)))

    torch.manual_seed(0)
    return Sequence().half().float().eval()


def make_inputs(torch: Any, case: Case) -> tuple[list[Any], list[list[int]]]:
    """Return tensors, and their shapes with batch and time open."""
    D = (1 + case.bidirectional) * case.num_layers
    tensors, shapes = [torch.rand((N, T, I) if case.batch_first else (T, N, I)) - 0.5], [[-1, -1, I]]
    if case.packed:
        tensors.append(torch.tensor([T, 2, 3]))
        shapes.append([-1])
    for _ in range((1 + (case.cell == "LSTM")) * case.states):
        tensors.append(torch.rand(D, N, H) - 0.5)
        shapes.append([D, -1, H])
    return tensors, shapes


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.filterwarnings("ignore")  # of torch's tracer
def test_converted(case: Case, tmp_path: Path) -> None:
    """Shapes are open or fixed; weights are saved in float16 or float32."""
    torch = pytest.importorskip("torch")
    module = make_module(torch, case)
    tensors, open_shapes = make_inputs(torch, case)
    with torch.no_grad():
        expected = [output.numpy() for output in module(*tensors)]
    for shapes, f16 in ((open_shapes, True), ([list(tensor.shape) for tensor in tensors], False)):
        example = tuple(tensors) if len(tensors) > 1 else tensors[0]
        model = openvino.convert_model(module, example_input=example, input=list(map(openvino.PartialShape, shapes)))
        path = save(model, tmp_path, f16=f16)
        arrays = [tensor.numpy() for tensor in tensors]
        check(path, arrays, tolerance=COMPRESSED if f16 else TOLERANCE, expected=expected)
