"""Constants of element types that nothing is computed in: weights behind a Convert, and errors elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino_irs import check, openvino, rng_of, save

from pyrnnx import UnsupportedError
from pyrnnx.frontends.openvino import read_model, to_onnx
from pyrnnx.frontends.openvino.ir.element_types import ELEMENT_TYPES

ops: Any = pytest.importorskip("openvino.opset13")
N, T, I, H = 2, 4, 3, 5
STORED = [row.name for row in ELEMENT_TYPES.values() if row.stored_only]


def stored(kind: str, shape: tuple[int, ...], seed: str = "") -> Any:
    """A constant of powers of 2 from 1/4 to 2, which every one of the types has."""
    values = 2.0 ** rng_of(kind + seed).integers(-1 if kind == "f4e2m1" else -2, 2, shape)
    return ops.constant(values.astype(np.float32), dtype=getattr(openvino.Type, kind))


@pytest.mark.parametrize("kind", STORED)
def test_weights_of_a_layer_and_of_a_product(kind: str, tmp_path: Path) -> None:
    """Powers of 2 in W and in a MatMul's matrix, each converted to f32, W then scaled."""
    X, h, c = (ops.parameter(shape, np.float32) for shape in ((N, T, I), (N, 1, H), (N, 1, H)))
    W = ops.multiply(ops.convert(stored(kind, (1, 4 * H, I)), "f32"), ops.constant(np.float32(-0.25)))
    R = ops.convert(stored(kind, (1, 4 * H, H), "R"), "f32")
    B = ops.constant(np.zeros((1, 4 * H), np.float32))
    lengths = ops.constant(np.full(N, T, np.int32))
    layer = ops.lstm_sequence(X, h, c, lengths, W, R, B, H, "forward")
    Y = ops.matmul(layer.output(0), ops.convert(stored(kind, (H, 2), "out"), "f32"), False, False)
    model = openvino.Model([ops.result(Y)], [X, h, c], "stored")
    rng = rng_of(kind)
    arrays = [rng.uniform(-1, 1, one.shape).astype(np.float32) for one in (X, h, c)]
    read = check(save(model, tmp_path), arrays)
    assert [one.op.cell for one in read.layers.values()] == ["LSTM"]


@pytest.mark.parametrize("kind", [*STORED, "nf4", "u3", "u6"])
def test_errors_name_the_layer_when_it_is_used(kind: str, tmp_path: Path) -> None:
    """Reading is none; neither is a layer beside it."""
    x = ops.parameter([3], np.float32)
    odd = ops.constant(np.ones(8, np.float32), dtype=getattr(openvino.Type, kind))
    taken = ops.gather(odd, ops.constant(np.array([0, 1, 0])), ops.constant(np.array(0)))
    y = ops.add(x, ops.convert(taken, "f32"))
    read = read_model(save(openvino.Model([ops.result(y)], [x], "odd"), tmp_path))
    for use in (lambda: read(np.zeros(3, np.float32)), lambda: to_onnx(read)):
        with pytest.raises(UnsupportedError, match=rf"\(id \d+\): .*element type '{kind}'"):
            use()


@pytest.mark.parametrize("kind", STORED)
def test_inputs_of_such_a_type_are_errors(kind: str, tmp_path: Path) -> None:
    x = ops.parameter([3], getattr(openvino.Type, kind))
    path = save(openvino.Model([ops.result(ops.convert(x, "f32"))], [x], "odd"), tmp_path)
    with pytest.raises(UnsupportedError, match=rf"Parameter .*element type '{kind}' is read of constants alone"):
        to_onnx(read_model(path))
