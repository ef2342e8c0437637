"""Round trips, seeded: ONNX node -> IR -> ONNX, and IR by OpenVINO -> ONNX; the same numbers in every runtime."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from layers import float32, random_arrays
from onnx import TensorProto, helper, numpy_helper
from openvino_nodes import IR_NAMES, IR_OUTPUTS, Drawn, draw

from pyrnnx import OPENVINO_SEQUENCE, Layer, RecurrentOp
from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends import openvino as openvino_frontend
from pyrnnx.frontends.openvino import IRLayer, read_model, to_onnx, write_model
from pyrnnx.op import CELLS
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of
from pyrnnx.testing.onnx_models import make_node

openvino = pytest.importorskip("openvino")
operations = pytest.importorskip("openvino.opset13")
onnxruntime = pytest.importorskip("onnxruntime")

SEEDS, MORE_SEEDS = range(60), range(60, 1200)
# float32 on every side: sums of up to 30 terms in another order, up to 7 steps, functions of some units each
TOLERANCE = 1e-5


def run_onnx(model: onnx.ModelProto, inputs: dict[str, Array]) -> tuple[Array, ...]:
    """Through ONNX Runtime, after onnx's checker."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_inputs()] == list(inputs)
    return tuple(np.asarray(one) for one in session.run(None, inputs))


# ONNX -> IR -> ONNX


def model_of_node(drawn: Drawn) -> onnx.ModelProto:
    """The node, its weights and constants as initializers."""
    case, given = drawn.case, drawn.given
    node = make_node(case, drawn.arrays)
    node.attribute.append(helper.make_attribute("hidden_size", case.H))  # ONNX Runtime needs it
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in given.items()}
    graph = helper.make_graph(
        [node],
        "node",
        [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in given.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, case.shapes()[name]) for name in node.output],
        [numpy_helper.from_array(array, name) for name, array in drawn.arrays.items() if name not in given],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=10)


def check_node(drawn: Drawn, folder: Path) -> None:
    model = read_model(write_model(drawn.layer(), folder / "layer.xml"))
    inputs = drawn.ir_inputs()
    expected = drawn.expected()
    exported = to_onnx(model)
    assert_close(drawn.as_onnx(run_onnx(exported, inputs)), expected, TOLERANCE, drawn)
    assert_close(drawn.as_onnx(model(inputs)), expected, tolerance_of(float32), drawn)
    assert_close(tuple(onnx_frontend.read_model(model_of_node(drawn))(drawn.given).values()), expected, TOLERANCE)
    if not drawn.case.layout:  # which ONNX Runtime does not run
        assert_close(run_onnx(model_of_node(drawn), drawn.given), expected, TOLERANCE, drawn)
    check_layer(drawn, exported)


def check_layer(drawn: Drawn, exported: onnx.ModelProto) -> None:
    """The recurrent layer of the exported model is the node's again: operator, and weights bit for bit but for B."""
    layer = drawn.layer()
    (back,) = onnx_frontend.read_model(exported).layers.values()
    assert isinstance(back, Layer)
    assert back.op == layer.op
    for name in ("W", "R"):
        np.testing.assert_array_equal(back.weights[name], layer.weights[name])


@pytest.mark.parametrize("seed", SEEDS)
def test_node_to_ir_to_onnx(seed: int, tmp_path: Path) -> None:
    check_node(draw(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_node_to_ir_to_onnx_more(seed: int, tmp_path: Path) -> None:
    check_node(draw(seed), tmp_path)


def test_written_twice(tmp_path: Path) -> None:
    """A layer of a written model, written again, is the same file, but for what the node did not ask for."""
    drawn = next(one for one in map(draw, count()) if one.given.keys() == IR_NAMES.keys())
    first = write_model(drawn.layer(), tmp_path / "first.xml")
    (layer,) = read_model(first).layers.values()
    assert not isinstance(layer, IRLayer)
    second = write_model(layer, tmp_path / "second.xml")
    assert second.read_bytes() == first.read_bytes()
    assert second.with_suffix(".bin").read_bytes() == first.with_suffix(".bin").read_bytes()


# IR by OpenVINO -> ONNX


@dataclass(frozen=True)
class Sequences:
    """A sequence operation with inputs in port order; those at `constant` are constants, lengths as `lengths` says."""

    function: str
    attributes: dict[str, Any]
    arrays: tuple[Array, ...]
    constant: frozenset[int]
    dynamic: frozenset[str]
    compressed: bool

    @property
    def given(self) -> list[Array]:
        return [array for k, array in enumerate(self.arrays) if k not in self.constant]


def draw_ir(seed: int) -> Sequences:
    rng = np.random.default_rng(seed)
    drawn = draw(seed)
    case = drawn.case
    H, lbr = case.H, bool(case.attributes.get("linear_before_reset"))
    op = RecurrentOp(case.operator, H, case.attributes["direction"], linear_before_reset=lbr)
    lengths = {0: [case.T] * case.N, 1: [0] * case.N}.get(int(rng.integers(4)), rng.integers(0, case.T + 1, case.N))
    sizes = (case.T, case.N, case.I)
    named = random_arrays(op, sizes, convention=OPENVINO_SEQUENCE, lens=[int(k) for k in lengths], seed=seed)
    named["sequence_lengths"] = named["sequence_lengths"].astype([np.int32, np.int64][int(rng.integers(2))])
    arrays = [*named.values()]
    weights = range(len(arrays) - 3, len(arrays))
    functions = case.attributes.get("activations", CELLS[case.operator].activations)
    attributes: dict[str, Any] = {
        "hidden_size": H,
        "direction": case.attributes["direction"],
        "activations": [name.lower() for name in functions[: len(CELLS[case.operator].activations)]],
        "clip": case.attributes.get("clip", 0.0),
    }
    if case.operator == "GRU":
        attributes["linear_before_reset"] = lbr
    dynamic = frozenset(("", "T", "N", "NT")[seed // 9 % 4])
    others = range(1, 1 if "N" in dynamic else weights[0])  # a constant state fixes the batch size
    constant = frozenset(weights) | {k for k in others if rng.integers(3) == 0}
    compressed = bool(rng.integers(2))
    if compressed:  # exact in float16: a constant of one element may stay float32 when it is saved
        arrays = [a if a.dtype.kind == "i" else a.astype(np.float16).astype(np.float32) for a in arrays]
    return Sequences(
        f"{case.operator.lower()}_sequence",
        attributes,
        tuple(arrays),
        constant,
        dynamic,
        compressed,
    )


def save(drawn: Sequences, path: Path) -> Path:
    inputs, parameters = [], []
    for k, array in enumerate(drawn.arrays):
        if k in drawn.constant:
            inputs.append(operations.constant(array))
            continue
        axes = {0: "NTI", len(drawn.arrays) - 4: "N"}.get(k, "NDH")
        shape = [-1 if axis in drawn.dynamic else size for axis, size in zip(axes, array.shape, strict=True)]
        parameters.append(operations.parameter(shape, array.dtype.type, name=f"input {k}"))
        inputs.append(parameters[-1])
    node = getattr(operations, drawn.function)(*inputs, **drawn.attributes, activations_alpha=[], activations_beta=[])
    model = openvino.Model([operations.result(output) for output in node.outputs()], parameters, "drawn")
    openvino.save_model(model, path, compress_to_fp16=drawn.compressed)
    return path


def check_ir(drawn: Sequences, path: Path) -> None:
    model = read_model(save(drawn, path))
    expected = getattr(openvino_frontend, drawn.function)(*drawn.arrays, **drawn.attributes)
    inputs = dict(zip((info.name for info in model.inputs), drawn.given, strict=True))
    assert_close(tuple(model(inputs).values()), expected, tolerance_of(float32), drawn)
    assert_close(run_onnx(to_onnx(model), inputs), expected, TOLERANCE, drawn)
    if not drawn.dynamic:  # with a dynamic dimension the plugin ignores lengths
        compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        results = compiled(drawn.given)
        assert_close([results[k] for k in range(len(compiled.outputs))], expected, TOLERANCE, drawn)


@pytest.mark.parametrize("seed", SEEDS)
def test_ir_to_onnx(seed: int, tmp_path: Path) -> None:
    check_ir(draw_ir(seed), tmp_path / "model.xml")


@pytest.mark.slow
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_ir_to_onnx_more(seed: int, tmp_path: Path) -> None:
    check_ir(draw_ir(seed), tmp_path / "model.xml")


def test_seeds_reach_everything() -> None:
    """Static and dynamic dimensions, constant and given lengths, compressed or not, with every operation."""
    drawn = [draw_ir(seed) for seed in SEEDS]
    for operator in IR_OUTPUTS:
        own = [one for one in drawn if one.function == f"{operator.lower()}_sequence"]
        assert {one.dynamic for one in own} == set(map(frozenset, ("", "T", "N", "NT")))
        assert {len(one.arrays) - 4 in one.constant for one in own} == {True, False}
        assert {one.compressed for one in own} == {True, False}
        assert {one.attributes["direction"] for one in own} == {"forward", "reverse", "bidirectional"}
        assert any(one.arrays[-4].max() == 0 for one in own)
        assert any(one.arrays[-4].min() == one.arrays[0].shape[1] for one in own)
