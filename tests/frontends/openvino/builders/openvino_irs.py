"""IRs written by the installed openvino wheel, compared with OpenVINO here and, exported, in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from peers import compile_openvino, run_onnxruntime
from whole_models import CALLS, assert_allclose, varied

from pyrnnx.frontends.openvino import Model, read_model, to_onnx

openvino = pytest.importorskip("openvino")
onnxruntime = pytest.importorskip("onnxruntime")

Array = NDArray[Any]
# float32 on every side: sums of some tens of terms in another order, vectorised functions of some units
TOLERANCE = 1e-5


def rng_of(name: str) -> np.random.Generator:
    """Random numbers that belong to a case."""
    return np.random.default_rng(crc32(name.encode()))


def save(model: Any, folder: Path, *, f16: bool = False) -> Path:
    """The .xml of an openvino.Model; constants in float16 if asked for."""
    path = folder / "model.xml"
    openvino.save_model(model, path, compress_to_fp16=f16)
    return path


def types_in(path: Path) -> set[tuple[str, str]]:
    """Types and versions of the layers of an IR."""
    from lxml import etree

    layers = etree.parse(path).getroot().findall("layers/layer")
    return {(str(layer.get("type")), str(layer.get("version"))) for layer in layers}


def run_compiled(compiled: Any, arrays: Sequence[Array]) -> list[Array]:
    """Return the results of a compiled model, in a request of its own.

    One request would read, in a later call, memory of an earlier input that is also an output.
    """
    results = compiled.create_infer_request().infer([np.array(array) for array in arrays])
    return [np.array(results[k]) for k in range(len(compiled.outputs))]


def run_exported(exported: onnx.ModelProto, arrays: Sequence[Array]) -> list[Array]:
    """Through ONNX Runtime, after onnx's checker."""
    onnx.checker.check_model(exported, full_check=True)
    return run_onnxruntime(exported, dict(zip([one.name for one in exported.graph.input], arrays, strict=True)))


def assert_same(actual: Sequence[Array], expected: Sequence[Array], tolerance: float, what: str) -> None:
    """Shapes, dtypes, and values to a tolerance relative to values above 1."""
    assert len(actual) == len(expected), what
    for k, (one, other) in enumerate(zip(actual, expected, strict=True)):
        assert one.shape == other.shape, f"{what}: output {k}"
        assert one.dtype.name == other.dtype.name, f"{what}: output {k}"
        wide, reference = one.astype(np.float64), other.astype(np.float64)
        assert_allclose(wide, reference, tolerance, tolerance, f"{what}: output {k}")


def check(
    path: Path,
    arrays: Sequence[Array],
    *,
    tolerance: float = TOLERANCE,
    expected: Sequence[Array] | None = None,
    exported: bool = True,
) -> Model:
    """Compare the results of an IR, here in several calls, and exported; by default OpenVINO's are expected."""
    model = read_model(path)
    if expected is None:
        compiled = compile_openvino(path)
        expected = run_compiled(compiled, arrays)
        names = [str(place) for place in range(len(arrays))]
        calls = [list(call.values()) for call in varied(dict(zip(names, arrays, strict=True)), permute=False)]
        for number, call in enumerate([*calls, calls[0]]):
            assert_same(list(model(*call).values()), run_compiled(compiled, call), tolerance, f"pyrnnx, call {number}")
    else:
        for number in range(CALLS):
            assert_same(list(model(*arrays).values()), expected, tolerance, f"pyrnnx, call {number}")
    proto = to_onnx(model)
    assert [one.name for one in proto.graph.input] == [info.name for info in model.inputs]
    assert [one.name for one in proto.graph.output] == [info.name for info in model.outputs]
    if exported:
        assert_same(run_exported(proto, arrays), expected, tolerance, "exported")
    else:
        onnx.checker.check_model(proto, full_check=True)
    return model


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: Any = np.float32) -> Array:
    """Floating-point numbers from -1 to 1, integers from 0 to 4."""
    if np.issubdtype(dtype, np.floating):
        return rng.uniform(-1, 1, shape).astype(dtype)
    return rng.integers(0, 2 if dtype == np.bool_ else 5, shape).astype(dtype)


def from_onnx(proto: onnx.ModelProto, folder: Path, shapes: Mapping[str, Sequence[int]] | None = None) -> Any:
    """The openvino.Model of an ONNX model; inputs reshaped (-1: dynamic) where asked for."""
    path = folder / "source.onnx"
    onnx.save(proto, path)
    model = openvino.Core().read_model(path)
    if shapes:
        model.reshape({name: openvino.PartialShape(list(shape)) for name, shape in shapes.items()})
    return model
