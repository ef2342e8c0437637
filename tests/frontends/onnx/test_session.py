"""Sessions of ONNX Runtime: optimizations that they run without, arrays that they copy, and options of users."""

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
from onnx_models import make_graph, simple_model
from whole_models import onnxruntime_witness

import pyrnnx
from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.session import OPTIMIZERS
from pyrnnx.testing.numbers import Array

onnxruntime = pytest.importorskip("onnxruntime")
node = helper.make_node
Sample = tuple[onnx.ModelProto, dict[str, Array]]
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (3, 4)).astype(np.float32)
CODES: dict[str, Any] = {"scale": np.array(1 / 64, np.float32), "zero": np.array(128, np.uint8)}
CODED = [node("QuantizeLinear", ["t", "scale", "zero"], ["q"]), node("DequantizeLinear", ["q", "scale", "zero"], ["d"])]
HALF = rng.integers(-4, 5, (5, 2, 6)).astype(np.float16)
FACTOR = rng.integers(-4, 5, (6, 3)).astype(np.float16)
TURNED = [node("Transpose", ["x"], ["t"], perm=[1, 0, 2]), node("MatMul", ["t", "M"], ["y"])]


def joined() -> Sample:
    """`y` must not be rounded to codes."""
    nodes = [node("Concat", ["x", "x"], ["y"], axis=0), node("Transpose", ["y"], ["t"]), *CODED]
    return simple_model(nodes, {"x": X}, ["y", "d"], CODES), {"x": X}


def captured() -> Sample:
    """A dequantized transpose that a body captures."""
    bodies: dict[str, Any] = {
        key: make_graph([node(operator, ["t2"], [key])], {}, [key])
        for key, operator in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    nodes = [
        node("Identity", ["x"], ["t"]),
        *CODED,
        node("Transpose", ["d"], ["t2"], perm=[1, 0]),
        node("If", ["c"], ["y"], **bodies),
    ]
    inputs = {"x": X, "c": np.array(True)}
    return simple_model(nodes, inputs, ["y"], CODES), inputs


def small_weights() -> Sample:
    """Weights of which one is so large that eight bits cannot hold the others."""
    W = np.full((2, 4, 3), 0.01, np.float32)
    W[0, 0, 0] = 100
    x = np.ones((1, 4, 9), np.float32)
    x[:, 0] = 0
    nodes = [
        *(node("Identity", ["x"], ["t"]), *CODED, node("Conv", ["d", "W"], ["c"])),
        *(
            node("QuantizeLinear", ["c", "scale", "zero"], ["cq"]),
            node("DequantizeLinear", ["cq", "scale", "zero"], ["y"]),
        ),
    ]
    return simple_model(nodes, {"x": x}, ["y"], {**CODES, "W": W}), {"x": x}


def half() -> Sample:
    return simple_model(TURNED, {"x": HALF}, ["y"], {"M": FACTOR}), {"x": HALF}


def half_between_casts() -> Sample:
    constant = node("Constant", [], ["M"], value=onnx.numpy_helper.from_array(FACTOR))
    nodes = [
        *(constant, node("Cast", ["w"], ["x"], to=onnx.TensorProto.FLOAT16), *TURNED),
        node("Cast", ["y"], ["z"], to=onnx.TensorProto.FLOAT),
    ]
    inputs = {"w": HALF.astype(np.float32)}
    return simple_model(nodes, inputs, ["z"]), inputs


# Models with which each optimization crashes the process or returns wrong numbers.
FAULTY: dict[str, tuple[Callable[[], Sample], ...]] = {
    "TransposeOptimizer": (joined,),
    "TransposeOptimizer_CPUExecutionProvider": (joined,),
    "QDQPropagationTransformer": (captured,),
    "WeightBiasQuantization": (small_weights,),
    "MatmulTransposeFusion": (half, half_between_casts),
}
RUN = """
import sys, numpy as np, pyrnnx
for folder in sys.argv[1:]:
    results = pyrnnx.load(folder + "/model.onnx")(dict(np.load(folder + "/inputs.npz")))
    np.savez(folder + "/results.npz", **results)
"""


def test_faulty_optimizations_are_disabled(tmp_path: Path) -> None:
    """A process of its own runs the samples, which would end it."""
    assert FAULTY.keys() == OPTIMIZERS.keys()
    samples = list(dict.fromkeys(make for row in FAULTY.values() for make in row))
    folders = [tmp_path / make.__name__ for make in samples]
    for path, make in zip(folders, samples, strict=True):
        path.mkdir()
        proto, inputs = make()
        onnx.save(proto, path / "model.onnx")
        np.savez(path / "inputs.npz", **inputs)  # type: ignore[arg-type]
    subprocess.run([sys.executable, "-c", RUN, *folders], check=True)
    for path, make in zip(folders, samples, strict=True):
        proto, inputs = make()
        expected = onnxruntime_witness(proto)(inputs)
        with np.load(path / "results.npz") as results:
            for (name, result), wanted in zip(results.items(), expected, strict=True):
                np.testing.assert_array_equal(result, wanted, err_msg=f"{make.__name__}: {name}")


# Options


def lstm_model(seed: int = 0) -> onnx.ModelProto:
    draw = np.random.default_rng(seed).standard_normal
    constants = {"W": draw((1, 80, 40)), "R": draw((1, 80, 20)), "M": draw((40, 40))}
    nodes = [
        *(node("MatMul", ["x", "M"], ["m"]), node("LSTM", ["m", "W", "R"], ["y"], hidden_size=20, name="lstm")),
        node("Neg", ["y"], ["z"]),
    ]
    arrays = {name: array.astype(np.float32) for name, array in constants.items()}
    return simple_model(nodes, {"x": np.ones((2, 1, 40), np.float32)}, ["z"], arrays)


FRAMES = rng.standard_normal((5, 3, 40)).astype(np.float32)


def test_options_for_two_models_in_turn(tmp_path: Path) -> None:
    """The operators are registered once, and arrays of one model are no arrays of the other."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    models = [pyrnnx.load(lstm_model(seed), session_options=options) for seed in range(2)]
    assert all(model.session_options is options for model in models)  # type: ignore[attr-defined]
    for _ in range(2):
        for seed, model in enumerate(models):
            expected = read_model(lstm_model(seed))(FRAMES)["z"]
            np.testing.assert_array_equal(model(FRAMES)["z"], expected)
    stream = models[0].stream()
    parts = [stream.push(FRAMES[k : k + 1])["z"] for k in range(5)]
    np.testing.assert_allclose(np.concatenate(parts), models[0](FRAMES)["z"], atol=1e-6)
    (intermediate,) = models[0](FRAMES, outputs=["m"]).values()
    np.testing.assert_allclose(intermediate, read_model(lstm_model())(FRAMES, outputs=["m"])["m"], rtol=1e-6)
    plain = onnxruntime.InferenceSession(lstm_model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(plain.run(None, {"x": FRAMES})[0], models[0](FRAMES)["z"], atol=1e-5)
    del plain
    assert len(list(tmp_path.glob("profile*"))) >= 4


# Errors


def test_what_fails_in_a_call() -> None:
    inner = make_graph([node("MatMul", ["x", "x"], ["m"], name="inner")], {}, ["m"])
    inputs = {"x": X, "c": np.array(True)}
    outer = node("If", ["c"], ["y"], name="outer", then_branch=inner, else_branch=inner)
    model = read_model(simple_model([outer], inputs, ["y"]))
    with pytest.raises(ArgumentError, match=r"^ONNX model: the call failed in ONNX Runtime: .*inner") as caught:
        model(inputs)
    assert caught.value.__cause__ is not None
    np.testing.assert_array_equal(model(np.eye(4, dtype=np.float32), np.array(True))["y"], np.eye(4))


WITHOUT = """
import sys
sys.modules["onnxruntime"] = None
import pyrnnx
from pyrnnx.testing import assert_same
model = pyrnnx.load(sys.argv[1])
print(list(model.layers))
for use in (
    lambda: model.plan,
    lambda: model(model.layers["lstm"].weights["W"]),
    lambda: pyrnnx.compare(model, model),
    lambda: assert_same(model, model),
):
    try:
        use()
    except pyrnnx.PyrnnxError as error:
        print(error)
"""


@pytest.mark.e2e
def test_without_onnxruntime(tmp_path: Path) -> None:
    """Layers of plain models can be used; calls say what is missing."""
    onnx.save(lstm_model(), tmp_path / "model.onnx")
    command = [sys.executable, "-c", WITHOUT, str(tmp_path / "model.onnx")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == "['lstm']"
    assert len(lines) == 5
    assert all('pip install "pyrnnx[onnx]"' in line for line in lines[1:])
    assert all(line.startswith("a call of a whole model needs the package onnxruntime; ") for line in lines[2:])
