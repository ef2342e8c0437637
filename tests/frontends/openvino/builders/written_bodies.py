"""Graphs with bodies, or sequences, that are written as IR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.parser

from pyrnnx.testing.numbers import Array

RNG = np.random.default_rng(11)


def floats(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


@dataclass(frozen=True)
class Bodies:
    """A graph in ONNX's text format, whose constants are `c0`, `c1` and so on, and its inputs.

    `absent` lists types of layers that the IR must not have, `others` inputs of further calls, and `empty` those of
    calls without iterations, after which OpenVINO's CPU plugin returns rows of an earlier call.
    """

    text: str
    inputs: dict[str, Array]
    constants: tuple[Any, ...] = ()
    absent: tuple[str, ...] = ()
    others: tuple[dict[str, Any], ...] = ()
    empty: tuple[dict[str, Any], ...] = ()

    def model(self, opset: int = 20) -> onnx.ModelProto:
        proto: onnx.ModelProto = onnx.parser.parse_model(
            f'<ir_version: 9, opset_import: ["" : {opset}]> graph {self.text}'
        )
        proto.graph.initializer.extend(
            onnx.numpy_helper.from_array(np.asarray(array), f"c{k}") for k, array in enumerate(self.constants)
        )
        for number, node in enumerate(proto.graph.node):
            node.name = f"node{number}"
        return proto


X = floats(3, 2)
W, R = floats(1, 3, 2), floats(1, 3, 1)
SUM = "loop (int64 i, bool go, float[M,2] h) => (bool more, float[M,2] next, float[M,2] row)"
GRAPHS = {
    "choice": Bodies(
        """(float[M,2] x, bool flag) => (float[K,2] y) {
            y = If (flag) <then_branch = a () => (float[K,2] u) { t = Transpose <perm = [1, 0]> (x) s = Relu(t)
                u = Transpose(s) }, else_branch = b () => (float[K,2] v) { v = Concat <axis = 0> (x, c0) }> }""",
        {"x": X, "flag": np.array(True)}, (floats(1, 2),), others=({"flag": np.array(False)},)),
    "nested choices, two results": Bodies(
        """(float[M,2] x, float[1] z) => (float[M,2] y, float[M,2] w) {
            low = Less(z, c0) far = Greater(x, z)
            y, w = If (low) <then_branch = a () => (float[M,2] u, float[M,2] u2) { u = Exp(x) u2 = Mul(u, z) },
                else_branch = b () => (float[M,2] v, float[M,2] v2) {
                v2 = Identity(x)
                v = If (low) <then_branch = d () => (float[M,2] p) { p = Neg(x) },
                    else_branch = e () => (float[M,2] q) { r = Sub(x, z) q = Where(far, r, c1) }> }> }""",
        {"x": X, "z": np.array([0.5], np.float32)}, (np.array([0], np.float32), np.float32(9)),
        others=({"z": np.array([-0.5], np.float32)},)),
    "decided by the rank and a size": Bodies(
        """(float[M,2] x) => (float[M,2] y) {
            s = Shape(x) n = Size(s) three = Equal(n, c0) d = Gather(s, c1) two = Equal(d, c2)
            h = If (three) <then_branch = a () => (float[M] u) { u = ReduceSum(x, c1) },
                else_branch = b () => (float[M,2] v) { v = Tanh(x) }>
            y = If (two) <then_branch = f () => (float[M,2] v) { v = Exp(h) },
                else_branch = e () => (float[M] v) { v = ReduceSum(x, c1) }> }""",
        {"x": X}, (np.int64(3), np.int64(1), np.int64(2)), absent=("If",)),
    "squeezed if of size 1": Bodies(
        """(float[M,2,K] x) => (float[M,2] y) {
            s = Shape(x) d = Gather(s, c0) one = Equal(d, c1)
            h = If (one) <then_branch = a () => (float[M,2] u) { u = Squeeze(x, c0) },
                else_branch = b () => (float[M,2,K] v) { v = Identity(x) }>
            y = Tanh(h) }""",
        {"x": X[..., None]}, (np.array([2]), np.array([1])), absent=("If",)),
    "squeezed if of size 1, by nodes Constant": Bodies(
        """(float[M,2,K] x) => (float[M,2] y) {
            k = Constant <value = int64[1] {2}> () n = Constant <value = int64[1] {1}> ()
            s = Shape(x) d = Gather(s, k) one = Equal(d, n)
            h = If (one) <then_branch = a () => (float[M,2] u) {
                    axes = Constant <value = int64[1] {2}> () u = Squeeze(x, axes) },
                else_branch = b () => (float[M,2,K] v) { v = Identity(x) }>
            y = Tanh(h) }""",
        {"x": X[..., None]}, absent=("If",)),
    "counted": Bodies(
        f"""(float[M,2] x) => (float[M,2] y, float[N,M,2] rows) {{
            y, rows = Loop (c0, , x) <body = {SUM} {{
                f = Cast <to = 1> (i) t = Transpose(x) u = Transpose(t) s = Add(h, u) next = Mul(s, f)
                row = Identity(h) more = Identity(go) }}> }}""",
        {"x": X}, (np.int64(4),)),
    "counted by an input": Bodies(
        f"""(float[M,2] x, int64 n, bool on) => (float[M,2] y, float[N,M,2] rows) {{
            y, rows = Loop (n, on, x) <body = {SUM} {{
                next = Tanh(h) row = Exp(h) more = Identity(go) }}> }}""",
        {"x": X, "n": np.array(3), "on": np.array(True)},
        empty=({"n": np.array(0)}, {"n": np.array(-2)}, {"on": np.array(False)})),
    "until a condition": Bodies(
        f"""(float[M,2] x) => (float[M,2] y, float[N,M,2] rows) {{
            y, rows = Loop (c0, c1, x) <body = {SUM} {{
                next = Add(h, c2) row = Neg(next) m = ReduceMax <keepdims = 0> (next) more = Less(m, c3) }}> }}""",
        {"x": X}, (np.int64(2**63 - 1), np.array(True), np.float32(0.7), np.float32(2))),
    "without a limit": Bodies(
        """(float[M,2] x) => (float[M,2] y) {
            y = Loop (, c0, x) <body = loop (int64 i, bool go, float[M,2] h) => (bool more, float[M,2] next) {
                next = Mul(h, c1) more = Less(i, c2) }> }""",
        {"x": X}, (np.array(True), np.float32(0.7), np.int64(3))),
    "growing": Bodies(
        """(float[M,2] x) => (float[K,2] y) {
            y = Loop (c0, , x) <body = loop (int64 i, bool go, float[M,2] h) => (bool more, float[K,2] next) {
                next = Concat <axis = 0> (h, x) more = Identity(go) }> }""",
        {"x": X}, (np.int64(3),)),
    "nested": Bodies(
        """(float[M,2] x, bool flag) => (float[M,2] y) {
            a = Exp(x)
            y = Loop (c0, , x) <body = outer (int64 i, bool go, float[M,2] h) => (bool more, float[M,2] next) {
                b = Neg(h)
                next = Loop (c1, , h) <body = inner (int64 j, bool on, float[M,2] g) => (bool again, float[M,2] last) {
                    k = Add(i, j) f = Cast <to = 1> (k) p = Mul(b, f) q = Add(p, a)
                    r = If (flag) <then_branch = t () => (float[M,2] u) { u = Add(g, q) },
                        else_branch = e () => (float[M,2] v) { v = Sub(g, b) }>
                    last = Tanh(r) again = Identity(on) }>
                more = Identity(go) }> }""",
        {"x": X, "flag": np.array(True)}, (np.int64(2), np.int64(3)), others=({"flag": np.array(False)},)),
    "what no iteration changes": Bodies(
        """(float[M,2] x, float[M,2] z) => (float[M,2] y, float[M,2] same, float[2,2] w) {
            y, same, w = Loop (c0, , x, z, c1) <body =
                loop (int64 i, bool go, float[M,2] h, float[M,2] k, float[2,2] v) =>
                (bool more, float[M,2] next, float[M,2] k2, float[2,2] v) {
                p = MatMul(h, v) next = Add(p, k) k2 = Identity(k) more = Identity(go) }> }""",
        {"x": X, "z": floats(3, 2)}, (np.int64(3), floats(2, 2))),
    "rows alone": Bodies(
        """(float[M,2] x) => (float[N,2] rows) {
            rows = Loop (c0, c1) <body = loop (int64 i, bool go) => (bool more, float[2] row) {
                row = Gather(x, i) more = Identity(go) }> }""",
        {"x": X}, (np.int64(3), np.array(True))),
    "a list": Bodies(
        """(float[M,2] x) => (float[M,2] y, float[M,N,2] rows, float[N,M,2] more, int64 n) {
            empty = SequenceEmpty () none = SequenceEmpty ()
            list, y, second, more = Loop (c0, , empty, x, none) <body =
                loop (int64 i, bool go, seq(float[M,2]) l, float[M,2] h, seq(float[M,2]) k) =>
                (bool again, seq(float[M,2]) l2, float[M,2] next, seq(float[M,2]) k2, float[M,2] row) {
                next = Tanh(h) l2 = SequenceInsert(l, next) e = Exp(h) k2 = SequenceInsert(k, e)
                row = Neg(h) again = Identity(go) }>
            rows = ConcatFromSequence <axis = 1, new_axis = 1> (list) n = SequenceLength(second) }""",
        {"x": X}, (np.int64(3),)),
    "around a recurrent node": Bodies(
        """(float[T,N,2] x, float[1,N,1] h0) => (float[1,N,1] y, float[K,1,N,1] rows) {
            y, rows = Loop (c0, , h0) <body =
                loop (int64 i, bool go, float[1,N,1] h) => (bool more, float[1,N,1] next, float[1,N,1] row) {
                , next = GRU <hidden_size = 1> (x, c1, c2, , , h) row = Neg(next) more = Identity(go) }> }""",
        {"x": floats(4, 3, 2), "h0": floats(1, 3, 1)}, (np.int64(3), W, R)),
    "scanned": Bodies(
        """(float[T,N,2] x, float[N,T] z, float[N,2] h0) => (float[N,2] y, float[T,N,2] rows, float[N,T] sums) {
            y, rows, sums = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                scan_output_axes = [0, 1], scan_output_directions = [0, 1], body =
                step (float[N,2] h, float[N,2] a, float[N] b) => (float[N,2] next, float[N,2] row, float[N] sum) {
                c = Unsqueeze(b, c0) d = Add(a, c) e = Add(d, h) next = Tanh(e) row = Mul(next, c1)
                sum = ReduceSum <keepdims = 0> (next, c0) }> (h0, x, z) }""",
        {"x": floats(4, 3, 2), "z": floats(3, 4), "h0": floats(3, 2)}, (np.array([1]), np.float32(3))),
    "parts": Bodies(
        """(float[T,N,2] x, int64 k) => (float[N,2] a, float[N,2] b, float[1,N,2] d, int64 n, float[T,N,2] e) {
            rows = SplitToSequence <axis = 0, keepdims = 0> (x) whole = SplitToSequence <axis = 0> (x)
            a = SequenceAt(rows, c0) b = SequenceAt(rows, k) d = SequenceAt(whole, k) n = SequenceLength(rows)
            e = ConcatFromSequence <axis = 0> (whole) }""",
        {"x": floats(4, 3, 2), "k": np.array(2)}, (np.int64(-1),), others=({"k": np.array(-3)},)),
    "parts of several sizes": Bodies(
        """(float[N,5] x) => (float[N,K] a, float[N,L] b, float[M,5] d) {
            s = SplitToSequence <axis = 1> (x, c0) a = SequenceAt(s, c1) t = SplitToSequence <axis = 1> (x, c2)
            b = SequenceAt(t, c1) d0 = ConcatFromSequence <axis = 1> (t) d = Neg(d0) }""",
        {"x": floats(3, 5)}, ([1, 4], np.int64(1), np.int64(2))),
    "lists": Bodies(
        """(float[N,2] x, float[N,2] z) => (float[N,2] a, float[N,K,2] b, float[N,L] d, int64 n) {
            one = SequenceConstruct(x, z) e = Exp(x) two = SequenceInsert(one, e, c0) three = SequenceInsert(two, z)
            a = SequenceAt(three, c1) b = ConcatFromSequence <axis = 1, new_axis = 1> (three)
            d = ConcatFromSequence <axis = -1> (two) n = SequenceLength(three) }""",
        {"x": X, "z": floats(3, 2)}, (np.int64(1), np.int64(-2))),
    "parts in a loop": Bodies(
        """(float[T,N,2] x, float[N,2] h0) => (float[N,2] y) {
            rows = SplitToSequence <axis = 0, keepdims = 0> (x) n = SequenceLength(rows)
            y = Loop (n, , h0) <body = loop (int64 i, bool go, float[N,2] h) => (bool more, float[N,2] next) {
                a = SequenceAt(rows, i) b = Add(a, h) next = Tanh(b) more = Identity(go) }> }""",
        {"x": floats(4, 3, 2), "h0": floats(3, 2)}),
}  # fmt: skip
