"""Loops and Scans that nearly run a recurrent cell once for each step: the results are those of ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from rows import each_row
from whole_models import check_calls, onnxruntime_witness

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import read_model

I, H, N = 3, 4, 4
TOLERANCE = 1e-6  # sums of fewer than ten products, in another order, through five steps
RNG = np.random.default_rng(1)
WEIGHTS = {"W": RNG.normal(size=(I, H)), "R": RNG.normal(size=(H, H))}


def parsed(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array.astype(np.float32), name) for name, array in WEIGHTS.items()
    )
    return model


# Bodies h' = tanh(x W + h R + b) of X [T, N, 3] that nearly run once for each step, with calls (T, iterations).
STEP = "a = MatMul(x, W) q = MatMul(h, R) s = Add(a, q) hn = Tanh(s)"
LOOPS: dict[str, tuple[str, str, str]] = {  # iterations; before the loop; the step's input
    "iterations of an input": ("M", "", "x = Gather <axis = 0> (X, i)"),
    "length of another input": (
        "trips",
        "sizes = Shape(Z) trips = Gather(sizes, zero)",
        "x = Gather <axis = 0> (X, i)",
    ),
    "whether there are steps": (
        "trips",
        "sizes = Shape(X) size = Gather(sizes, zero) some = Cast <to = 9> (size) trips = Cast <to = 7> (some)",
        "x = Gather <axis = 0> (X, i)",
    ),
    "index of one bit": ("M", "", "narrow = Cast <to = 9> (i) k = Cast <to = 7> (narrow) x = Gather <axis = 0> (X, k)"),
}


@each_row("name", LOOPS)
def test_loops_of_other_numbers_of_iterations(name: str) -> None:
    trips, before, select = LOOPS[name]
    proto = parsed(
        f"""m (int64 M, float[T, N, 3] X, float[T, N, 3] Z, float[N, 4] h0)
        => (float[N, 4] h_last, float[K, N, 4] Y) <bool yes = {{1}}, int64 zero = {{0}}> {{
            {before}
            h_last, Y = Loop({trips}, yes, h0) <body = step (int64 i, bool c, float[N, 4] h)
                => (bool go, float[N, 4] hn, float[N, 4] y) {{ {select} {STEP} y = Identity(hn) go = Identity(c) }}>
        }}"""
    )
    model, witness = read_model(proto), onnxruntime_witness(proto)
    inputs: dict[str, Any] = {}
    for steps, others, count in ((5, 5, 5), (5, 3, 2), (5, 4, -1), (3, 3, 3), (5, 2, 0), (5, 5, 5)):
        X, Z = (RNG.normal(size=(size, N, 3)).astype(np.float32) for size in (steps, others))
        inputs = {"M": np.array(count), "X": X, "Z": Z, "h0": RNG.normal(size=(N, 4)).astype(np.float32)}
        results, expected = model(inputs), witness(inputs)
        np.testing.assert_allclose(results["h_last"], expected[0], rtol=0, atol=TOLERANCE, err_msg=f"{steps} {count}")
        if len(expected[1]):  # ONNX Runtime has no rows in a result without steps
            np.testing.assert_allclose(results["Y"], expected[1], rtol=0, atol=TOLERANCE)
    if name == "iterations of an input":
        with pytest.raises(PyrnnxError):
            model({**inputs, "M": np.array(6)})


MASKED = {
    "cast to integers": "r = Cast <to = 7> (nn) k = Cast <to = 1> (r) y = Where(m, k, h)",
    "cast of the old state": "r = Cast <to = 7> (h) k = Cast <to = 1> (r) y = Where(m, nn, k)",
    "transposed": "k = Transpose(nn) y = Where(m, k, h)",
}


@each_row("name", MASKED)
def test_results_beside_a_masked_state(name: str) -> None:
    """A result with the mask of the state, of another value, is not the state."""
    proto = parsed(
        f"""m (float[T, 4, 3] X, bool[T, 4, 1] mask, float[4, 4] h0)
        => (float[4, 4] h_last, float[T, 4, 4] Y) {{
            h_last, Y = Scan <num_scan_inputs = 2, body = step (float[4, 4] h, float[4, 3] x, bool[4, 1] m)
                => (float[4, 4] hn, float[4, 4] y) {{
                    a = MatMul(x, W) q = MatMul(h, R) s = Add(a, q) nn = Tanh(s) hn = Where(m, nn, h) {MASKED[name]}
            }}> (h0, X, mask)
        }}"""
    )
    arrays = {"X": RNG.normal(size=(5, 4, 3)).astype(np.float32), "h0": RNG.normal(size=(4, 4)).astype(np.float32)}
    inputs = {**arrays, "mask": RNG.integers(0, 2, (5, 4, 1)).astype(bool)}
    check_calls(read_model(proto), onnxruntime_witness(proto), inputs, atol=TOLERANCE)


def test_scan_over_the_last_axis() -> None:
    proto = parsed(
        """m (float[4, 3, 5] X, float[4, 4] h0) => (float[4, 4] h_last, float[5, 4, 4] Y) {
            h_last, Y = Scan <num_scan_inputs = 1, scan_input_axes = [2], body = step (float[4, 4] h, float[4, 3] x)
                => (float[4, 4] hn, float[4, 4] y) { a = MatMul(x, W) q = MatMul(h, R) s = Add(a, q)
                    hn = Tanh(s) y = Identity(hn) }> (h0, X)
        }"""
    )
    shapes = {"X": (4, 3, 5), "h0": (4, 4)}
    inputs = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    check_calls(read_model(proto), onnxruntime_witness(proto), inputs, atol=TOLERANCE)


def test_counter_that_overflows() -> None:
    proto = parsed(
        f"""m (float[T, 2, 3] X, float[2, 4] h0) => (float[2, 4] h_last)
        <bool yes = {{1}}, int64 trips = {{140}}, int8 zero = {{0}}, int8 one = {{1}}> {{
            start = Identity(zero)
            h_last, k_last = Loop(trips, yes, h0, start) <body = step (int64 i, bool c, float[2, 4] h, int8 k)
                => (bool go, float[2, 4] hn, int8 kn) {{ kn = Add(k, one) place = Cast <to = 7> (k)
                    x = Gather <axis = 0> (X, place) {STEP} go = Identity(c) }}>
        }}"""
    )
    inputs = {"X": RNG.normal(size=(140, 2, 3)).astype(np.float32), "h0": RNG.normal(size=(2, 4)).astype(np.float32)}
    check_calls(read_model(proto), onnxruntime_witness(proto), inputs, atol=1e-5)
