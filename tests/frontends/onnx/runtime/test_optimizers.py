"""Optimizations that sessions disable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model
from rows import each_row

from pyrnnx.frontends.onnx.runtime.optimizers import APPLICABLE, OPTIMIZERS, disabled_optimizers
from pyrnnx.frontends.onnx.runtime.types import contents_of
from pyrnnx.testing.numbers import Array

onnxruntime = pytest.importorskip("onnxruntime")
NEW = {"SwiGluFusion"} if onnxruntime.__version__ < "1.32" else set()  # of ONNX Runtime 1.32
node = helper.make_node
X = np.linspace(-1, 1, 36, dtype=np.float32).reshape(1, 4, 3, 3)
W = np.linspace(-1, 1, 36, dtype=np.float32).reshape(4, 1, 3, 3)


def disabled(model: onnx.ModelProto) -> list[str]:
    return disabled_optimizers(contents_of(model.graph))


def test_models_with_float16() -> None:
    for dtype in (np.float16, np.float32):
        nodes = [node("MatMul", ["a", "a"], ["y"])]
        model = simple_model(nodes, {"x": X}, ["y"], {"a": np.ones((2, 2), dtype)})
        assert ("MatmulTransposeFusion" in disabled(model)) == (dtype is np.float16)


def session(model: onnx.ModelProto, without: list[str], **options: Any) -> Any:
    settings = onnxruntime.SessionOptions()
    for key, value in options.items():
        setattr(settings, key, value)
    return onnxruntime.InferenceSession(model.SerializeToString(), settings, disabled_optimizers=without)


def test_every_name_is_one(capfd: pytest.CaptureFixture[str]) -> None:
    """ONNX Runtime takes any name and says which optimizations it tries."""
    session(simple_model([node("Neg", ["x"], ["y"])], {"x": X}, ["y"]), [], log_severity_level=0)
    tried = set(re.findall(r"GraphTransformer (\w+) modified", capfd.readouterr().err))
    names = {*OPTIMIZERS, *(name for names in APPLICABLE.values() for name in names.split())}
    assert len(tried) > 40
    assert names - tried == NEW


K = np.ones((3, 3), np.float32)
# Nodes that an optimization finds something in.
GRAPHS: dict[str, list[onnx.NodeProto]] = {
    "Conv, Relu": [node("Conv", ["x", "w"], ["a"], group=4, pads=[1] * 4), node("Relu", ["a"], ["y"])],
    "MatMul, Add": [
        node("Reshape", ["x", "flat"], ["a"]),
        node("MatMul", ["a", "k"], ["b"]),
        node("Add", ["b", "b"], ["y"]),
    ],
    "Gelu": [
        *(node("Div", ["x", "root"], ["a"]), node("Erf", ["a"], ["b"]), node("Add", ["b", "one"], ["c"])),
        *(node("Mul", ["x", "c"], ["d"]), node("Mul", ["d", "half"], ["y"])),
    ],
    "a layer's norm": [
        *(
            node("ReduceMean", ["x"], ["a"], axes=[-1]),
            node("Sub", ["x", "a"], ["b"]),
            node("Pow", ["b", "two"], ["c"]),
        ),
        *(node("ReduceMean", ["c"], ["d"], axes=[-1]), node("Add", ["d", "small"], ["e"]), node("Sqrt", ["e"], ["f"])),
        *(node("Div", ["b", "f"], ["g"]), node("Mul", ["g", "row"], ["h"]), node("Add", ["h", "row"], ["y"])),
    ],
    "x * sigmoid(x)": [node("Sigmoid", ["x"], ["a"]), node("Mul", ["x", "a"], ["y"])],
    "Gather": [node("Gather", ["x", "index"], ["a"], axis=3), node("Neg", ["a"], ["y"])],
    "Range, Gather": [
        *(node("Range", ["first", "last", "first"], ["a"]), node("Gather", ["x", "a"], ["b"], axis=3)),
        node("Neg", ["b"], ["y"]),
    ],
    "Transpose, MatMul": [node("Transpose", ["x"], ["a"], perm=[0, 1, 3, 2]), node("MatMul", ["a", "x"], ["y"])],
    "codes": [
        *(node("QuantizeLinear", ["x", "half"], ["a"]), node("DequantizeLinear", ["a", "half"], ["b"])),
        *(node("QuantizeLinear", ["b", "half"], ["c"]), node("DequantizeLinear", ["c", "half"], ["y"])),
    ],
}
CONSTANTS: dict[str, Array] = {
    **{"w": W, "k": K, "flat": np.array([-1, 3]), "row": K[0], "index": np.array([1])},
    **{key: np.array(value, np.float32) for key, value in (("root", 2**0.5), ("one", 1), ("half", 0.5), ("two", 2))},
    **{"small": np.array(1e-5, np.float32), "first": np.array(1), "last": np.array(3)},
}


@each_row("name", GRAPHS)
def test_only_what_finds_nothing(name: str, tmp_path: Path) -> None:
    used = {key for each in GRAPHS[name] for key in each.input}
    constants = {key: value for key, value in CONSTANTS.items() if key in used}
    model = simple_model(GRAPHS[name], {"x": X}, ["y"], constants, opset=17)
    rows = (names for operators, names in APPLICABLE.items() if operators)
    inapplicable = {name for names in rows for name in names.split()} & set(disabled(model)) - OPTIMIZERS.keys()
    texts = []
    for without in ([], sorted(inapplicable)):
        path = tmp_path / "optimized.onnx"
        session(model, without, optimized_model_filepath=str(path), log_severity_level=4)
        texts.append([(each.op_type, list(each.input), list(each.output)) for each in onnx.load(path).graph.node])
    assert texts[0] == texts[1]
