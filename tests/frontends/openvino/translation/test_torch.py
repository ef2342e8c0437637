"""PyTorch modules converted by OpenVINO, compared with PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from openvino_irs import Array, check, openvino, save

pytestmark = pytest.mark.torch

T, N, I, H = 5, 3, 4, 6
CELLS = ("RNN", "GRU", "LSTM")
# float32 through up to three layers one after the other, whose outputs are below 1
TOLERANCE = 2e-5
# weights that float16 has exactly are not rounded when saved, but sums of two biases are, by up to 2^-12 each
COMPRESSED = 1e-3


@dataclass(frozen=True)
class Case:
    """A recurrent module; `before`, `after`: names of `other_modules`."""

    cell: str
    num_layers: int = 1
    bidirectional: bool = False
    batch_first: bool = False
    bias: bool = True
    states: bool = False
    packed: bool = False
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in vars(self).items() if value and name != "cell"]
        return "-".join([self.cell, *words])


STACKS = (
    *(
        Case(cell, layers, both, first, bias=not states, states=states)
        for cell, layers, (both, first), states in product(CELLS, (1, 3), ((False, True), (True, False)), (False, True))
    ),
    *(Case("LSTM", batch_first=True, after=name) for name in ("linear", "layer_norm", "softmax")),
)
CASES = (
    *STACKS,
    # of packed sequences OpenVINO converts those for LSTM only
    Case("LSTM", packed=True),
    Case("LSTM", packed=True, bidirectional=True, batch_first=True, states=True),
    *(Case("GRU", batch_first=True, before=name) for name in ("embedding", "conv1d", "convolutions")),
)


def other_modules(nn: Any) -> dict[str, Any]:
    convolutions = (nn.Conv1d(3, I, 3, padding="same"), nn.BatchNorm1d(I), nn.ReLU(), nn.MaxPool1d(2))
    return {
        "": nn.Identity(),
        "embedding": nn.Embedding(10, I),
        "conv1d": nn.Conv1d(3, I, 3, padding=1, stride=2),
        "convolutions": nn.Sequential(*convolutions),
        "linear": nn.Sequential(nn.Linear(H, 3), nn.ReLU(), nn.Dropout(0.1)),
        "layer_norm": nn.LayerNorm(H),
        "softmax": nn.Sequential(nn.Linear(H, 3), nn.Softmax(-1)),
    }


def make_module(torch: Any, case: Case) -> Any:
    nn = torch.nn
    Module: Any = nn.Module
    pack, pad = nn.utils.rnn.pack_padded_sequence, nn.utils.rnn.pad_packed_sequence

    class Sequence(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            options = {name: getattr(case, name) for name in ("num_layers", "bidirectional", "batch_first", "bias")}
            self.rnn = getattr(nn, case.cell)(I, H, **options)
            others = other_modules(nn)
            self.before, self.after = others[case.before], others[case.after]

        def forward(self, x: Any, *rest: Any) -> Any:
            left = list(rest)
            lens = left.pop(0) if case.packed else None
            state = None if not case.states else tuple(left) if case.cell == "LSTM" else left[0]
            x = self.before(x)
            if case.before.startswith("conv"):
                x = x.transpose(1, 2)
            if case.packed:
                x = pack(x, lens, batch_first=case.batch_first, enforce_sorted=False)
            y, last = self.rnn(x, state)
            if case.packed:
                y, _ = pad(y, batch_first=case.batch_first)
            return (self.after(y), *(last if isinstance(last, tuple) else (last,)))

    torch.manual_seed(0)
    return Sequence().half().float().eval()


def make_inputs(torch: Any, case: Case) -> tuple[list[Any], list[list[int]]]:
    """Return tensors, and their shapes with batch and time open."""
    D = (1 + case.bidirectional) * case.num_layers
    tensors, shapes = [torch.rand((N, T, I) if case.batch_first else (T, N, I)) - 0.5], [[-1, -1, I]]
    if case.before == "embedding":
        tensors, shapes = [torch.randint(0, 10, (N, T))], [[-1, -1]]
    elif case.before:
        tensors, shapes = [torch.rand(N, 3, 9) - 0.5], [[-1, 3, -1]]
    if case.packed:
        tensors.append(torch.tensor([T, 2, 3]))
        shapes.append([-1])
    for _ in range((1 + (case.cell == "LSTM")) * case.states):
        tensors.append(torch.rand(D, N, H) - 0.5)
        shapes.append([D, -1, H])
    return tensors, shapes


def run_module(torch: Any, module: Any, tensors: Sequence[Any]) -> list[Array]:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [output.numpy() for output in module(*tensors)]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.filterwarnings("ignore")  # of torch's tracer
def test_converted(case: Case, tmp_path: Path) -> None:
    """Shapes are open or fixed; weights are saved in float16 or float32."""
    torch = pytest.importorskip("torch")
    module = make_module(torch, case)
    tensors, open_shapes = make_inputs(torch, case)
    expected = run_module(torch, module, tensors)
    for shapes, f16 in ((open_shapes, True), ([list(tensor.shape) for tensor in tensors], False)):
        example = tuple(tensors) if len(tensors) > 1 else tensors[0]
        model = openvino.convert_model(module, example_input=example, input=list(map(openvino.PartialShape, shapes)))
        path = save(model, tmp_path, f16=f16)
        arrays = [tensor.numpy() for tensor in tensors]
        check(path, arrays, tolerance=COMPRESSED if f16 else TOLERANCE, expected=expected)
