"""Models as PyTorch and Keras export them, in the forms in which people write recurrent models.

Each row is a module with inputs for one call; `exported` yields the .onnx files of those that can be exported here.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from report import progress

T, N, I, H = 7, 3, 5, 6
TIME_AND_BATCH = {0: "T", 1: "N"}


class Export(NamedTuple):
    """A module, arguments, names of inputs, and dynamic axes by input."""

    name: str
    module: Any
    arguments: tuple[Any, ...]
    axes: Mapping[str, dict[int, str]] = MappingProxyType({})
    dynamo: bool = False


def _layers(torch: Any) -> Iterator[Export]:
    """Yield nn.RNN, nn.GRU and nn.LSTM by both exporters."""
    for kind in ("RNN", "GRU", "LSTM"):
        make = getattr(torch.nn, kind)
        X = torch.randn(T, N, I)
        for dynamo in (False, True):
            yield Export(f"nn.{kind}", make(I, H), (X,), {}, dynamo)
            yield Export(f"nn.{kind}, 2 layers, bidirectional", make(I, H, 2, bidirectional=True), (X,), {}, dynamo)
            yield Export(f"nn.{kind}, dynamic axes", make(I, H), (X,), {"x0": TIME_AND_BATCH}, dynamo)
            yield Export(f"nn.{kind}Cell in a Python loop", _unrolled(torch, kind), (X,), {}, dynamo)
        yield Export(f"nn.{kind}, packed", _packed(torch, make(I, H, bidirectional=True)), _lengths(torch), _PACKED)
        yield Export(f"nn.{kind}Cell in a scripted loop", _scripted(torch, kind), (X,), {"x0": TIME_AND_BATCH})


_PACKED = {"x0": TIME_AND_BATCH, "x1": {0: "N"}}


def _lengths(torch: Any) -> tuple[Any, ...]:
    return torch.randn(T, N, I), torch.tensor([T, 4, 2])


def _packed(torch: Any, rnn: Any) -> Any:
    class Packed(torch.nn.Module):  # type: ignore[misc]
        """A layer over rows of different lengths."""

        def __init__(self) -> None:
            super().__init__()
            self.rnn = rnn

        def forward(self, x: Any, lengths: Any) -> Any:
            sequences = torch.nn.utils.rnn
            packed = sequences.pack_padded_sequence(x, lengths, enforce_sorted=False)
            return sequences.pad_packed_sequence(self.rnn(packed)[0])[0]

    return Packed()


def _unrolled(torch: Any, kind: str) -> Any:
    class Unrolled(torch.nn.Module):  # type: ignore[misc]
        """A cell, called once for each step."""

        def __init__(self) -> None:
            super().__init__()
            self.cell = getattr(torch.nn, f"{kind}Cell")(I, H)

        def forward(self, x: Any) -> Any:
            state, rows = None, []
            for step in x:
                state = self.cell(step, state)
                rows.append(state[0] if kind == "LSTM" else state)
            return torch.stack(rows)

    return Unrolled()


def _scripted(torch: Any, kind: str) -> Any:
    class Cell(torch.nn.Module):  # type: ignore[misc]
        """A cell, called once for each step of a sequence of any length."""

        def __init__(self) -> None:
            super().__init__()
            self.w, self.r = torch.nn.Linear(I, H), torch.nn.Linear(H, H)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = torch.zeros(x.size(1), 6)
            rows = []
            for t in range(x.size(0)):
                h = torch.tanh(self.w(x[t]) + self.r(h))
                rows.append(h)
            return torch.stack(rows)

    class Gated(torch.nn.Module):  # type: ignore[misc]
        """A gated cell, whose last state alone is the result."""

        def __init__(self) -> None:
            super().__init__()
            self.w, self.r = torch.nn.Linear(I, 2 * H), torch.nn.Linear(H, 2 * H)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = torch.zeros(x.size(1), 6)
            for t in range(x.size(0)):
                z, n = (self.w(x[t]) + self.r(h)).chunk(2, 1)
                z = torch.sigmoid(z)
                h = z * h + (1 - z) * torch.tanh(n)
            return h

    class Bounded(torch.nn.Module):  # type: ignore[misc]
        """A cell that runs until its state is large enough, with a choice in each step."""

        def __init__(self) -> None:
            super().__init__()
            self.w, self.r = torch.nn.Linear(I, H), torch.nn.Linear(H, H)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = torch.zeros(x.size(1), 6)
            t = 0
            while t < x.size(0) and bool(h.abs().sum() < 40.0):
                if bool(x[t].sum() > 0):  # noqa: SIM108  (an If of the script)
                    h = torch.tanh(self.w(x[t]) + self.r(h))
                else:
                    h = h * 0.5
                t += 1
            return h

    return torch.jit.script({"RNN": Cell, "GRU": Gated, "LSTM": Bounded}[kind]())


def _models(torch: Any) -> Iterator[Export]:
    """Yield models with other layers around a recurrent one."""
    nn = torch.nn

    class Last(torch.nn.Module):  # type: ignore[misc]
        """Embedding, GRU, the state of the last step."""

        def __init__(self) -> None:
            super().__init__()
            self.e, self.rnn, self.out = nn.Embedding(11, I), nn.GRU(I, H, batch_first=True), nn.Linear(H, 4)

        def forward(self, x: Any) -> Any:
            return torch.log_softmax(self.out(self.rnn(self.e(x))[1][-1]), 1)

    class Crnn(torch.nn.Module):  # type: ignore[misc]
        """Convolutions, pooling, a bidirectional LSTM."""

        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.act = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.PReLU(4)
            self.max, self.mean = nn.MaxPool2d(2), nn.AvgPool2d((2, 1))
            self.rnn = nn.LSTM(16, H, bidirectional=True, batch_first=True)

        def forward(self, x: Any) -> Any:
            x = self.mean(self.max(self.act(self.norm(self.conv(x)))))
            return self.rnn(x.permute(0, 3, 1, 2).flatten(2))[0].argmax(-1)

    class Attention(torch.nn.Module):  # type: ignore[misc]
        """An encoder, and attention of its last state over its steps."""

        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.key = nn.LSTM(I, H, batch_first=True), nn.Linear(H, H)

        def forward(self, x: Any) -> Any:
            y, (h, _) = self.rnn(x)
            scores = torch.softmax((self.key(y) @ h[-1].unsqueeze(-1)).squeeze(-1), 1)
            values, places = scores.topk(2, 1)
            return (scores.unsqueeze(1) @ y).squeeze(1), values, places, scores.cumsum(1)

    class Upsampled(torch.nn.Module):  # type: ignore[misc]
        """A GRU between a padded convolution and a transposed one, with interpolation."""

        def __init__(self) -> None:
            super().__init__()
            self.conv, self.rnn = nn.Conv1d(I, I, 3, stride=2), nn.GRU(I, H, batch_first=True)
            self.up = nn.ConvTranspose1d(H, I, 4, 2, 1)

        def forward(self, x: Any) -> Any:
            y = self.conv(torch.nn.functional.pad(x.transpose(1, 2), (2, 2), "reflect"))
            y = self.up(self.rnn(y.transpose(1, 2))[0].transpose(1, 2))
            return torch.nn.functional.interpolate(y, scale_factor=2.0, mode="nearest")

    X = torch.randn(N, T, I)
    rows = {"x0": {0: "N", 1: "T"}}
    for dynamo in (False, True):
        yield Export("embedding, GRU, last state", Last(), (torch.arange(21).reshape(N, T) % 11,), rows, dynamo)
        yield Export("CRNN", Crnn(), (torch.randn(2, 1, 16, 20),), {"x0": {0: "N", 3: "W"}}, dynamo)
        yield Export("LSTM with attention", Attention(), (X,), rows, dynamo)
        yield Export("convolutions around a GRU", Upsampled(), (torch.randn(N, 12, I),), {}, dynamo)


def _of_torch(folder: Path, text: str) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    try:
        import torch
    except ImportError:
        return
    torch.manual_seed(0)
    for number, row in enumerate([*_layers(torch), *_models(torch)]):
        exporter = "dynamo" if row.dynamo else "torch.jit" if "scripted" in row.name else "legacy"
        names = [f"x{k}" for k in range(len(row.arguments))]
        path = folder / f"torch{number}.onnx"
        options: dict[str, Any] = {"dynamo": row.dynamo, "input_names": names}
        if row.axes and row.dynamo:
            dims = [{axis: torch.export.Dim(name) for axis, name in row.axes.get(k, {}).items()} for k in names]
            options["dynamic_shapes"] = tuple(dims)
        elif row.axes:
            options["dynamic_axes"] = dict(row.axes)

        def export(row: Export = row, path: Path = path, options: dict[str, Any] = options) -> None:
            torch.onnx.export(row.module.eval(), row.arguments, path, **options)

        name = f"{exporter}: {row.name}"
        if text in name and _quietly(name, export):
            yield name, path, {k: v.numpy() for k, v in zip(names, row.arguments, strict=True)}


def _of_keras(folder: Path, text: str) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    os.environ.setdefault("KERAS_BACKEND", "torch")
    try:
        import keras
    except ImportError:
        return
    layers = keras.layers
    keras.utils.set_random_seed(0)
    rows: dict[str, Callable[[], list[Any]]] = {
        "LSTM": lambda: [layers.LSTM(H, return_sequences=True)],
        "GRU": lambda: [layers.GRU(H)],
        "GRU, reset before": lambda: [layers.GRU(H, reset_after=False)],
        "SimpleRNN": lambda: [layers.SimpleRNN(H, return_sequences=True)],
        "Bidirectional LSTM": lambda: [layers.Bidirectional(layers.LSTM(H, return_sequences=True))],
        "Masking, LSTM": lambda: [layers.Masking(), layers.LSTM(H)],
        "Conv1D, pooling, GRU, Dense": lambda: [
            *(layers.Conv1D(4, 3, padding="same"), layers.MaxPooling1D(2)),
            *(layers.GRU(H, return_sequences=True), layers.Dense(3, activation="softmax")),
        ],
    }
    for number, (name, make) in enumerate(rows.items()):
        path = folder / f"keras{number}.onnx"

        def export(make: Callable[[], list[Any]] = make, path: Path = path) -> None:
            model = keras.Sequential([keras.Input((T, I), batch_size=N), *make()])
            model(np.zeros((N, T, I), np.float32))
            model.export(path, format="onnx", verbose=False)

        if text in f"Keras: {name}" and _quietly(f"Keras: {name}", export):
            X = np.random.default_rng(number).standard_normal((N, T, I)).astype(np.float32)
            yield f"Keras: {name}", path, {"": X}


def _quietly(name: str, export: Callable[[], None]) -> bool:
    """Export without the exporters' own messages; return whether it succeeds."""
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        try:
            export()
        except Exception as error:  # of any type
            reason = f"{type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''}"
        else:
            return True
    progress(f"{name}: not exported ({reason})")
    return False


def exported(folder: Path, text: str = "") -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Yield the name, the file and the inputs of exports whose names contain a text.

    An input without a name is the only one.
    """
    yield from _of_torch(folder, text)
    yield from _of_keras(folder, text)
