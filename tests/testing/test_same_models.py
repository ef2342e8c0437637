"""assert_same of whole models: the first output that differs, its index, and the layers that differ first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import verdicts
from layers import random_layer, random_weights
from rows import each_row
from same_messages import message

from pyrnnx import OPENVINO_SEQUENCE, ArgumentError, FormatError, Layer, Model, RecurrentOp
from pyrnnx.frontends.onnx import lstm, read_model
from pyrnnx.frontends.openvino import write_model
from pyrnnx.testing import assert_same
from pyrnnx.testing.numbers import Array

T, N, I, H = 4, 3, 4, 6
OP = RecurrentOp("GRU", H)
WEIGHTS: Any = random_weights(OP, I)


def altered(name: str, row: int) -> Any:
    copies = {key: array.copy() for key, array in WEIGHTS.items()}
    copies[name][0, row] += 0.5
    return copies


def proto(weights: Mapping[str, Array] = WEIGHTS, *, shift: float = 0.0) -> Any:
    """Return a GRU, Squeeze of Y, and an addition after it; a second output, Y_h, and integers."""
    result = verdicts.model(
        f"""(float[T,N,{I}] frames, float[1,N,{H}] h0) => (float[T,N,{H}] out, float[1,N,{H}] Y_h, int64[3] size) {{
            Y, Y_h = GRU<hidden_size = {H}>(frames, W, R, B, , h0)
            squeezed = Squeeze(Y, axis)
            out = Add(squeezed, shift)
            size = Shape(out)
        }}""",
        **weights,
        axis=np.array([1]),
        shift=shift,
    )
    result.graph.node[0].name = "gru"
    return result


@pytest.fixture(scope="module")
def model() -> Model:
    found: Model = read_model(proto())
    return found


def test_what_is_the_same(model: Model, tmp_path: Path) -> None:
    assert_same(model, model)
    assert_same(model, model, inputs={"h0": np.ones((1, N, H), "f4")})  # the others are random
    with pytest.raises(AssertionError):
        assert_same(model, read_model(proto(shift=1)), inputs={"h0": np.ones((1, N, H), "f4")})
    onnx.save(proto(), tmp_path / "model.onnx")
    write_model(model, tmp_path / "model.xml")
    assert_same(str(tmp_path / "model.onnx"), model)
    assert_same(tmp_path / "model.onnx", tmp_path / "model.xml")
    with pytest.raises(FormatError):
        assert_same(tmp_path / "model.txt", model)


def test_a_weight_in_a_layer(model: Model) -> None:
    other = read_model(proto(altered("R", 1 * H + 2)))
    told = message(model, other)
    assert "GRU 'gru' (ONNX, layout 0) and GRU 'gru' (ONNX, layout 0)" in told
    assert "R forward: r 0.5" in told
    assert "first gate apart: r_in at" in told
    inputs = {"frames": np.ones((T, N, I), "f4"), "h0": np.full((1, N, H), 0.5, "f4")}
    told = message(model, other, inputs=inputs)
    largest = np.abs(model(inputs)["out"].astype("f8") - other(inputs)["out"]).max()
    assert f"largest difference of output 'out': {largest:.3g} (relative" in told
    assert "first value apart: 'Y', largest difference" in told


def test_a_difference_outside_of_the_layers(model: Model) -> None:
    told = message(model, read_model(proto(shift=0.25)))
    assert "largest difference of output 'out': 0.25 (relative" in told
    assert "first value apart: 'out', largest difference 0.25 (relative" in told
    assert "first gate apart" not in told
    assert_same(model, read_model(proto(shift=0.25)), outputs=["Y_h", "size"])
    assert_same(model, read_model(proto(shift=0.25)), atol=0.26)


def test_models_of_two_conventions(tmp_path: Path) -> None:
    """The X of one of them is transposed before the layer, so that nobody can tell how it is arranged."""
    text = f"""(float[T,N,{I}] X, int32[N] sequence_lens, float[1,N,{H}] initial_h) => (Y, Y_h) {{
        x = Transpose<perm = [1, 0, 2]>(X)
        Y, Y_h = GRU<hidden_size = {H}>(x, W, R, B, sequence_lens, initial_h)
    }}"""
    path = write_model(random_layer(OP, I, convention=OPENVINO_SEQUENCE), tmp_path / "ir.xml")
    assert_same(path, Layer(OP, **WEIGHTS))
    with pytest.raises(ArgumentError, match=r"two conventions .*; compare the layers, or one model with a function"):
        assert_same(read_model(verdicts.model(text, **WEIGHTS)), path)


def test_a_model_and_a_layer(model: Model) -> None:
    assert_same(model, Layer(OP, **WEIGHTS))
    assert_same(Layer(OP, **WEIGHTS), model)
    assert "R forward: z" in message(model, Layer(OP, **altered("R", 0)))
    assert "R forward: z" in message(Layer(OP, **WEIGHTS), read_model(proto(altered("R", 0))))


def test_a_model_and_a_function(model: Model) -> None:
    assert_same(model, lambda frames, h0: dict(model(frames, h0)))
    assert_same(model, lambda H0, Frames: tuple(model(Frames, H0).values()))
    assert_same(lambda *arrays: dict(model(*arrays)), model)
    assert_same(model, lambda **arrays: model(arrays), inputs=_sized())

    def wrong(frames: Array, h0: Array) -> dict[str, Array]:
        results = {name: array.copy() for name, array in model(frames, h0).items()}
        results["Y_h"][0, 1, 3] = np.nan
        return results

    told = message(model, wrong)
    assert "ONNX model (a) and the function wrong (b) are not the same" in told
    assert "largest difference of output 'Y_h': inf" in told
    rows: dict[str, Any] = {
        "output 'size': int64 (3,); missing": lambda *arrays: tuple(model(*arrays).values())[:2],
        "output 'size': int64 (3,); int64 ()": lambda *arrays: [*tuple(model(*arrays).values())[:2], np.array(3)],
    }
    for words, function in rows.items():
        assert words in message(model, function)
    wrong_size = [*tuple(model(**_sized()).values())[:2], np.array([5, 3, 7])]
    assert "largest difference of output 'size': 1" in message(model, lambda *arrays: wrong_size, inputs=_sized())


def test_errors_of_a_function_are_its_own(model: Model) -> None:
    def fails(frames: Array, h0: Array) -> Any:
        raise KeyError("own")

    def fails_later(frames: Array, h0: Array) -> Any:
        calls.append(frames.shape)
        return fails(frames, h0) if len(calls) > 1 else model(frames, h0)

    def returns_more_later(frames: Array, h0: Array) -> Any:
        calls.append(frames.shape)
        return [*model(frames, h0).values(), *[np.zeros(1)] * (len(calls) > 1)]

    calls: list[Any] = []
    for function, kind, words in (
        (fails, KeyError, "own"),
        (fails_later, KeyError, "own"),
        (returns_more_later, ArgumentError, "returned 4 outputs; expected at most out, Y_h, size"),
    ):
        for pair in ((model, function), (function, model)):
            calls.clear()
            with pytest.raises(kind, match=words):
                assert_same(*pair)


def test_inputs_that_the_model_refuses_are_not_compared() -> None:
    """Ids of which the model has no row: its error is not one of the function."""
    table = read_model(verdicts.looked_up("Add"))
    with pytest.raises(ArgumentError, match="selects from 50 rows, of which 36 were compared"):
        assert_same(lambda **arrays: table(arrays), table)


def test_a_small_difference_in_a_later_call_is_found(tmp_path: Path) -> None:
    """By the tolerance of the dtype, beside an rtol: the first call alone is within it."""
    model: Model = read_model(verdicts.model("(double[N,3] x) => (double[N,3] y) { y = Identity(x) }"))
    calls: list[Any] = []

    def later(x: Array) -> Array:
        calls.append(x)
        return x + 1e-6 * (len(calls) > 1)

    told = message(model, later, rtol=1e-12)
    assert "largest difference of output 'y': 1e-06 (relative" in told
    assert len(calls) > 1


def _sized() -> dict[str, Any]:
    return {"frames": np.ones((5, 3, I), "f4"), "h0": np.ones((1, 3, H), "f4")}


def test_functions_may_write_to_what_they_are_given(model: Model) -> None:
    def through(frames: Array, h0: Array) -> Any:
        results = model(frames, h0)
        frames[:], h0[:] = np.nan, np.nan
        return results

    assert_same(through, model)
    assert_same(model, through)


REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"b": 3}, r"assert_same: b is 3; expected a layer, a model, the path of one, a stack, a module of "),
    ({"a": None}, "assert_same: a is None; expected"),
    ({"a": Layer}, "assert_same: a is the class Layer; expected"),
    ({"inputs": [1]}, r"assert_same: inputs is \[1\]; expected a mapping of arrays by name"),
    ({"inputs": {"z": 1}}, "inputs has 'z'; expected names out of frames, h0"),
    ({"outputs": ["z"]}, "outputs has 'z'; expected names out of out, Y_h, size"),
    ({"outputs": "out"}, "outputs is 'out'; expected names out of"),
    ({"outputs": []}, r"outputs is \[\]; expected names out of"),
    ({"atol": -1}, "assert_same: atol is -1; expected a finite number, 0 or above"),
    ({"rtol": float("nan")}, "assert_same: rtol is nan; expected a finite number, 0 or above"),
    ({"seed": 1.5}, "assert_same: seed is 1.5"),
    ({"b": random_layer(RecurrentOp("GRU", H + 1), I)}, "hidden_size is 6 in GRU 'gru' and 7 in GRU"),
    ({"a": lstm, "b": lstm}, "a and b are two functions; expected a layer or a model, and a function"),
    ({"b": lambda frames: frames}, "takes no h0; expected a parameter for each input"),
    ({"b": random_layer(RecurrentOp("RNN", H), I)}, "cell is GRU"),
]


@each_row(("change", "words"), REJECTED, ids=[row[-1] for row in REJECTED])
def test_what_cannot_be_compared(change: dict[str, Any], words: str, model: Model) -> None:
    arguments: dict[str, Any] = {"a": model, "b": model, **change}
    a, b = arguments.pop("a"), arguments.pop("b")
    with pytest.raises(ArgumentError, match=words) as caught:
        assert_same(a, b, **arguments)
    assert str(caught.value).startswith("assert_same: ")
