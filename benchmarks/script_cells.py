"""Modules with loops that TorchScript keeps as Loop of ONNX; it compiles them, so that each is spelled out."""

from __future__ import annotations

from typing import List  # noqa: UP035  # TorchScript knows this name

import torch
from torch import Tensor, nn


class Lstm(nn.Module):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.H = hidden_size
        self.x, self.h = nn.Linear(input_size, 4 * hidden_size), nn.Linear(hidden_size, 4 * hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.H)
        c = torch.zeros(x.size(1), self.H)
        rows: List[Tensor] = []  # noqa: UP006
        for t in range(x.size(0)):
            i, f, g, o = torch.chunk(self.x(x[t]) + self.h(h), 4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            rows.append(h)
        return torch.stack(rows)


class LstmHoisted(Lstm):
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


class Gru(nn.Module):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.H = hidden_size
        self.x, self.h = nn.Linear(input_size, 3 * hidden_size), nn.Linear(hidden_size, 3 * hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.H)
        for t in range(x.size(0)):
            xz, xr, xn = torch.chunk(self.x(x[t]), 3, 1)
            hz, hr, hn = torch.chunk(self.h(h), 3, 1)
            z = torch.sigmoid(xz + hz)
            n = torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
            h = n + z * (h - n)
        return h


class Rnn(nn.Module):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.H = hidden_size
        self.x, self.h = nn.Linear(input_size, hidden_size), nn.Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.H)
        rows: List[Tensor] = []  # noqa: UP006
        for t in range(x.size(0)):
            h = torch.tanh(self.x(x[t]) + self.h(h))
            rows.append(h)
        return torch.stack(rows, 1)


SCRIPTS = {"LSTM": Lstm, "LSTM hoisted": LstmHoisted, "GRU": Gru, "RNN": Rnn}
