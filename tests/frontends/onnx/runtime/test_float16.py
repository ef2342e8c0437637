"""float16 in ONNX Runtime, where an optimization would crash: each model runs in its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model

from pyrnnx.testing.numbers import Array

pytest.importorskip("onnxruntime")
node = helper.make_node
rng = np.random.default_rng(0)
X = rng.integers(-4, 5, (5, 2, 6)).astype(np.float16)
M = rng.integers(-4, 5, (6, 3)).astype(np.float16)
TURN = node("Transpose", ["x"], ["t"], perm=[1, 0, 2])
LINEAR = node("MatMul", ["t", "M"], ["y"])
FLOAT16, FLOAT = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
NARROW, WIDE = node("Cast", ["w"], ["x"], to=FLOAT16), node("Cast", ["y"], ["z"], to=FLOAT)
Nodes = list[onnx.NodeProto]


def narrowed() -> tuple[Nodes, dict[str, Array], dict[str, Array], str]:
    """float32 outside, float16 between casts, its constant made by a Constant."""
    constant = node("Constant", [], ["M"], value=onnx.numpy_helper.from_array(M))
    return [constant, NARROW, TURN, LINEAR, WIDE], {"w": X.astype(np.float32)}, {}, "z"


MODELS: dict[str, Callable[[], tuple[Nodes, dict[str, Array], Any, str]]] = {
    "float16 alone": lambda: ([TURN, LINEAR], {"x": X}, {"M": M}, "y"),
    "between casts": narrowed,
}
RUN = """
import sys, numpy as np, pyrnnx
for folder in sys.argv[1:]:
    model = pyrnnx.load(folder + "/model.onnx", runtime="onnxruntime")
    (result,) = model(dict(np.load(folder + "/given.npz"))).values()
    np.save(folder + "/result.npy", result)
"""


def test_transposed_products(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(len(MODELS))]
    for folder, make in zip(folders, MODELS.values(), strict=True):
        nodes, given, constants, output = make()
        folder.mkdir()
        onnx.save(simple_model(nodes, given, [output], constants), folder / "model.onnx")
        np.savez(folder / "given.npz", **given)  # type: ignore[arg-type]
    done = subprocess.run([sys.executable, "-c", RUN, *folders], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for folder, name in zip(folders, MODELS, strict=True):
        result = np.load(folder / "result.npy")
        np.testing.assert_array_equal(result, X.swapaxes(0, 1) @ M, err_msg=name)  # small integers: exact
