"""Convolutions and matrix products of 8-bit values in int32: one product of bytes each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino_irs import check, save
from openvino_linear import bytes_of, ramp
from openvino_operations import Maker, const, i8, i32, ops
from real_models import MODELS, picture
from rows import each_row

from pyrnnx import UnsupportedError
from pyrnnx.frontends.onnx import read_model as read_onnx
from pyrnnx.frontends.openvino import Model, read_model, to_onnx

openvino = pytest.importorskip("openvino")
pytest.importorskip("onnxruntime")

Make = Callable[[Maker], Any]


def model_of(data: Any, weights: Any, maker: Maker, folder: Path) -> Model:
    function = ops(1).group_convolution if len(weights.shape) == 4 else ops(1).convolution
    made = function(data, weights, [2], [1], [2], [1], "explicit")
    return read_model(save(openvino.Model([made], maker.parameters, "one"), folder))


def operators(model: Model) -> Counter[str]:
    return Counter(node.op_type for node in to_onnx(model).graph.node)


# The multiplied input, and constant filters.
BYTES: dict[str, tuple[Make, Make]] = {
    "bytes": (lambda p: bytes_of(p, 2, 3, 9), ramp(-128, 127, 4, 3, 3)),
    "filters that had a zero point": (lambda p: bytes_of(p, 2, 3, 9, zero=[3]), ramp(-178, 77, 4, 3, 3)),
    "positive filters": (lambda p: bytes_of(p, 2, 3, 9, zero=200), ramp(20, 255, 4, 3, 3)),
    "filters that are zero": (lambda p: bytes_of(p, 2, 3, 9), lambda _: const(np.zeros((4, 3, 3)), i32)),
    "signed bytes": (lambda p: bytes_of(p, 2, 3, 9, dtype=i8, zero=[-3]), ramp(-9, 9, 4, 3, 3)),
    "groups": (lambda p: bytes_of(p, 2, 4, 9, zero=[[[3]]]), ramp(-99, 99, 2, 3, 2, 3)),
    "signed bytes, a constant zero point": (lambda p: bytes_of(p, 2, 3, 9, dtype=i8, zero=-3), ramp(-9, 9, 4, 3, 3)),
}
OTHERS: dict[str, tuple[Make, Make]] = {
    "filters of nine bits": (lambda p: bytes_of(p, 2, 3, 9), ramp(-255, 255, 4, 3, 3)),
    "computed filters": (lambda p: bytes_of(p, 2, 3, 9), lambda p: p(4, 3, 3, dtype=i32)),
    "a zero point of no byte": (lambda p: bytes_of(p, 2, 3, 9, zero=256), ramp(-9, 9, 4, 3, 3)),
    "a zero point for each channel": (lambda p: bytes_of(p, 2, 3, 9, zero=[[1], [2], [3]]), ramp(-9, 9, 4, 3, 3)),
    "int32": (lambda p: p(2, 3, 9, dtype=i32), ramp(-9, 9, 4, 3, 3)),
    "int8": (lambda p: p(2, 3, 9, dtype=i8), lambda _: const(np.ones((4, 3, 3)), i8)),
}


@each_row("name", BYTES)
def test_one_product_of_bytes(name: str, tmp_path: Path) -> None:
    """Sizes are open where the zero point is no input."""
    data, weights = BYTES[name]
    maker = Maker(name, dynamic=name in ("bytes", "filters that are zero"))
    model = model_of(data(maker), weights(maker), maker, tmp_path)
    assert operators(model)["ConvInteger"] == 1
    check(tmp_path / "model.xml", maker.arrays, tolerance=0)


@each_row("name", OTHERS)
def test_other_integers_are_refused(name: str, tmp_path: Path) -> None:
    data, weights = OTHERS[name]
    maker = Maker(name, dynamic=False)
    model = model_of(data(maker), weights(maker), maker, tmp_path)
    with pytest.raises(UnsupportedError, match=r"Convolution .*element type is .* values and constant filters of 8 b"):
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
