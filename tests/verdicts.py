"""Models that differ in one point, which a verdict must not call the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

from pyrnnx.testing.numbers import Array

I, H = 4, 5
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def model(text: str, **constants: Any) -> onnx.ModelProto:
    """Return a model whose graph is a text of onnx.parser; constants are float32 unless they are arrays."""
    graph = parser.parse_graph(f"planted {text}")
    for name, value in constants.items():
        array = value if isinstance(value, np.ndarray | np.integer) else np.array(value, "f4")
        graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def weights(cell: str, seed: int = 0) -> dict[str, Array]:
    rng, size = np.random.default_rng(seed), _GATES[cell] * H
    shapes = {"W": (1, size, I), "R": (1, size, H), "B": (1, 2 * size)}
    return {name: rng.uniform(-1, 1, shape).astype("f4") for name, shape in shapes.items()}


def one_layer(cell: str, direction: str = "forward", *, states: bool = False) -> onnx.ModelProto:
    """Return a model of one layer with sequence_lens, and initial states if they are asked for."""
    names = ("initial_h", "initial_c")[: (1 + (cell == "LSTM")) * states]
    inputs = "".join(f", float[1,N,{H}] {name}" for name in names)
    proto = model(
        f"""(float[T,N,{I}] X, int32[N] lens{inputs}) => (float[T,1,N,{H}] Y, float[1,N,{H}] Y_h) {{
            Y, Y_h = {cell}<hidden_size = {H}, direction = "{direction}">({", ".join(("X, W, R, B, lens", *names))})
        }}""",
        **weights(cell),
    )
    proto.graph.node[0].name = "layer"
    return proto


def after_gru(nodes: str, shape: str, **constants: Any) -> onnx.ModelProto:
    """Return a model of a GRU named "layer" without lengths, and nodes that compute y of its Y."""
    proto = model(
        f"(float[T,N,{I}] X) => (float[{shape}] y) {{ Y, Y_h = GRU<hidden_size = {H}>(X, W, R, B) {nodes} }}",
        **{**weights("GRU"), **constants},
    )
    proto.graph.node[0].name = "layer"
    return proto


def masked(factor: float) -> onnx.ModelProto:
    """Return a model that multiplies steps from the second on by a factor, and zeroes those beyond a row's length."""
    return model(
        """(float[T,N] X, int64[N] n) => (float[T,N] y) {
            steps = Shape<start = 0, end = 1>(X)
            T_ = Squeeze(steps)
            times = Range(zero, T_, one)
            column = Unsqueeze(times, last)
            valid = Less(column, n)
            later = Greater(column, zero)
            factors = Where(later, factor, unit)
            scaled = Mul(X, factors)
            y = Where(valid, scaled, nothing)
        }""",
        zero=np.int64(0),
        one=np.int64(1),
        last=np.array([1]),
        factor=factor,
        unit=1,
        nothing=0,
    )


def scanned(scale: float) -> onnx.ModelProto:
    """Return a model whose Scan of a cell of its own stops at each row's length."""
    return model(
        """(float[T,N] X, int32[N] n) => (float[T,N] y, float[N] last) {
            steps = Shape<start = 0, end = 1>(X)
            T_ = Squeeze(steps)
            times = Range(zero, T_, one)
            whole = Cast<to = 7>(n)
            real = Cast<to = 1>(n)
            start = Mul(real, none)
            n_last, last, y = Scan<num_scan_inputs = 2, body = body (int64[N] n_, float[N] h, int64 t, float[N] x)
                => (int64[N] n_out, float[N] h_out, float[N] y_t) {
                valid = Less(t, n_)
                decayed = Mul(h, scale)
                next = Add(decayed, x)
                h_out = Where(valid, next, h)
                n_out = Identity(n_)
                y_t = Identity(h_out)
            }>(whole, start, times, X)
        }""",
        zero=np.int64(0),
        one=np.int64(1),
        none=0,
        scale=scale,
    )


def near_zero(sign: float) -> onnx.ModelProto:
    """Return a model whose outputs are near 0 for every random input."""
    text = "(float[N,4] X) => (float[N,1] y) { product = MatMul(X, W) sums = Sub(product, shift) y = Sigmoid(sums) }"
    return model(text, W=np.full((4, 1), 0.1 * sign, "f4"), shift=18)


def hidden(change: float) -> onnx.ModelProto:
    """Return a model whose output hardly depends on its layer, one weight of which may be changed."""
    W = weights("GRU")["W"]
    W[0, 0, 0] += np.float32(change)
    nodes = "sum = ReduceSum<keepdims = 0>(Y) term = Mul(sum, little) y = Add(X, term)"
    return after_gru(nodes, f"T,N,{I}", W=W, little=1e-7)


def fixed(factor: float) -> onnx.ModelProto:
    """Return a model that accepts one number only, 7, as its second input."""
    return model(
        """(float[N,3] X, int64[1] number) => (float[N,3] y) {
            reshaped = Reshape<allowzero = 1>(seven, number)
            sum = ReduceSum<keepdims = 0>(reshaped)
            y = Mul(X, sum)
        }""",
        seven=np.full(7, factor, "f4"),
    )


def _table(rows: int, changed: int | None) -> Array:
    table = np.random.default_rng(0).normal(size=(rows, 3)).astype("f4")
    if changed is not None:
        table[changed] += 1
    return table


def embedding(rows: int, changed: int | None = None) -> onnx.ModelProto:
    """Return a model that looks rows up in a table, of which one row may be changed."""
    text = "(int64[N,T] ids) => (float[N,T,3] y) { y = Gather(table, ids) }"
    return model(text, table=_table(rows, changed))


def looked_up(operator: str, changed: int | None = None, rows: int = 50) -> onnx.ModelProto:
    """Return a model that looks rows up in a table, of which one row may be changed, after an operator."""
    nodes = {
        "Add": "index = Add(ids, one) y = Gather(table, index)",
        "Mod": "index = Mod(ids, rows) y = Gather(table, index)",
        "Cast": "index = Cast<to = 7>(ids) y = Gather(table, index)",
        "Transpose": "table = Transpose(turned) y = Gather(table, ids)",
    }
    table = _table(rows, changed)
    named = {"turned": table.T.copy()} if operator == "Transpose" else {"table": table}
    kind = "float" if operator == "Cast" else "int64"
    text = f"({kind}[N,T] ids) => (float[N,T,3] y) {{ {nodes[operator]} }}"
    return model(text, **named, one=np.int64(1), rows=np.int64(rows))


def dropped(factor: float, steps: int = 8) -> onnx.ModelProto:
    """Return a model that drops its first steps."""
    text = "(float[N,T,2] X) => (float[N,S,2] y) { rest = Slice(X, start, end, axis) y = Mul(rest, factor) }"
    return model(text, start=np.array([steps]), end=np.array([2**40]), axis=np.array([1]), factor=factor)


def late(factor: float, steps: int = 9) -> onnx.ModelProto:
    """Return one layer in ONNX's layout, whose steps after the first are multiplied by a factor."""
    nodes = """first = Slice(Y, start, middle)
        rest = Slice(Y, middle, end)
        product = Mul(rest, factor)
        y = Concat<axis = 0>(first, product)"""
    places = {"start": np.array([0]), "middle": np.array([steps]), "end": np.array([2**40])}
    return after_gru(nodes, f"T,1,N,{H}", **places, factor=factor)


def counted(number: int) -> onnx.ModelProto:
    """Return a model that adds a number to its whole inputs."""
    text = "(float[N,T] X) => (int64[N,T] y) { whole = Cast<to = 7>(X) y = Add(whole, number) }"
    return model(text, number=np.int64(number))


def scaled(factor: float) -> onnx.ModelProto:
    """Return a model that scales the columns of its input very differently."""
    return model("(float[N,3] X) => (float[N,3] y) { y = Mul(X, factors) }", factors=np.array([1e4, 1, factor], "f4"))


def with_state(used: bool) -> onnx.ModelProto:
    """Return one layer whose initial state has a default, which it may ignore."""
    state = ", , state" if used else ""
    return model(
        f"""(float[4,3,{I}] X, float[1,3,{H}] state) => (float[4,1,3,{H}] Y) {{
            Y = GRU<hidden_size = {H}>(X, W, R, B{state})
        }}""",
        **weights("GRU"),
        state=np.zeros((1, 3, H), "f4"),
    )


def flagged(factor: float) -> onnx.ModelProto:
    """Return a model that applies a factor if three whole inputs are all true."""
    return model(
        """(float[N] X, int64 first, int64 second, int64 third) => (float[N] y) {
            is_first = Cast<to = 9>(first)
            is_second = Cast<to = 9>(second)
            is_third = Cast<to = 9>(third)
            both = And(is_first, is_second)
            all = And(both, is_third)
            by = Where(all, factor, one)
            y = Mul(X, by)
        }""",
        factor=factor,
        one=1,
    )


def in_mode(factor: float, mode: int = 5) -> onnx.ModelProto:
    """Return a model that applies a factor except in one mode, a whole number."""
    return model(
        """(float[N] X, int64 mode) => (float[N] y) {
            difference = Sub(mode, special)
            is_other = Cast<to = 9>(difference)
            by = Where(is_other, one, factor)
            y = Mul(X, by)
        }""",
        special=np.int64(mode),
        one=1,
        factor=factor,
    )


def saturated(factor: float) -> onnx.ModelProto:
    """Return a model whose outputs are 0 and infinity."""
    text = "(float[N,9] X) => (float[N,9] y) { scaled = Mul(X, large) power = Exp(scaled) y = Mul(power, factor) }"
    return model(text, large=1e9, factor=factor)
