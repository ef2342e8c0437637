"""Small ONNX graphs for the tests of batches of `pyrnnx.score`, and what their items may share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from pyrnnx.testing.numbers import Array

onnx = pytest.importorskip("onnx")

SIZE, HIDDEN = 5, 3
PADDED, EQUAL, ALONE = "items of like length, padded", "items of equal length", "one item at a time"
RNG, WEIGHTS_RNG = np.random.default_rng(5), np.random.default_rng(6)
# All maxima of the layer over the first item are above 0, so that zeros of padding would not show. Of others all values
# are below zero, or beyond the first's: what padding, or other rows, would change.
ITEMS = [3 * np.random.default_rng(0).normal(size=(4, SIZE)).astype(np.float32)]
ITEMS += [RNG.normal(size=(length, SIZE)).astype(np.float32) for length in (7, 2, 7, 1)]
ITEMS += [-np.abs(RNG.normal(size=(length, SIZE))).astype(np.float32) - 1 for length in (3, 7, 5)]
ITEMS += [50 * ITEMS[1]]


def _weights(*shape: int) -> Array:
    return WEIGHTS_RNG.uniform(-0.7, 0.7, shape).astype(np.float32)


WEIGHTS = {
    "W": _weights(1, 4 * HIDDEN, SIZE),
    "R": _weights(1, 4 * HIDDEN, HIDDEN),
    "B": _weights(1, 8 * HIDDEN),
    "W2": _weights(2, 4 * HIDDEN, SIZE),
    "R2": _weights(2, 4 * HIDDEN, HIDDEN),
    "M": _weights(SIZE, 4),
    "M3": _weights(HIDDEN, 4),
    "bias": _weights(SIZE),
    "C": _weights(4, SIZE, 3),
    "C1": _weights(4, SIZE, 1),
}
INTEGERS = {"zero": 0, "one": 1, "two": 2, "minus_one": -1, "end": 2**31 - 1}


class Graph(NamedTuple):
    """Nodes from X to Z, X [T, N, 5] unless `axes` says otherwise; what of them shares a call, and a word of why."""

    nodes: str
    batching: str
    word: str = ""
    axes: str = "TNI"


LSTM = "Y, Y_h, Y_c = LSTM <hidden_size = 3> (X, W, R, B, lens)"
BOTH = 'Y, Y_h = LSTM <hidden_size = 3, direction = "bidirectional"> (X, W2, R2, "", lens)'
FREE = "Y, Y_h = LSTM <hidden_size = 3> (X, W, R, B)"
CHANGED = LSTM.replace("lens", "K")
TO_ROWS = "P = Transpose <perm = [0, 2, 1, 3]> (Y)  S = Reshape (P, joined)"  # [T, N, D * H]

GRAPHS: dict[str, Graph] = {
    # Recurrent nodes.
    "Y": Graph(f"{LSTM} Z = Identity (Y)", PADDED),
    "last states": Graph(f"{LSTM} Z = Identity (Y_c)", PADDED),
    "both directions": Graph(f"{BOTH} Z = Concat <axis = 2> (Y_h, Y_h)", PADDED),
    "lengths cast": Graph(f"L = Cast <to = 7> (lens) K = Cast <to = 6> (L) {CHANGED} Z = Tanh (Y)", PADDED),
    "no lengths": Graph(f"{FREE} Z = Identity (Y_h)", EQUAL, "runs over the padding"),
    "reverse without lengths": Graph(
        'Z = LSTM <hidden_size = 3, direction = "reverse"> (X, W, R, B)', EQUAL, "runs over the padding"
    ),
    "lengths minus one": Graph(f"K = Sub (lens, one32) {CHANGED} Z = Identity (Y_h)", EQUAL, "runs over"),
    "states from X": Graph(
        "F = Slice (X, zero, one, zero) G = Slice (F, zero, three, two) "
        "Z = LSTM <hidden_size = 3> (X, W, R, B, lens, G, G)",
        EQUAL,
        "Slice",
    ),
    "states of zeros": Graph(
        "S = Shape (X) n = Gather (S, one) d = Concat <axis = 0> (one, n, three) H = Expand (fzero, d) "
        "Z = LSTM <hidden_size = 3> (X, W, R, B, lens, H, H)",
        PADDED,
    ),
    "rows as time steps": Graph("Z = LSTM <hidden_size = 3, layout = 1> (X, W, R, B)", ALONE, "combines rows"),
    "batch first": Graph(
        "A = Transpose <perm = [1, 0, 2]> (X) Y = LSTM <hidden_size = 3> (A, W, R, B, lens) "
        "Z = Transpose <perm = [2, 0, 1, 3]> (Y)",
        PADDED,
        axes="NTI",
    ),
    # Reductions over time.
    "maximum behind lengths": Graph(f"{LSTM} Z = ReduceMax <axes = [0], keepdims = 0> (Y)", EQUAL, "ReduceMax 'Z'"),
    "mean behind lengths": Graph(f"{LSTM} Z = ReduceMean <axes = [0], keepdims = 0> (Y)", EQUAL, "ReduceMean 'Z'"),
    "sum behind lengths": Graph(f"{LSTM} Z = ReduceSum <keepdims = 0> (Y, zero)", PADDED),
    "sum behind a product": Graph(
        f"{LSTM} A = Mul (Y, half) T1 = Tanh (A) Z = ReduceSum <keepdims = 0> (T1, zero)", PADDED
    ),
    "sum behind a quotient by zero": Graph(
        f"{LSTM} A = Div (Y, fzero) B1 = Abs (A) C2 = Clip (B1, fzero, half) Z = ReduceSum <keepdims = 0> (C2, zero)",
        EQUAL,
        "Reduce",
    ),
    "sum behind zero times infinity": Graph(
        f"{LSTM} E = Div (half, Y) A = Mul (Y, E) Z = ReduceSum <keepdims = 0> (A, zero)", EQUAL, "ReduceSum"
    ),
    "sum behind a bias": Graph(f"{LSTM} A = Add (Y, half) Z = ReduceSum <keepdims = 0> (A, zero)", EQUAL, "ReduceSum"),
    "sum behind joined axes": Graph(f"{LSTM} {TO_ROWS} Z = ReduceSum <keepdims = 0> (S, zero)", PADDED),
    "sum of X": Graph("Z = ReduceSum <keepdims = 0> (X, zero)", PADDED),
    "mean by the number of steps": Graph(
        f"{LSTM} A = ReduceSum <keepdims = 0> (Y, zero) "
        "S = Shape (X) n = Gather (S, zero) f = Cast <to = 1> (n) Z = Div (A, f)",
        EQUAL,
        "number of time steps",
    ),
    "maximum of features": Graph("Z = ReduceMax <axes = [2]> (X)", PADDED),
    "softmax over time": Graph("Z = Softmax <axis = 0> (X)", EQUAL, "Softmax"),
    "softmax over features": Graph("Z = Softmax <axis = 2> (X)", PADDED),
    "sums of what is before": Graph("Z = CumSum (X, zero0)", PADDED),
    "sums of what is after": Graph("Z = CumSum <reverse = 1> (X, zero0)", EQUAL, "CumSum"),
    "last step": Graph(f"{FREE} Z = Gather <axis = 0> (Y, minus_one)", EQUAL, "Gather"),
    "difference of steps": Graph(
        "A = Slice (X, one, end, zero) B1 = Slice (X, zero, minus_one, zero) Z = Sub (A, B1)", ALONE, "axes"
    ),
    # Rows.
    "maximum of all rows": Graph("m = ReduceMax <axes = [1]> (X) Z = Sub (X, m)", ALONE, "ReduceMax 'm' combines rows"),
    "maximum of a batch": Graph("m = ReduceMax <keepdims = 0> (X) Z = Div (X, m)", ALONE, "'m' combines rows"),
    "rows rolled": Graph(
        "a = Slice (X, one, end, one) b = Slice (X, zero, one, one) Z = Concat <axis = 1> (a, b)", ALONE, "rows"
    ),
    "number of rows": Graph(
        "S = Shape (X) n = Gather (S, one) f = Cast <to = 1> (n) Z = Mul (X, f)", ALONE, "number of rows"
    ),
    "scrambled": Graph(
        "S = Shape (X) n = Gather (S, one) t = Gather (S, zero) d = Concat <axis = 0> (n, t, five) "
        "R1 = Reshape (X, d) "
        "A = LSTM <hidden_size = 3> (R1, W, R, B) k = Shape (A) Z = Transpose <perm = [2, 1, 0, 3]> (A)",
        ALONE,
        "Reshape",
    ),
    "rows and time steps joined": Graph(
        "S = Shape (X) t = Gather (S, zero) n = Gather (S, one) F = Reshape (X, flat) G = Gemm (F, M) "
        "d = Concat <axis = 0> (t, n, four) Z = Reshape (G, d)",
        PADDED,
    ),
    "an unknown operator": Graph("v, i = TopK <axis = 2> (X, two) Z = Identity (v)", ALONE, "TopK 'v' is not known"),
    "one scale for all": Graph(
        "q, s, z = DynamicQuantizeLinear (X) Z = DequantizeLinear (q, s, z)", ALONE, "DynamicQuantizeLinear"
    ),
    "a product with itself": Graph(
        "A = Transpose <perm = [1, 0, 2]> (X) B1 = Transpose <perm = [1, 2, 0]> (X) "
        "C2 = MatMul (A, B1) "
        "D1 = Softmax <axis = 2> (C2) Z = MatMul (D1, A)",
        EQUAL,
        "time steps",
    ),
    # Choices.
    "a choice by the rank": Graph(
        "S = Shape (X) r = Size (S) two32 = Add (one0, one0) is = Equal (r, two32) no = Not (is) Y = If (no) <"
        "then_branch = g1 () => (float t) { t = Tanh (X) }, "
        "else_branch = g2 () => (float e) { e = CumSum (X, zero0) }> "
        "Z = Identity (Y)",
        PADDED,
    ),
    "a choice by the number of rows": Graph(
        "S = Shape (X) n = Gather (S, one) is = Equal (n, one) Z = If (is) <"
        "then_branch = g1 () => (float t) { t = Tanh (X) }, else_branch = g2 () => (float e) { e = Neg (X) }>",
        ALONE,
        "computes with the number of rows",
    ),
    "a choice by the values of all rows": Graph(
        "m = ReduceMax <keepdims = 0> (X) is = Less (m, half) Z = If (is) <"
        "then_branch = g1 () => (float t) { t = Tanh (X) }, else_branch = g2 () => (float e) { e = Neg (X) }>",
        ALONE,
        "ReduceMax 'm' combines rows",
    ),
    "a choice of a branch that combines rows": Graph(
        "S = Shape (X) r = Size (S) is = Equal (r, one0) Z = If (is) <"
        "then_branch = g1 () => (float t) { t = Tanh (X) }, "
        "else_branch = g2 () => (float e) { m = ReduceMax <axes = [1]> (X) e = Sub (X, m) }>",
        ALONE,
        "ReduceMax 'm' combines rows",
    ),
    # Others.
    "normalized features": Graph("Z = LayerNormalization <axis = 2> (X, bias)", PADDED),
    "normalized sequences": Graph(
        "Z = InstanceNormalization (X, bias, bias)", EQUAL, "InstanceNormalization", axes="NIT"
    ),
    "convolution": Graph("Z = Conv <pads = [1, 1]> (X, C)", EQUAL, "Conv", axes="NIT"),
    "convolution of one step": Graph("Z = Conv (X, C1)", PADDED, axes="NIT"),
    "product": Graph("A = MatMul (X, M) B1 = Relu (A) Z = Concat <axis = 2> (B1, X)", PADDED),
}


def model_of(graph: Graph) -> Any:
    axes = ", ".join(str(SIZE) if letter == "I" else letter for letter in graph.axes)
    text = (
        f'<ir_version: 8, opset_import: ["" : 17]> m (float[{axes}] X, int32[N] lens) => (float Z) {{ {graph.nodes} }}'
    )
    model = onnx.parser.parse_model(text)
    constants: dict[str, Any] = {**WEIGHTS, **{name: np.array([value]) for name, value in INTEGERS.items()}}
    constants |= {
        "zero0": np.array(0),
        "one0": np.array(1),
        "one32": np.array([1], np.int32),
        "fzero": np.zeros((), np.float32),
    }
    constants |= {"half": np.float32(0.5), "flat": np.array([-1, SIZE]), "joined": np.array([0, 0, -1])}
    constants |= {"three": np.array([3]), "four": np.array([4]), "five": np.array([5])}
    bodies = [attribute.g for node in model.graph.node for attribute in node.attribute if attribute.HasField("g")]
    used = {name for part in (model.graph, *bodies) for node in part.node for name in node.input}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items() if name in used
    )
    if "lens" not in used:
        model.graph.node.append(onnx.helper.make_node("Identity", ["lens"], ["unused"]))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model
