"""OpenVINO as a witness of what is written: it reads ONNX nodes turned into IR, and gives the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import bfloat16, float16, float32, float64, random_arrays
from lxml import etree
from openvino_nodes import IR_NAMES, IR_OUTPUTS, Drawn, draw

from pyrnnx import OPENVINO_CELL, Layer, RecurrentOp
from pyrnnx.conventions import CANONICAL
from pyrnnx.frontends.openvino import OPERATIONS, BoundLayer, write_model
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of

openvino = pytest.importorskip("openvino")

SEEDS = 90
# float32 on both sides: sums of up to 30 terms in another order, up to 7 steps, functions of some units each; relu can
# multiply a difference from step to step
TOLERANCE = 1e-5


def run_there(path: Path, inputs: Mapping[str, Array], *, fixed: bool) -> dict[str, Array]:
    """`fixed`: with the shapes of these inputs in place of dynamic ones."""
    core = openvino.Core()
    model = core.read_model(path)
    if fixed:
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert [port.any_name for port in compiled.inputs] == [name for name in IR_NAMES.values() if name in inputs]
    results = compiled({name: _tensor(array) for name, array in inputs.items()})
    return {port.any_name: results[port] for port in compiled.outputs}


def _tensor(array: Array) -> Any:
    if array.dtype != bfloat16:
        return array
    return openvino.Tensor(np.ascontiguousarray(array).view(np.int16), list(array.shape), openvino.Type.bf16)


def check_numbers(drawn: Drawn, folder: Path) -> None:
    layer = drawn.layer()
    path = write_model(layer, folder / "layer.xml")
    inputs = drawn.ir_inputs()
    # with dynamic shapes the plugin ignores lengths (see test_openvino.py); without lengths these stay dynamic
    there = run_there(path, inputs, fixed="sequence_lens" in drawn.arrays)
    assert tuple(there) == IR_OUTPUTS[drawn.case.operator]
    here = layer(**drawn.given)
    assert_close(drawn.as_onnx(there), here, TOLERANCE, drawn)
    assert_close(here, drawn.expected(), tolerance_of(float32), drawn)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_same_numbers(seed: int, tmp_path: Path) -> None:
    check_numbers(draw(seed), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS, 1500))
def test_same_numbers_more(seed: int, tmp_path: Path) -> None:
    check_numbers(draw(seed), tmp_path)


def test_seeds_reach_everything() -> None:
    """That the seeds above have each operator, direction, layout, flag and input, given, constant and absent."""
    drawn = [draw(seed) for seed in range(SEEDS)]
    for operator in IR_OUTPUTS:
        own = [one for one in drawn if one.case.operator == operator]
        for key, values in {"direction": 3, "layout": 2, "linear_before_reset": 2 if operator == "GRU" else 1}.items():
            assert len({one.case.attributes.get(key) for one in own}) == values
        for name in IR_NAMES.keys() - ({"X"} if operator == "LSTM" else {"X", "initial_c"}):
            assert len({(name in one.arrays, name in one.constants) for one in own}) == 3
        assert len({"clip" in one.case.attributes for one in own}) == 2
        assert len({"B" in one.arrays for one in own}) == 2


DTYPES = {
    float16: 2**-9,  # both compute in float32; the sum Wb + Rb was rounded (2^-11 below 1), then the result (2^-11)
    bfloat16: 2**-6,  # the same with 2^-8
    float64: TOLERANCE,  # the plugin computes in float32
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("operator", IR_OUTPUTS)
def test_dtypes(operator: str, dtype: np.dtype[Any], tmp_path: Path) -> None:
    case = Case(f"{operator}-{dtype}", operator, {"direction": "bidirectional"}, ("B", "initial_h"), dtype=dtype.name)
    drawn = Drawn(case, make_arrays(case), frozenset())
    there = run_there(write_model(drawn.layer(), tmp_path / "layer.xml"), drawn.ir_inputs(), fixed=False)
    if dtype == bfloat16:  # NumPy has no such type: the bits come as float16
        there = {name: array.view(bfloat16) for name, array in there.items()}
    assert {array.dtype for array in there.values()} == {dtype}
    assert_close(drawn.as_onnx(there), drawn.layer()(**drawn.given), DTYPES[dtype], case)


N, I, H = 3, 4, 5


def cell_arrays(op: RecurrentOp) -> tuple[list[Array], list[Array]]:
    """Inputs and weights of one step."""
    arrays = [*random_arrays(op, (1, N, I), convention=OPENVINO_CELL).values()]
    return arrays[:-3], arrays[-3:]


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("RNNCell-1", {}),
        ("GRUCell-3", {}),
        ("GRUCell-3", {"linear_before_reset": True}),
        ("LSTMCell-4", {}),
        ("LSTMCell-1", {}),  # becomes LSTMCell-4
    ],
    ids=str,
)
@pytest.mark.parametrize("clip", [None, 0.25])
def test_cells(name: str, flags: dict[str, Any], clip: float | None, tmp_path: Path) -> None:
    operation = OPERATIONS[name]
    op = RecurrentOp(operation.cell, H, clip=clip, **flags)
    inputs, weights = cell_arrays(op)
    layer = BoundLayer(operation, op, *weights)
    named = dict(zip("XHC", inputs, strict=False))
    there = run_there(write_model(layer, tmp_path / "cell.xml"), named, fixed=False)
    assert list(there) == ["Ho", "Co"][: len(there)]
    for a, b in zip(there.values(), layer(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("option", ["input_forget", "P"])
def test_there_version_1_is_run_as_if_it_were_version_4(option: str, tmp_path: Path) -> None:
    """Text of LSTMCell-1: it has peepholes and input_forget. Written and read; the plugin ignores them."""
    inputs, (W, R, B) = cell_arrays(RecurrentOp("LSTM", H))
    P = np.linspace(-0.75, 0.5, 3 * H, dtype=np.float32) if option == "P" else None
    op = RecurrentOp("LSTM", H, input_forget=option == "input_forget")
    layer = BoundLayer(OPERATIONS["LSTMCell-1"], op, W, R, B, P)
    there = run_there(write_model(layer, tmp_path / "cell.xml"), dict(zip("XHC", inputs, strict=True)), fixed=False)
    plain = BoundLayer(OPERATIONS["LSTMCell-4"], RecurrentOp("LSTM", H), W, R, B)
    for a, b, c in zip(there.values(), plain(*inputs), layer(*inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)
        assert np.abs(a - c).max() > 1000 * TOLERANCE


@pytest.mark.parametrize("weights", [None, "bfloat16", "int8"])
def test_a_layer_of_the_core_with_all_inputs(weights: str | None, tmp_path: Path) -> None:
    """Weights that are kept in fewer bits are written as they were given."""
    case = Case("core", "LSTM", {}, ("B", "initial_h", "initial_c"), (4, 0, 2))
    drawn = Drawn(case, make_arrays(case), frozenset())
    W, R, B = (drawn.arrays[name] for name in "WRB")
    layer = Layer(RecurrentOp("LSTM", case.H), W, R, B, convention=CANONICAL, weight_dtype=weights)
    there = run_there(write_model(layer, tmp_path / "core.xml"), drawn.ir_inputs(), fixed=True)
    assert_close(drawn.as_onnx(there), drawn.layer()(**drawn.given), TOLERANCE, case)


@pytest.mark.parametrize("name", ["a<b>&\"'c", "é漢字", "tab\t, line\n and \r", "X", "Y", "a,b", " blank "])
def test_names(name: str, tmp_path: Path) -> None:
    """OpenVINO sees the name, and no other layer or tensor suffers from it."""
    op = RecurrentOp("RNN", H)
    layer = BoundLayer(OPERATIONS["RNNCell-1"], op, *cell_arrays(op)[1], name=name)
    model = openvino.Core().read_model(write_model(layer, tmp_path / "named.xml"))
    names = [node.get_friendly_name() for node in model.get_ops()]
    assert [node.get_friendly_name() for node in model.get_ops() if node.get_type_name() == "RNNCell"] == [name]
    assert len(set(names)) == len(names)
    assert [port.any_name for port in (*model.inputs, *model.outputs)] == ["X", "H", "Ho"]


@pytest.mark.parametrize("seed", range(9))
def test_openvino_writes_the_same_again(seed: int, tmp_path: Path) -> None:
    """The same attributes in the same order, with the same texts but for clip's digits, and the same ports."""
    path = write_model(draw(seed).layer(), tmp_path / "layer.xml")
    openvino.save_model(openvino.Core().read_model(path), tmp_path / "again.xml", compress_to_fp16=False)
    mine, theirs = (recurrent_element(one) for one in (path, tmp_path / "again.xml"))
    assert {**mine.attrib, "id": ""} == {**theirs.attrib, "id": ""}
    attributes = [dict(one.find("data").attrib) for one in (mine, theirs)]
    assert list(attributes[0]) == list(attributes[1])
    for one in attributes:
        one["clip"] = str(np.float32(one["clip"]))
    assert attributes[0] == attributes[1]
    for one in (mine, theirs):
        one.remove(one.find("data"))
        for port in one.iter("port"):
            port.attrib.pop("names", None)
    assert describe(mine) == describe(theirs)


def recurrent_element(path: Path) -> Any:
    (element,) = [one for one in etree.parse(path).iter("layer") if str(one.get("type")).endswith("Sequence")]
    return element


def describe(element: Any) -> list[Any]:
    return [(one.tag, dict(one.attrib), (one.text or "").strip()) for one in element.iterdescendants()]
