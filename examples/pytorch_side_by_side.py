"""Compare a PyTorch LSTM, its ONNX export, and the IR that pyrnnx writes from the export.

    pip install -e ".[onnx,plot]" torch onnxscript        # and openvino, to run the IR there too
    python examples/pytorch_side_by_side.py

Each form runs in its own runtime and in pyrnnx. The example prints conventions, results and times.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from shared import Array, new_figure, run, save

import pyrnnx
from pyrnnx.bench.timing import measure
from pyrnnx.frontends.openvino import write_model
from pyrnnx.frontends.torch import from_module

try:
    import torch
except ImportError:
    sys.exit("PyTorch is not installed: pip install torch onnxscript")

N, T, I, H = 4, 50, 32, 64
Call = Callable[[], Array]


def export(module: Any, X: Array, path: Path) -> None:
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # else it logs each missing package
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter about itself
            torch.onnx.export(module, (torch.from_numpy(X),), path, input_names=["X"], verbose=False)
    except ImportError as error:
        sys.exit(f"PyTorch's exporter needs another package: pip install onnxscript ({error})")


def of_onnxruntime(path: Path, X: Array) -> Call:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: np.asarray(session.run(None, {"X": X})[0])


def of_openvino(path: Path, X: Array) -> Call:
    import openvino

    # Without the hint, OpenVINO uses bfloat16 on some processors.
    hints = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = openvino.compile_model(path, "CPU", hints)
    return lambda: np.asarray(compiled([X])[0])


def conventions(module: Any, exported: Any, ir: Any) -> None:
    """Print the layer's arrays in each format, and the position of its forget gate."""
    (layer,), (ir_layer,) = exported.layers.values(), ir.layers.values()
    rows = [
        ("", "PyTorch", "ONNX", "OpenVINO IR"),
        ("gates", "i, f, c, o", "i, o, f, c", "f, i, c, o"),
        ("W", *(str(tuple(W.shape)) for W in (module.weight_ih_l0, layer.weights["W"], ir_layer.weights["W"]))),
        (
            "bias",
            f"2 x {tuple(module.bias_ih_l0.shape)}",
            *(str(form.weights["B"].shape) for form in (layer, ir_layer)),
        ),
        ("W of f, first unit", *(np.array2string(W, precision=4) for W in forget_weights(module, layer, ir_layer))),
    ]
    for row in rows:
        print(f"{row[0]:20}" + "".join(f"{cell:26}" for cell in row[1:]).rstrip())


def forget_weights(module: Any, layer: Any, ir_layer: Any) -> list[Array]:
    """Return the first three weights of the forget gate: in the second, third and first block of H rows."""
    ours = module.weight_ih_l0.detach().numpy()[H]
    return [W[:3] for W in (ours, layer.weights["W"][0, 2 * H], ir_layer.weights["W"][0, 0])]


def draw(milliseconds: dict[str, float], output: str) -> None:
    figure = new_figure(9, 0.5 * len(milliseconds) + 1.2)
    axis = figure.subplots()
    colours = ["tab:orange" if "pyrnnx" in name else "tab:gray" for name in milliseconds]
    bars = axis.barh(list(milliseconds), list(milliseconds.values()), color=colours)
    axis.bar_label(bars, fmt="%.2f", padding=3)
    axis.invert_yaxis()
    axis.margins(x=0.1)
    axis.set(xlabel="time of a call, ms (one thread, best of 25; shorter is faster)")
    axis.set_title(f"nn.LSTM({I}, {H}, bidirectional), {N} rows of {T} steps")
    save(figure, output)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a PyTorch module, its ONNX export and its IR.")
    parser.add_argument("--output", default="pytorch_side_by_side.png", help="picture to write")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    pyrnnx.set_num_threads(1)
    module = torch.nn.LSTM(I, H, batch_first=True, bidirectional=True).eval()
    X = np.random.default_rng(0).normal(size=(N, T, I)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        onnx_path = Path(folder) / "lstm.onnx"
        export(module, X, onnx_path)
        xml_path = write_model(onnx_path, onnx_path.with_suffix(".xml"))
        exported, ir, layer = pyrnnx.load(onnx_path), pyrnnx.load(xml_path), from_module(module)
        conventions(module, exported, ir)
        calls: dict[str, Call] = {
            "module: PyTorch": lambda: np.asarray(module(torch.from_numpy(X))[0]),
            "module: pyrnnx": lambda: layer(X)[0],
            "export: pyrnnx": lambda: next(iter(exported(X).values())),
            "IR: pyrnnx": lambda: next(iter(ir(X).values())),
        }
        peers = {"export: ONNX Runtime": (of_onnxruntime, onnx_path), "IR: OpenVINO": (of_openvino, xml_path)}
        for name, (peer, path) in peers.items():
            with suppress(ImportError):  # leave out what is not installed
                calls[name] = peer(path, X)
        exact = deepcopy(module).double()(torch.from_numpy(X.astype(np.float64)))[0].numpy()
        timings = measure(calls, rounds=25)
        order = sorted(calls, key=lambda name: (("module", "export", "IR").index(name.split(":")[0]), "pyrnnx" in name))
        milliseconds = {name: 1e3 * min(timings.seconds[name]) for name in order}
        print(f"\n{'':22}{'Y[0, 0, :3]':37}{'from float64':14}ms")
        for name, time in milliseconds.items():
            Y = calls[name]()
            numbers = np.array2string(Y[0, 0, :3], precision=7, floatmode="fixed")
            print(f"{name:22}{numbers:37}{np.abs(Y - exact).max():<14.1e}{time:.2f}")
    draw(milliseconds, arguments.output)


if __name__ == "__main__":
    run(main)
