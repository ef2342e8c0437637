"""Show how an ONNX layer and its OpenVINO IR differ: always in conventions, in numbers only after a mistake.

    pip install -e ".[plot]"
    python examples/onnx_and_ir.py

The example translates one LSTM by hand, first as the two specifications require, then with the most common mistake.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from shared import new_figure, run, save

import pyrnnx
from pyrnnx.frontends.onnx import lstm
from pyrnnx.frontends.openvino import read_layer, write_layer

T, N, I, H = 12, 3, 8, 6
Array = np.ndarray[Any, np.dtype[Any]]
TO_IR = [2, 0, 3, 1]  # ONNX has the gates i, o, f, c; OpenVINO f, i, c, o


def in_order(array: Array, order: list[int]) -> Array:
    """Reorder the gates of W, R or a bias, [1, 4*H, ...]."""
    return array.reshape(1, 4, H, *array.shape[2:])[:, order].reshape(array.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description="Show how an ONNX layer and its OpenVINO IR differ.")
    parser.add_argument("--output", default="onnx_and_ir.png", help="picture to write")
    arguments = parser.parse_args()

    rng = np.random.default_rng(0)
    W, R, B = (rng.normal(0, 0.5, (1, *shape)).astype(np.float32) for shape in [(4 * H, I), (4 * H, H), (8 * H,)])
    layer = pyrnnx.Layer(pyrnnx.RecurrentOp("LSTM", H), W, R, B)
    xml = write_layer(layer)  # the <layer> element: its weights are inputs
    bias = B[:, : 4 * H] + B[:, 4 * H :]  # an IR has the sum of Wb and Rb
    right = read_layer(xml).bind(in_order(W, TO_IR), in_order(R, TO_IR), in_order(bias, TO_IR))
    wrong = read_layer(xml).bind(W, R, bias)  # the shapes fit, but each gate has the weights of another

    print("1. The same layer: other conventions, the same numbers\n")
    print(pyrnnx.compare(layer, right))

    X = rng.normal(size=(T, N, I)).astype(np.float32)
    Y, Y_h, Y_c = lstm(X, W, R, B)
    zeros, lengths = np.zeros((N, 1, H), np.float32), np.full(N, T)
    Y_ir, Ho, Co = right(X.swapaxes(0, 1), zeros, zeros, lengths)  # batch first
    print("\n   The outputs side by side, and the largest difference once the axes are the same:")
    rows: list[tuple[str, Array, str, Array, Array]] = [
        ("Y", Y, "Y", Y_ir, Y_ir.transpose(2, 1, 0, 3)),
        ("Y_h", Y_h, "Ho", Ho, Ho.swapaxes(0, 1)),
        ("Y_c", Y_c, "Co", Co, Co.swapaxes(0, 1)),
    ]
    for name, ours, ir_name, theirs, turned in rows:
        print(f"   {name:4}{ours.shape!s:16}{ir_name:4}{theirs.shape!s:16}{np.abs(ours - turned).max():.1e}")

    print(
        "\n2. An IR with its gates in ONNX's order: the shapes fit, so no runtime complains; compare finds the error\n"
    )
    comparison = pyrnnx.compare(layer, wrong, {"X": X})
    print("   gate  largest difference of W, R and b")
    for gate in "iofc":
        blocks = [block for block in comparison.weights if block.gate == gate]
        print(f"   {gate:6}" + "  ".join(f"{block.largest:5.2f}" for block in blocks))
    print(f"   largest difference of Y: {comparison.deviations['Y'].largest:.2f}")
    print(f"   first gate apart: {comparison.first_gate}")
    figure = new_figure(8, 4)
    axis = figure.subplots()
    for gate, profile in comparison.gates.items():
        axis.plot(profile.by_step, label=gate)
    axis.set(xlabel="time step", ylabel="largest difference")
    axis.legend(ncols=2)
    save(figure, arguments.output)


if __name__ == "__main__":
    run(main)
