"""Models that exporters write without recurrent nodes: layers of Keras, loops over cells of PyTorch, onnxscript.

    python benchmarks/hidden_exports.py torch FOLDER          PyTorch, both exporters, and onnxscript
    python benchmarks/hidden_exports.py keras FOLDER          Keras, with the backend that KERAS_BACKEND names

Keras with TensorFlow needs tensorflow and tf2onnx, with JAX jax and jax2onnx, in environments of their own.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

T, I, H = 50, 32, 64


def keras_models() -> Iterator[tuple[str, Callable[[], Any], int | None]]:
    """Yield names, functions that make models, and the number of steps; None if it is open."""
    from keras import layers

    def rows(make: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: make(H, return_sequences=True)

    table: dict[str, Callable[[], Any]] = {
        "LSTM": lambda: layers.LSTM(H),
        "LSTM sequences": rows(layers.LSTM),
        "LSTM hard sigmoid": lambda: layers.LSTM(H, recurrent_activation="hard_sigmoid"),
        "LSTM relu": lambda: layers.LSTM(H, activation="relu"),
        "LSTM no bias": lambda: layers.LSTM(H, use_bias=False),
        "LSTM unroll": lambda: layers.LSTM(H, unroll=True),
        "LSTM backwards": lambda: layers.LSTM(H, go_backwards=True, return_sequences=True),
        "LSTM both": lambda: layers.Bidirectional(rows(layers.LSTM)()),
        "LSTM two": lambda: [rows(layers.LSTM)(), layers.LSTM(H)],
        "LSTM masked": lambda: [layers.Masking(), layers.LSTM(H)],
        "GRU": lambda: layers.GRU(H),
        "GRU sequences": rows(layers.GRU),
        "GRU reset before": lambda: layers.GRU(H, reset_after=False),
        "GRU unroll": lambda: layers.GRU(H, unroll=True),
        "GRU backwards": lambda: layers.GRU(H, go_backwards=True),
        "GRU both": lambda: layers.Bidirectional(rows(layers.GRU)()),
        "SimpleRNN": lambda: layers.SimpleRNN(H),
        "SimpleRNN relu": lambda: layers.SimpleRNN(H, activation="relu", return_sequences=True),
    }
    for name, make in table.items():
        yield name, make, T
    for name in ("LSTM sequences", "GRU sequences", "GRU reset before", "SimpleRNN"):
        yield f"{name}, open", table[name], None


def write_keras(folder: Path) -> None:
    import keras
    import numpy as np

    for name, make, steps in keras_models():
        keras.utils.set_random_seed(0)
        made = make()
        model = keras.Sequential([keras.Input((steps, I)), *(made if isinstance(made, list) else [made])])
        model(np.zeros((1, T, I), np.float32))
        path = folder / f"keras {keras.backend.backend()} {name}.onnx"
        try:
            model.export(path, format="onnx", verbose=False)
        except Exception as error:  # of several types: exporters reject models
            path.unlink(missing_ok=True)
            print(f"{path.stem}: not exported: {str(error).splitlines()[0][:90]}")


def torch_modules() -> Iterator[tuple[str, Any, bool]]:
    """Yield names, modules, and whether they are scripts, whose loops stay loops."""
    import torch
    from torch import Tensor, nn

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

    for kind in ("RNN", "GRU", "LSTM"):
        cell = getattr(nn, f"{kind}Cell")
        yield f"{kind}Cell", Cells(cell(I, H)), False
        yield f"{kind}Cell backwards", Cells(cell(I, H), backwards=True), False
        yield f"{kind}Cell two", Cells(cell(I, H), cell(H, H)), False
        yield f"{kind} equations", Cells(Equations(kind)), False
    for name, options in {
        "RNN": {},
        "RNN relu": {"nonlinearity": "relu"},
        "RNN two": {"num_layers": 2},
        "RNN both": {"bidirectional": True},
        "RNN no bias": {"bias": False},
    }.items():
        yield f"nn.{name}", nn.RNN(I, H, **options), False  # type: ignore[arg-type]


def write_torch(folder: Path) -> None:
    import torch
    from script_cells import SCRIPTS

    x = torch.randn(T, 1, I)
    for name, module, _ in torch_modules():
        torch.manual_seed(0)
        for exporter in ("dynamo",) if name.startswith("nn.") else ("dynamo", "torchscript"):
            path = folder / f"torch {exporter} {name}.onnx"
            options: dict[str, Any] = {"external_data": False} if exporter == "dynamo" else {}
            torch.onnx.export(module.eval(), (x,), str(path), dynamo=exporter == "dynamo", verbose=False, **options)
    for name, make in SCRIPTS.items():
        torch.manual_seed(0)
        path = folder / f"torch script {name}.onnx"
        axes = {"x": {0: "T", 1: "N"}}
        script = torch.jit.script(make(I, H).eval())
        torch.onnx.export(script, (x,), str(path), dynamo=False, input_names=["x"], dynamic_axes=axes)


def main() -> None:
    warnings.filterwarnings("ignore")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    what, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    {"keras": write_keras, "torch": write_torch}[what](folder)


if __name__ == "__main__":
    main()
