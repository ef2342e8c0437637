"""Graphs as exporters write them without recurrent nodes: Loops of tf2onnx, steps of jax2onnx, masked steps of PyTorch.

The texts repeat exports node by node, with small sizes and names.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

I, H = 3, 4
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def parsed(text: str, kind: str, opset: int) -> onnx.ModelProto:
    """Return the model of a text; W, R and b are those of a cell of some kind."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}')
    rng, size = np.random.default_rng(3), GATES[kind] * H
    bias = (2, size) if kind == "GRU" else (size,)
    for name, shape in {"W": (I, size), "R": (H, size), "b": bias}.items():
        array = rng.uniform(-0.6, 0.6, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


TF_RNN = """p = MatMul(h, R_in) {next} x = Gather(Xt, {index}) q = MatMul(x, W_in) r = Add(q, b_in) s = Add(r, p)
    y = Tanh(s) new = Identity(y)"""
TF_GRU = """two0, two1 = Split<axis = 0>(b_in) p = MatMul(h, R_in) {next} x = Gather(Xt, {index}) q = MatMul(x, W_in)
    b0 = Squeeze(two0, first) r = Add(q, b0) xz, xr, xn = Split<axis = -1>(r) b1 = Squeeze(two1, first)
    s = Add(p, b1) hn = Slice(s, from2, all2, axes2) hr = Slice(s, from1, to2, axes2) hz = Slice(s, from0, to1, axes2)
    z0 = Add(xz, hz) z = Sigmoid(z0) r0 = Add(xr, hr) rr = Sigmoid(r0) n0 = Mul(rr, hn) n1 = Add(xn, n0) n = Tanh(n1)
    kept = Mul(z, h) rest = Sub(one_f, z) come = Mul(rest, n) y = Add(kept, come) new = Identity(y)"""
# Keras 2: reset_after=False, a linear candidate, and hard sigmoids as limits.
TF_GRU_BEFORE = """R_zr = Slice(R_in, from0, to2, axes2) R_n = Slice(R_in, from2, all2, axes2) p = MatMul(h, R_zr)
    {next} x = Gather(Xt, {index}) q = MatMul(x, W_in) two0, two1 = Split<axis = 0>(b_in) b0 = Squeeze(two0, first)
    r = Add(q, b0) xz, xr, xn = Split<axis = -1>(r) hz, hr = Split<axis = -1>(p)
    fifth = Constant<value = float {{0.2}}>() half = Constant<value = float {{0.5}}>()
    z0 = Add(xz, hz) z1 = Mul(z0, fifth) z2 = Add(z1, half) z3 = Min(z2, one_f) z = Max(z3, none)
    r0 = Add(xr, hr) r1 = Mul(r0, fifth) r2 = Add(r1, half) rr = Clip(r2, none, one_f)
    n0 = Mul(rr, h) n1 = MatMul(n0, R_n) n = Add(xn, n1)
    kept = Mul(z, h) rest = Sub(one_f, z) come = Mul(rest, n) y = Add(kept, come) new = Identity(y)"""
TF_CELLS = {"RNN": TF_RNN, "GRU": TF_GRU, "GRU before": TF_GRU_BEFORE}

# Parts of a Loop that tf2onnx writes, for a fixed number of steps and, in `OPEN`, for an open one.
LOOP = {
    "T": "5",
    "before": "at_first = Less(none, steps_f)",
    "trips": "trips",
    "start": "start",
    "counter": "int32",
    "next": "k_next = Add(k, one)",
    "index": "k",
    "limits": "",
    "below_i": "i_f = Cast<to = 1>(i) first_below = Less(i_f, steps_f)",
    "below_k": "k_f = Cast<to = 1>(k_next) below = Less(k_f, steps_f)",
    "go": "go = And(first_below, below)",
    "one": "int32 one = {1}, int32 start = {0}",
    "steps": "5",
    "h0": "h0 = Expand(none, target)",
}
OPEN = LOOP | {
    "T": "T",
    "before": """sizes = Shape(Xt) sizes_32 = Cast<to = 6>(sizes) size = Slice(sizes_32, first, second, first)
        steps = Squeeze(size, first) steps_open = Cast<to = 1>(steps) at_first = Less(none, steps_open)
        count = Cast<to = 7>(steps)""",
    "trips": "count",
    "limits": "steps",
    "below_i": """i_f = Cast<to = 1>(i) limit_i = Cast<to = 1>(steps) first_below = Less(i_f, limit_i)""",
    "below_k": """k_f = Cast<to = 1>(k_next) limit_k = Cast<to = 1>(steps_in) below = Less(k_f, limit_k)""",
}
# A Loop without a number of iterations, which its condition ends.
ENDLESS = {"trips": "", "go": "go = Identity(below)"}
# A Loop with the largest number of iterations, which its condition ends, and the zeros that Keras 2 starts from.
LARGEST = {
    "trips": "most",
    "h0": """zeros = ConstantOfShape(shape) total = ReduceSum<keepdims = 0>(zeros, later)
        column = Unsqueeze(total, second) h0 = Tile(column, widths)""",
}


def tf2onnx(kind: str, parts: Mapping[str, str] = LOOP) -> onnx.ModelProto:
    """Return a Loop over the steps of X [N, T, I]."""
    cell = TF_CELLS[kind].format(**parts)
    steps = {"in": ", int32 steps_in", "out": ", int32 steps_out", "same": "steps_out = Identity(steps_in)"}
    steps = steps if parts["limits"] else dict.fromkeys(steps, "")
    after = ", steps" if parts["limits"] else ""
    text = f"""m (float[N, {parts["T"]}, {I}] X, float[B, 4, {I}] Z) => (float[N, {H}] last, float[a, N, {H}] Y)
    <int64 trips = {{{parts["steps"]}}}, float none = {{0}}, float steps_f = {{{parts["steps"]}}}, float one_f = {{1}},
     int32[1] size_32 = {{{H}}}, int64[1] first = {{0}}, int64[1] second = {{1}}, int64[2] from0 = {{0, 0}},
     int64[2] from1 = {{0, {H}}}, int64[2] from2 = {{0, {2 * H}}}, int64[2] to1 = {{2147483647, {H}}},
     int64[2] to2 = {{2147483647, {2 * H}}}, int64[2] all2 = {{2147483647, 2147483647}}, int64[2] axes2 = {{0, 1}},
     int64 most = {{9223372036854775807}}, int64[2] later = {{1, 2}}, int64[2] widths = {{1, {H}}}, {parts["one"]}> {{
        Xt = Transpose<perm = [1, 0, 2]>(X)
        {parts["before"]}
        again = And(at_first, at_first)
        shape = Shape(X) shape_32 = Cast<to = 6>(shape) rows = Slice(shape_32, first, second, first)
        packed = Concat<axis = 0>(rows, size_32) target = Cast<to = 7>(packed) {parts["h0"]}
        k_last, last {", steps_last" if after else ""}, W_last, b_last, R_last, Y =
            Loop({parts["trips"] or "trips"}, again, {parts["start"]}, h0 {after}, W, b, R) <body = step
            (int64 i, bool c, {parts["counter"]} k, float[m, {H}] h {steps["in"]}, float[u, v] W_in, float[] b_in,
             float[u, v] R_in)
            => (bool go, {parts["counter"]} k_next, float[m, {H}] new {steps["out"]}, float[u, v] W_out, float[] b_out,
                float[u, v] R_out, float[m, {H}] y) {{
                {cell} {parts["below_i"]} {parts["below_k"]} {parts["go"]} {steps["same"]}
                W_out = Identity(W_in) b_out = Identity(b_in) R_out = Identity(R_in) }}>
    }}"""
    model = parsed(text, kind.split(maxsplit=1)[0], 15)
    if not parts["trips"]:
        next(node for node in model.graph.node if node.op_type == "Loop").input[0] = ""
    return model


def tf2onnx_lstm(T: int = 5) -> onnx.ModelProto:
    """Return a Loop over the steps of X [1, T, I], whose Gemm adds h R as a row."""
    text = f"""m (float[1, {T}, {I}] X) => (float[1, {H}] last, float[{T}, 1, {H}] Y)
    <int64 trips = {{{T}}}, float steps_f = {{{T}}}, bool yes = {{1}}, int32 one = {{1}}, int32 start = {{0}}> {{
        Xt = Transpose<perm = [1, 0, 2]>(X) size = Constant<value = int64[2] {{1, {H}}}>() h0 = ConstantOfShape(size)
        k_last, last, c_last, Y = Loop(trips, yes, start, h0, h0) <body = step
            (int64 i, bool c, int32 k, float[m, {H}] h0_in, float[m, {H}] c0)
            => (bool go, int32 k_next, float[m, {H}] h1, float[m, {H}] c1, float[m, {H}] y) {{
                k_next = Add(k, one) k_f = Cast<to = 1>(k_next) go = Less(k_f, steps_f) x = Gather(Xt, k)
                p = MatMul(h0_in, R) row = Squeeze(p) s0 = Gemm(x, W, row) g0 = Add(s0, b)
                {_lstm(0).replace(", num_outputs = 4", "")} y = Identity(h1) }}>
    }}"""
    return parsed(text, "LSTM", 15)


def jax(kind: str, T: int = 4, *, other: str = "") -> onnx.ModelProto:
    """Return T steps of X [N, T, I], whose slices end at the size of the slice before; `other` replaces one size."""
    text = f"""m (float[N, {T}, {I}] X, float[N, {I}] Z) => (float[N, {H}] h{T})
    <int64[1] first = {{0}}, int64[1] second = {{1}}, int64[3] axes = {{0, 1, 2}}, int64[3] strides = {{1, 1, 1}},
     int64[1] size_h = {{{H}}}, int64[1] size_x = {{{I}}}, float zero = {{0}}> {{
        shape = Shape(X) rows = Gather<axis = 0>(shape, first) target = Concat<axis = 0>(rows, size_h)
        h0 = Expand(zero, target) c0 = Identity(h0) Xt = Transpose<perm = [1, 0, 2]>(X)"""
    for t in range(T):
        source = other if other and t == 2 else f"x{t - 1}" if t else "Xt"
        text += f"""
        shape{t} = Shape({source}) row{t} = Gather<axis = 0>(shape{t}, {"first" if t else "second"})
        from{t} = Constant<value = int64[3] {{{t}, 0, 0}}>() next{t} = Constant<value = int64[1] {{{t + 1}}}>()
        to{t} = Concat<axis = 0>(next{t}, row{t}, size_x) cut{t} = Slice(Xt, from{t}, to{t}, axes, strides)
        x{t} = Squeeze(cut{t}, first)"""
    for t in range(T):
        text += f""" a{t} = MatMul(x{t}, W) q{t} = MatMul(h{t}, R)
        s{t} = Add(a{t}, q{t}) g{t} = Add(s{t}, b)"""
        text += f" h{t + 1} = Tanh(g{t})" if kind == "RNN" else _lstm(t)
    return parsed(text + "}", kind, 21)


def _lstm(t: int) -> str:
    return f""" i{t}, f{t}, n{t}, o{t} = Split<axis = 1, num_outputs = 4>(g{t})
        si{t} = Sigmoid(i{t}) sf{t} = Sigmoid(f{t}) kept{t} = Mul(sf{t}, c{t})
        tn{t} = Tanh(n{t}) come{t} = Mul(si{t}, tn{t}) c{t + 1} = Add(kept{t}, come{t})
        so{t} = Sigmoid(o{t}) tc{t} = Tanh(c{t + 1}) h{t + 1} = Mul(so{t}, tc{t})"""


def torch(T: int = 4) -> onnx.ModelProto:
    """Return T steps of an LSTM over X [N, T, I], whose gates are slices of computed widths."""
    text = f"""m (float[N, {T}, {I}] X) => (float[N, {H}] h{T})
    <int64[1] first = {{0}}, int64[1] second = {{1}}, int64 place = {{0}}, int64[1] size_h = {{{H}}},
     int64[1] three = {{3}}, int64[1] k1 = {{1}}, int64[1] k2 = {{2}}, int64[1] k3 = {{3}}, int64[1] k4 = {{4}}> {{
        shape = Shape(X) size = Gather<axis = 0>(shape, place) rows = Unsqueeze(size, first)
        target = Concat<axis = 0>(rows, size_h) h0 = ConstantOfShape(target) c0 = Cast<to = 1>(h0)
        Xt = Transpose<perm = [1, 0, 2]>(X) a = MatMul(Xt, W) q = Add(a, b)"""
    for t in range(T):
        text += f""" t{t} = Constant<value = int64 {{{t}}}>() x{t} = Gather<axis = 0>(q, t{t}) p{t} = MatMul(h{t}, R)
        g{t} = Add(x{t}, p{t}) shape{t} = Shape(g{t}) width{t} = Gather<axis = 0>(shape{t}, second)
        sum{t} = Add(width{t}, three) part{t} = Div(sum{t}, k4) at{t}_0 = Identity(first)"""
        for k, (gate, function) in enumerate([("i", "Sigmoid"), ("f", "Sigmoid"), ("n", "Tanh"), ("o", "Sigmoid")]):
            text += f""" at{t}_{k + 1} = Mul(part{t}, k{k + 1})
            {gate}{t} = Slice(g{t}, at{t}_{k}, at{t}_{k + 1}, second) v{gate}{t} = {function}({gate}{t})"""
        text += f""" kept{t} = Mul(vf{t}, c{t}) come{t} = Mul(vi{t}, vn{t}) c{t + 1} = Add(kept{t}, come{t})
        tc{t} = Tanh(c{t + 1}) h{t + 1} = Mul(vo{t}, tc{t})"""
    return parsed(text + "}", "LSTM", 20)


def torch_masked(T: int = 4) -> onnx.ModelProto:
    """Return T steps of an LSTM over X [N, T, I] that keep their states in rows of zeros."""
    names = ", ".join(f"x{t}" for t in range(T)), ", ".join(f"m{t}" for t in range(T))
    ones = ", ".join("1" for _ in range(T))
    text = f"""m (float[N, {T}, {I}] X) => (float[N, {H}] h{T})
    <int64[1] first = {{0}}, int64 place = {{0}}, int64[1] last = {{-1}}, int64[{T}] ones = {{{ones}}},
     float zero = {{0}}, int64 none = {{0}}, int64[1] size_h = {{{H}}}> {{
        same = Equal(X, zero) differs = Not(same) number = Cast<to = 7>(differs)
        total = ReduceSum<keepdims = 0>(number, last) counts = Greater(total, none) column = Unsqueeze(counts, last)
        mask = Transpose<perm = [1, 0, 2]>(column) shape = Shape(X) size = Gather<axis = 0>(shape, place)
        rows = Unsqueeze(size, first) target = Concat<axis = 0>(rows, size_h) h0 = ConstantOfShape(target)
        c0 = Identity(h0) Xt = Transpose<perm = [1, 0, 2]>(X) {names[0]} = Split<axis = 0>(Xt, ones)
        {names[1]} = Split<axis = 0>(mask, ones)"""
    for t in range(T):
        text += f""" row{t} = Squeeze(x{t}, first) a{t} = MatMul(row{t}, W) q{t} = MatMul(h{t}, R)
        s{t} = Add(a{t}, q{t}) g{t} = Add(s{t}, b)"""
        text += _lstm(t).replace(f"c{t + 1}", f"cell{t}").replace(f"h{t + 1}", f"hidden{t}")
        text += f""" take{t} = Squeeze(m{t}, first) h{t + 1} = Where(take{t}, hidden{t}, h{t})
        c{t + 1} = Where(take{t}, cell{t}, c{t})"""
    return parsed(text + "}", "LSTM", 20)


def torch_one_step() -> onnx.ModelProto:
    """Return the one step that PyTorch exports of a layer over an open number of steps."""
    text = f"""m (float[N, T, {I}] X) => (float[N, 1, {H}] Y)
    <int64[1] first = {{0}}, int64 place = {{0}}, int64[1] size_h = {{{H}}}> {{
        shape = Shape(X) size = Gather<axis = 0>(shape, place) rows = Unsqueeze(size, first)
        target = Concat<axis = 0>(rows, size_h) zeros = ConstantOfShape(target) h = Cast<to = 1>(zeros)
        Xt = Transpose<perm = [1, 0, 2]>(X) a = MatMul(Xt, W) q = Add(a, b) x = Gather<axis = 0>(q, place)
        p = MatMul(h, R) s = Add(x, p) y = Tanh(s) row = Unsqueeze(y, first) joined = Concat<axis = 0>(row)
        Y = Transpose<perm = [1, 0, 2]>(joined) }}"""
    return parsed(text, "RNN", 20)
