"""Compressed weights, whose scales are stored in float16: computed in float32, as OpenVINO does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino_irs import check, openvino, rng_of, save
from peers import run_openvino
from rows import few_rows

from pyrnnx.frontends.openvino import read_model, to_onnx

ops: Any = pytest.importorskip("openvino.opset13")
CODES = {"i8": (-127, 128), "u8": (0, 256), "i4": (-8, 8), "u4": (0, 16), "f8e4m3": (-8, 9)}
# f16 has 11 bits: computed in it, the products below are up to 1e-3 away
EXACT = 1e-6
# else it also quantizes the other factor of such a product, at each call
NOT_QUANTIZED = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}


@dataclass(frozen=True)
class Form:
    """zero: of which type a zero point is, if there is one; moves: what is done to the weights, and back."""

    kind: str = "i8"
    zero: str = ""
    moves: Sequence[str] = ()
    scale_first: bool = False

    def __str__(self) -> str:
        return " ".join(filter(None, [self.kind, self.zero, *self.moves, "scale first" * self.scale_first]))


FORMS = (
    *(Form(kind) for kind in CODES),
    *(Form(kind, zero) for kind in ("u8", "u4") for zero in ("u8", "f16")),
    Form("i8", "", ("Reshape",)),
    Form("u8", "u8", ("Transpose",)),
    Form("u4", "f16", ("Reshape", "Transpose")),
    Form("i8", "", ("Unsqueeze", "Squeeze")),
    Form("i8", scale_first=True),
)


def compressed(form: Form, rows: int, columns: int) -> Any:
    """[rows, columns] in f32, by a scale for each row."""
    rng, moves = rng_of(str(form)), form.moves
    low, high = CODES[form.kind]
    shape: tuple[int, ...] = (rows, columns)
    if "Transpose" in moves:
        shape = shape[::-1]
    if "Reshape" in moves:
        shape = (shape[0], 2, shape[1] // 2)
    per = (shape[0], *[1] * (len(shape) - 1))
    codes = ops.constant(rng.integers(low, high, shape).astype(np.int32), dtype=getattr(openvino.Type, form.kind))
    value = ops.convert(codes, "f16")
    if form.zero:
        zero = ops.constant(rng.integers(1, 9, per).astype(np.int32), dtype=getattr(openvino.Type, form.zero))
        value = ops.subtract(value, zero if form.zero == "f16" else ops.convert(zero, "f16"))
    factors = [value, ops.constant(rng.uniform(0.001, 0.02, per).astype(np.float16))]
    value = ops.multiply(*(reversed(factors) if form.scale_first else factors))
    for one in moves:
        if one == "Reshape":
            value = ops.reshape(value, np.array([0, -1]), True)
        elif one == "Transpose":
            value = ops.transpose(value, np.array([1, 0]))
        else:
            value = getattr(ops, one.lower())(value, np.array([0]))
    return ops.convert(value, "f32")


@few_rows(
    ("form", "columns"),
    [*((form, 8) for form in FORMS[::2]), (FORMS[0], 400)],
    [*((form, 8) for form in FORMS[1::2]), *((form, 400) for form in FORMS)],
    ids=str,
)
def test_products(form: Form, columns: int, tmp_path: Path) -> None:
    """Constants that are folded, and such as remain in the graph."""
    x = ops.parameter([3, columns], np.float32)
    y = ops.matmul(x, compressed(form, 6, columns), False, True)
    path = save(openvino.Model([ops.result(y)], [x], "compressed"), tmp_path)
    given = rng_of("x").uniform(-1, 1, (3, columns)).astype(np.float32)
    compiled = openvino.Core().compile_model(path, "CPU", NOT_QUANTIZED)
    check(path, [given], tolerance=EXACT * columns / 8, expected=[np.array(compiled([given])[0])])
    exported = to_onnx(read_model(path))
    nodes = [node.op_type for node in exported.graph.node]
    assert nodes.count("Mul") <= 1, f"what is computed in f16 is left over: {nodes}"


def test_f16_that_is_not_only_stored_is_rounded(tmp_path: Path) -> None:
    """A product that is itself an output, as OpenVINO's is."""
    codes = ops.constant(np.arange(100, 105, dtype=np.int8))
    scaled = ops.multiply(ops.convert(codes, "f16"), ops.constant(np.full(5, 0.0123, np.float16)))
    x = ops.parameter([5], np.float32)
    results = [ops.result(scaled), ops.result(ops.add(x, ops.convert(scaled, "f32")))]
    path = save(openvino.Model(results, [x], "both"), tmp_path)
    given = np.zeros(5, np.float32)
    ours, theirs = list(read_model(path)(given).values()), run_openvino(path, [given])
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
