"""Models that PyTorch's exporters write without recurrent nodes: loops over cells, equations and scripts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, List  # noqa: UP035  # TorchScript knows this name

import torch
from torch import Tensor, nn

T, I, H = 4, 32, 64


class Cells(nn.Module):
    """Loop over the steps of X [T, N, I], of one cell or of cells above each other."""

    def __init__(self, *cells: Any, backwards: bool = False) -> None:
        super().__init__()
        self.cells, self.backwards = nn.ModuleList(cells), backwards

    def forward(self, x: Tensor) -> Tensor:
        states: list[Any] = [None] * len(self.cells)
        rows = []
        for t in range(x.shape[0])[:: -1 if self.backwards else 1]:
            row = x[t]
            for k, cell in enumerate(self.cells):
                states[k] = cell(row, states[k])
                row = states[k][0] if isinstance(states[k], tuple) else states[k]
            rows.append(row)
        return torch.stack(rows)


class Equations(nn.Module):
    """Cell as equations, with one product for all gates of x and h together."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, gates = kind, {"RNN": 1, "GRU": 2, "LSTM": 4}[kind]
        self.gates, self.new = nn.Linear(I + H, gates * H), nn.Linear(I + H, H)

    def forward(self, x: Tensor, state: Any = None) -> Any:
        h, c = state if isinstance(state, tuple) else (state, None)
        h = x.new_zeros(x.shape[0], H) if h is None else h
        pre = self.gates(torch.cat([x, h], -1))
        if self.kind == "RNN":
            return torch.tanh(pre)
        if self.kind == "GRU":
            z, r = torch.sigmoid(pre).chunk(2, -1)
            return z * h + (1 - z) * torch.tanh(self.new(torch.cat([x, r * h], -1)))
        c = torch.zeros_like(h) if c is None else c
        i, f, g, o = pre.chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class Script(nn.Module):
    """Products of X and h with all gates; a subclass has the loop, which TorchScript keeps as Loop of ONNX."""

    def __init__(self, gates: int) -> None:
        super().__init__()
        self.H, self.x, self.h = H, nn.Linear(I, gates * H), nn.Linear(H, gates * H)


class ScriptedLstm(Script):
    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.H)
        c = torch.zeros(x.size(1), self.H)
        projected = self.x(x)
        rows: List[Tensor] = []  # noqa: UP006
        for t in range(x.size(0)):
            i, f, g, o = torch.chunk(projected[t] + self.h(h), 4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            rows.append(h)
        return torch.stack(rows)


class ScriptedGru(Script):
    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.H)
        for t in range(x.size(0)):
            xz, xr, xn = torch.chunk(self.x(x[t]), 3, 1)
            hz, hr, hn = torch.chunk(self.h(h), 3, 1)
            z = torch.sigmoid(xz + hz)
            n = torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
            h = n + z * (h - n)
        return h


SCRIPTS = {"LSTM": (ScriptedLstm, 4), "GRU": (ScriptedGru, 3)}
ONE_STEP_LAYERS: dict[str, dict[str, Any]] = {
    "RNN": {},
    "RNN relu": {"nonlinearity": "relu"},
    "RNN two": {"num_layers": 2},
    "RNN both": {"bidirectional": True},
    "RNN no bias": {"bias": False},
}


def modules() -> Iterator[tuple[str, Any]]:
    for kind in ("RNN", "GRU", "LSTM"):
        cell = getattr(nn, f"{kind}Cell")
        yield f"{kind}Cell", Cells(cell(I, H))
        yield f"{kind}Cell backwards", Cells(cell(I, H), backwards=True)
        yield f"{kind}Cell two", Cells(cell(I, H), cell(H, H))
        yield f"{kind} equations", Cells(Equations(kind))
    for name, options in ONE_STEP_LAYERS.items():
        yield f"nn.{name}", nn.RNN(I, H, **options)


def write(folder: Path) -> None:
    """Write a file for each model and exporter."""
    x = torch.randn(T, 1, I)
    torch.manual_seed(0)
    for name, module in modules():
        for exporter in ("dynamo",) if name.startswith("nn.") else ("dynamo", "torchscript"):
            path = folder / f"torch {exporter} {name}.onnx"
            options: dict[str, Any] = {"external_data": False} if exporter == "dynamo" else {}
            torch.onnx.export(module.eval(), (x,), str(path), dynamo=exporter == "dynamo", verbose=False, **options)
    for name, (make, gates) in SCRIPTS.items():
        path = folder / f"torch script {name}.onnx"
        axes = {"x": {0: "T", 1: "N"}}
        script = torch.jit.script(make(gates).eval())
        torch.onnx.export(script, (x,), str(path), dynamo=False, input_names=["x"], dynamic_axes=axes)
