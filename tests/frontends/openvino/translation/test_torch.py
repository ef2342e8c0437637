"""IRs that OpenVINO converts from PyTorch modules; torch itself is the witness."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from openvino_irs import check, save

openvino = pytest.importorskip("openvino")
pytestmark = pytest.mark.torch

T, N, I, H = 5, 3, 4, 6
CELLS = ("RNN", "GRU", "LSTM")
# float32 through up to three layers one after the other, whose outputs are below 1
TOLERANCE = 2e-5
# weights that float16 has exactly are not rounded when saved, but sums of two biases are, by up to 2^-12 each
COMPRESSED = 1e-3


@dataclass(frozen=True)
class Case:
    """`before`, `after`: names of `other_modules`."""

    cell: str
    num_layers: int = 1
    bidirectional: bool = False
    batch_first: bool = False
    bias: bool = True
    states: bool = False
    packed: bool = False
    before: str = ""
    after: str = ""
    unrolled: bool = False

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in vars(self).items() if value and name != "cell"]
        return "-".join([self.cell, *words])


CASES = (
    *(
        Case(cell, layers, both, first, bias, states)
        for cell, layers, both, first, (bias, states) in product(
            CELLS, (1, 2, 3), (False, True), (False, True), ((True, False), (False, True))
        )
        if layers == 1 or both is not first  # of the deep ones a part
    ),
    *(Case(cell, unrolled=True) for cell in CELLS),
    # of packed sequences OpenVINO converts those for LSTM only
    Case("LSTM", packed=True),
    Case("LSTM", packed=True, bidirectional=True, batch_first=True, states=True),
    *(Case("LSTM", batch_first=True, after=name) for name in ("linear", "layer_norm", "softmax", "log_softmax")),
    *(Case("GRU", batch_first=True, before=name) for name in ("embedding", "conv1d", "convolutions")),
)


def other_modules(nn: Any) -> dict[str, Any]:
    convolutions = (nn.Conv1d(3, I, 3, padding="same"), nn.BatchNorm1d(I), nn.ReLU(), nn.MaxPool1d(2))
    return {
        "": nn.Identity(),
        "embedding": nn.Embedding(10, I),
        "conv1d": nn.Conv1d(3, I, 3, padding=1, stride=2),
        "convolutions": nn.Sequential(*convolutions),
        "linear": nn.Linear(H, 3),
        "layer_norm": nn.LayerNorm(H),
        "softmax": nn.Sequential(nn.Linear(H, 3), nn.Softmax(-1)),
        "log_softmax": nn.Sequential(nn.Linear(H, 3), nn.LogSoftmax(-1)),
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

    class Loop(Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.cell = getattr(nn, f"{case.cell}Cell")(I, H)

        def forward(self, x: Any, h: Any) -> Any:
            lstm, ys = case.cell == "LSTM", []
            state = (h, torch.zeros_like(h)) if lstm else h
            for t in range(T):
                state = self.cell(x[:, t], state)
                ys.append(state[0] if lstm else state)
            return (torch.stack(ys, 1),)

    return Loop() if case.unrolled else Sequence()


def make_inputs(torch: Any, case: Case) -> tuple[list[Any], list[list[int]]]:
    """Tensors, and their shapes with batch and time open."""
    if case.unrolled:
        return [torch.rand(N, T, I) - 0.5, torch.rand(N, H) - 0.5], [[-1, T, I], [-1, H]]
    D = (1 + case.bidirectional) * case.num_layers
    given, shapes = [torch.rand((N, T, I) if case.batch_first else (T, N, I)) - 0.5], [[-1, -1, I]]
    if case.before == "embedding":
        given, shapes = [torch.randint(0, 10, (N, T))], [[-1, -1]]
    elif case.before:
        given, shapes = [torch.rand(N, 3, 9) - 0.5], [[-1, 3, -1]]
    if case.packed:
        given.append(torch.tensor([T, 2, 3]))
        shapes.append([-1])
    for _ in range((1 + (case.cell == "LSTM")) * case.states):
        given.append(torch.rand(D, N, H) - 0.5)
        shapes.append([D, -1, H])
    return given, shapes


@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_numbers(case: Case, tmp_path: Path) -> None:
    """With open and with fixed shapes; saved with weights in float16 and in float32."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = make_module(torch, case).half().float().eval()
    given, shapes = make_inputs(torch, case)
    arrays = [one.numpy() for one in given]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's tracer
        expected = [one.numpy() for one in module(*given)]
        for dynamic in (True, False):
            wanted = shapes if dynamic else [list(one.shape) for one in given]
            example = tuple(given) if len(given) > 1 else given[0]
            model = openvino.convert_model(
                module, example_input=example, input=[openvino.PartialShape(one) for one in wanted]
            )
            tolerance = COMPRESSED if dynamic else TOLERANCE
            check(save(model, tmp_path, f16=dynamic), arrays, tolerance=tolerance, expected=expected)
