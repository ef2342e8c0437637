"""Loops, Scans and steps that nearly are a recurrent cell: the results are those of ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

pytest.importorskip("onnxruntime")

from hidden_layers import TOLERANCE, check
from rows import each_row
from whole_models import onnxruntime_witness

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.passes.hidden import hidden_layers

I, H, N = 3, 4, 4
RNG = np.random.default_rng(1)
WEIGHTS = {"W": RNG.normal(size=(I, H)), "R": RNG.normal(size=(H, H)), "zeros": np.zeros((5, 1, I))}
WEIGHTS |= {"wide_W": RNG.normal(size=(I, 2 * H)), "wide_R": RNG.normal(size=(H, 2 * H))}


def parsed(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "com.microsoft": 1]> {text}')
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


# Numbers that end a Loop, computed from an input M; the number that the first one must exceed; and whether it is found.
ENDS: dict[str, tuple[str, str, bool]] = {
    "number": ("n = Identity(M)", "0", True),
    "narrower number, whose sign is another one": ("n = Cast <to = 6> (M)", "0", True),
    "unsigned number": ("n = Cast <to = 12> (M)", "0", True),
    "first iteration in any case": ("n = Identity(M)", "-5", False),
}


@each_row("name", ENDS)
@pytest.mark.parametrize("trips", ["", "most"])
def test_loops_that_a_number_in_the_condition_ends(name: str, trips: str) -> None:
    count, least, is_layer = ENDS[name]
    proto = parsed(
        f"""m (int64 M, float[T, N, 3] X, float[N, 4] h0) => (float[N, 4] h_last)
        <int64 most = {{9223372036854775807}}, float least = {{{least}}}, int64 one = {{1}}> {{
            {count} limit = Cast <to = 1> (n) some = Less(least, limit)
            h_last = Loop(most, some, h0) <body = step (int64 i, bool c, float[N, 4] h) => (bool go, float[N, 4] hn) {{
                x = Gather <axis = 0> (X, i) {STEP} k = Add(i, one) next = Cast <to = 1> (k) go = Less(next, limit) }}>
        }}"""
    )
    proto.graph.node[-1].input[0] = trips
    inputs = {"X": RNG.normal(size=(5, N, 3)).astype(np.float32), "h0": RNG.normal(size=(N, 4)).astype(np.float32)}
    calls = ({**inputs, "M": np.array(number)} for number in (5, 2, 1, 0, 3 - 2**32))
    model = check(proto, *calls)
    assert len(model.layers) == is_layer, model.layers.why_none


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
    check(proto, inputs)


def test_a_mask_whose_rows_are_computed_from_the_input() -> None:
    """ONNX Runtime would replace the computed shape by one whose number of rows is unknown."""
    proto = parsed(
        """m (float[N, 5, 3] X, bool[N, 5] mask) => (float[N, 4] h_last)
        <int64[1] first = {0}, int64[1] one = {1}, int64[1] five = {5}, int64[1] width = {4}, float zero = {0}> {
            sizes = Shape(X) rows = Gather <axis = 0> (sizes, first) whole = Concat <axis = 0> (rows, five, one)
            column = Reshape(mask, whole) masks = Transpose <perm = [1, 0, 2]> (column)
            Xt = Transpose <perm = [1, 0, 2]> (X) start = Concat <axis = 0> (rows, width) h0 = Expand(zero, start)
            h_last = Scan <num_scan_inputs = 2, body = step (float[N, 4] h, float[N, 3] x, bool[N, 1] m)
                => (float[N, 4] hn) {
                    a = MatMul(x, W) q = MatMul(h, R) s = Add(a, q) nn = Tanh(s) hn = Where(m, nn, h)
            }> (h0, Xt, masks)
        }"""
    )
    calls = [
        {"X": RNG.normal(size=(rows, 5, 3)).astype(np.float32), "mask": RNG.integers(0, 2, (rows, 5)).astype(bool)}
        for rows in (3, 1)
    ]
    model = check(proto, *calls)
    assert len(model.layers) == 1, model.layers.why_none


def steps(*, before: str = "", state: str = "h0", W: str = "W", R: str = "R", after: str = "n{} = Tanh(s{})") -> str:
    """Return three steps in a row."""
    text, h = before, state
    for k in range(3):
        text += f" t{k} = Constant <value = int64 {{{k}}}> () x{k} = Gather <axis = 0> (X, t{k})"
        text += f" a{k} = MatMul(x{k}, {W}) q{k} = MatMul({h}, {R}) s{k} = Add(a{k}, q{k}) "
        text, h = text + after.replace("{}", str(k)), f"n{k}"
    return text


def scanned(body: str, inputs: str, states: str = "h0", state: str = "", h: str = "N, 4", y: str = "N, 4") -> str:
    """Return a Scan over X, and after it over `inputs`."""
    new = ", int64 kn" if state else ""
    return f"""h_last, {"k_last, " if state else ""}Y = Scan <num_scan_inputs = 1,
        body = step (float[{h}] h_in {state}, float[N, 3] x) => (float[{h}] h_out {new}, float[{y}] y) {{ {body} }}>
        ({states}, {inputs})"""


# Graphs with the shapes of their inputs in each call.
LOOKALIKES: dict[str, tuple[str, list[dict[str, tuple[int, ...]]]]] = {
    "state that is a part of an activation": (
        "(float[3, N, 3] X, float[N, 4] h0) => (float[N, 4] n2, float[N, 4] g2) <int64[2] sizes = {4, 4}> {"
        + steps(W="wide_W", R="wide_R", after="u{} = Tanh(s{}) n{}, g{} = Split <axis = 1> (u{}, sizes)")
        + "}",
        [{"X": (3, rows, 3), "h0": (rows, 4)} for rows in (2, 1)],
    ),
    "input that is repeated": (
        f"""(float[1, N, 3] X, float[N, 4] h0) => (float[N, 4] h_last) <bool yes = {{1}}, int64 trips = {{5}}> {{
            Xs = Add(X, zeros) h_last = Loop(trips, yes, h0) <body = step (int64 i, bool c, float[N, 4] h)
                => (bool go, float[N, 4] hn) {{ x = Gather <axis = 0> (Xs, i) {STEP} go = Identity(c) }}> }}""",
        [{"X": (1, rows, 3), "h0": (rows, 4)} for rows in (2, 1)],
    ),
    "state with rows first": (
        "(float[T, N, 3] X, float[N, 1, 4] h0) => (float[N, 1, 4] h_last, float[T, N, 4] Y) <int64[1] one = {1}> {"
        + scanned(f"h = Squeeze(h_in, one) {STEP} h_out = Unsqueeze(hn, one) y = Identity(hn)", "X", h="N, 1, 4")
        + "}",
        [{"X": (5, rows, 3), "h0": (rows, 1, 4)} for rows in (2, 1)],
    ),
    "counter of a Scan over another input": (
        """(float[T, N, 3] X, float[U, N, 3] Z, float[N, 4] h0) => (float[N, 4] h_last, float[U, N, 4] Y)
        <int64 zero = {0}, int64 one = {1}> {"""
        + scanned(
            f"h = Identity(h_in) xk = Gather <axis = 0> (X, k) {STEP.replace('x,', 'xk,')} kn = Add(k, one)"
            "h_out = Identity(hn) y = Identity(hn)",
            "Z",
            "h0, zero",
            ", int64 k",
        )
        + "}",
        [{"X": (5, 2, 3), "Z": (count, 2, 3), "h0": (2, 4)} for count in (5, 3)],
    ),
    "iteration number that is a vector": (
        f"""(float[5, 1, 3] X, float[1, 4] h0) => (float[] h_last) <bool yes = {{1}}, int64 trips = {{5}}> {{
            h_last = Loop(trips, yes, h0) <body = step (int64[1] i, bool c, float[] h) => (bool go, float[] hn)
                {{ x = Gather <axis = 0> (X, i) {STEP} go = Identity(c) }}> }}""",
        [{"X": (5, 1, 3), "h0": (1, 4)}],
    ),
    "Scan over the last axis": (
        f"""(float[4, 3, 5] X, float[4, 4] h0) => (float[4, 4] h_last, float[5, 4, 4] Y) {{
            h_last, Y = Scan <num_scan_inputs = 1, scan_input_axes = [2], body = step (float[4, 4] h, float[4, 3] x)
                => (float[4, 4] hn, float[4, 4] y) {{ {STEP} y = Identity(hn) }}> (h0, X) }}""",
        [{"X": (4, 3, 5), "h0": (4, 4)}],
    ),
    "condition with more axes": (
        "(float[T, N, 3] X, float[N, 4] h0) => (float[N, 4] h_last, float[] Y) <bool[1, 1, 1] yes = {1}> {"
        + scanned(f"h = Identity(h_in) {STEP} h_out = Identity(hn) y = Where(yes, hn, h)", "X", y="a, N, 4")
        + "}",
        [{"X": (5, 2, 3), "h0": (2, 4)}],
    ),
    "state with the name of a value in another branch": (
        """(float[3, N, 3] X, float[1, 4] h0, bool c) => (float[] y) {
            y = If(c) <then_branch = a () => (float[] y0) { v = com.microsoft.Gelu(h0)"""
        + steps(state="v")
        + """ y0 = Identity(n2) }, else_branch = b () => (float[] y1) {
            t = Constant <value = int64 {0}> () x = Gather <axis = 0> (X, t) v = MatMul(x, W) y1 = Identity(v) }> }""",
        [{"X": (3, rows, 3), "h0": (1, 4), "c": ()} for rows in (2, 1)],
    ),
    "first step outside of the branch": (
        """(float[3, N, 3] X, bool c) => (float[] y) { t = Constant <value = int64 {0}> () x = Gather <axis = 0> (X, t)
            a = MatMul(x, W) v = Tanh(a) y = If(c) <then_branch = a () => (float[] y0) {"""
        + steps(state="v")
        + " y0 = Sub(n2, v) }, else_branch = b () => (float[] y1) { y1 = Identity(v) }> }",
        [{"X": (3, rows, 3), "c": ()} for rows in (2, 1)],
    ),
    "size of a matrix of sizes": (
        """(float[3, 2, 3] X, float[2, 4] h0) => (float[2, 4] n2)
        <int64[1] four = {4}, int64[1] one = {1}, int64[1] flat = {-1}> {"""
        + steps(
            before="""sizes = Shape(h0) column = Unsqueeze(sizes, one) pair = Concat <axis = 1> (column, column)
                numbers = Reshape(pair, flat) second = Gather(numbers, one) is_four = Equal(second, four)
                other = Neg(h0) start = Where(is_four, h0, other)""",
            state="start",
        )
        + "}",
        [{"X": (3, 2, 3), "h0": (2, 4)}],
    ),
}


@each_row("name", LOOKALIKES)
def test_lookalikes(name: str) -> None:
    text, calls = LOOKALIKES[name]
    proto = parsed(f"m {text}")
    arrays = [
        {key: RNG.normal(size=shape).astype(np.float32 if shape else bool) for key, shape in shapes.items()}
        for shapes in calls
    ]
    check(proto, *arrays)
    assert read_model(hidden_layers(proto, "model").model).outputs  # no name is defined twice
