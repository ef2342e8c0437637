"""Each written operator in each form, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_stacks import Array, Graph
from peers import run_openvino
from rows import each_row, together
from written_bodies import GRAPHS
from written_models import compare

from pyrnnx.frontends.openvino import read_model, write_model
from pyrnnx.frontends.openvino.writing.operations import WRITERS

RNG = np.random.default_rng(3)


def floats(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def integers(*shape: int) -> Array:
    array: Array = RNG.integers(1, 9, shape) * RNG.choice([-1, 1], shape)
    return array


@dataclass(frozen=True)
class Case:
    """One node: `inputs` are arrays of the call, then come `constants`; None is an absent input.

    The `absent` inputs after the first are absent, too. With `fixed`, no axis is ever dynamic.
    """

    operator: str
    inputs: tuple[Array, ...]
    constants: tuple[Any, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 20
    note: str = ""
    fixed: bool = False
    absent: int = 0

    def __str__(self) -> str:
        return f"{self.operator}-{self.note or self.opset}"

    def add_to(self, g: Graph, prefix: str, *, dynamic: bool) -> tuple[dict[str, Any], list[str]]:
        """Add the node to a graph; return its inputs as the graph declares them, and its results."""
        names = [f"{prefix}x{k}" for k in range(len(self.inputs))]
        given = [g.constant(array) if array is not None else "" for array in self.constants]
        names_in_order = [*names[:1], *[""] * self.absent, *names[1:], *given]
        results = g.add(self.operator, *names_in_order, outputs=self.outputs, **self.attributes)
        declared: dict[str, tuple[int, Sequence[Any] | None]] = {}
        for name, array in zip(names, self.inputs, strict=True):
            element = helper.np_dtype_to_tensor_dtype(array.dtype)
            sizes = [f"{name}_{k}" if dynamic and not self.fixed else size for k, size in enumerate(array.shape)]
            # what is a shape or a place stays of fixed size
            declared[name] = element, array.shape if array.dtype.kind in "iu" and array.ndim < 2 else sizes
        return declared, [results] if self.outputs == 1 else results


A, B, V = floats(2, 3, 4), floats(2, 3, 4), floats(4)
IMAGE, POSITIVE = floats(2, 4, 7), np.abs(floats(2, 3)) + 0.1
SQUARE, EQUAL = floats(1, 2, 6, 5), np.array([[1, 2, 2, 1], [3, 3, 0, 3]], np.float32)
PLACES = np.array([[[2, 0], [1, 1], [3, 2]], [[0, 0], [-1, 1], [2, 3]]])
CODES = np.array([[0, 9, 200], [255, 7, 31]], np.uint8)
SCATTERS = ("add", "mul", "min", "max")
REDUCTIONS = ("Max", "Mean", "Min", "Prod", "Sum", "L1", "L2")
_UNARY = "Abs Acos Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor HardSwish Mish Neg Relu Sigmoid Sign Sin Sinh"
_UNARY += (
    " Softplus Softsign Tan Tanh Identity Dropout Elu LeakyRelu Selu HardSigmoid Gelu Softmax LogSoftmax Reciprocal"
)
_UNARY += " IsNaN"
CASES = (
    *(Case(name, (A,)) for name in _UNARY.split()),
    *(Case(name, (POSITIVE,)) for name in ("Log", "Sqrt")),
    Case("Acosh", (POSITIVE + 1,)),
    Case("Not", (A > 0,)),
    Case("BitwiseNot", (integers(2, 3),)),
    *(Case(name, (A, B)) for name in ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"]),
    *(Case(name, (A, V), note="broadcast") for name in ["Add", "Sub", "Mul", "Div"]),
    *(Case(name, (integers(2, 3), integers(2, 3)), note="integers") for name in ["Add", "Sub", "Mul", "Div", "Mod"]),
    Case("Mod", (integers(2, 3), integers(2, 3)), attributes={"fmod": 1}, note="fmod"),
    Case("Max", (A, B, V), note="three"),
    Case("Sum", (A, B, V), note="three"),
    Case("Pow", (POSITIVE,), (np.float32(1.5),)),
    Case("Pow", (A,), (np.int64(2),), note="integer exponent"),
    Case("Pow", (np.array([4, 9, 16], np.int32),), (np.float32(1.5),), note="integer base"),
    *(Case(name, (integers(9), integers(9))) for name in ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]),
    *(Case(name, (A > 0, B > 0)) for name in ["And", "Or", "Xor"]),
    Case("Where", (A > 0, A, B)),
    Case("Where", (A > 0, A), (np.float32(3),), note="a constant"),
    Case("Dropout", (A,), (np.float32(0.5), np.array(False)), note="inputs"),
    Case("Dropout", (A,), attributes={"ratio": 0.3}, opset=10),
    Case("Cast", (A * 9,), attributes={"to": TensorProto.INT64}, note="to integers"),
    Case("Cast", (A,), attributes={"to": TensorProto.BOOL}, note="to bool"),
    Case("Cast", (A,), attributes={"to": TensorProto.FLOAT}, note="to itself"),
    Case("CastLike", (integers(2, 3), A)),
    Case("Clip", (A,), (np.float32(-0.2), np.float32(0.3))),
    Case("Clip", (A,), (None, np.float32(0.3)), note="max alone"),
    Case("Clip", (A,), attributes={"min": -0.25, "max": 0.5}, opset=10),
    Case("Elu", (A,), attributes={"alpha": 0.3}, note="alpha"),
    Case("LeakyRelu", (A,), attributes={"alpha": 0.3}, note="alpha"),
    Case("HardSigmoid", (A,), attributes={"alpha": 0.7, "beta": 0.1}, note="alpha, beta"),
    Case("Selu", (A,), attributes={"alpha": 1.5, "gamma": 1.25}, note="alpha, gamma"),
    Case("Gelu", (A,), attributes={"approximate": "tanh"}, note="tanh"),
    Case("Softmax", (A,), attributes={"axis": 1}, note="axis"),
    Case("Softmax", (A,), attributes={"axis": 2}, opset=11),
    Case("LogSoftmax", (A,), attributes={"axis": -2}, note="axis"),
    Case("Transpose", (A,), attributes={"perm": [2, 0, 1]}),
    Case("Transpose", (A,), note="reversed"),
    Case("Concat", (A, B), attributes={"axis": -2}),
    Case("Squeeze", (floats(2, 1, 3, 1),), ([1, -1],)),
    Case("Squeeze", (floats(2, 1, 3),), attributes={"axes": [1]}, opset=11),
    Case("Unsqueeze", (A,), ([0, -1],)),
    Case("Unsqueeze", (A,), attributes={"axes": [0, 4]}, opset=11),
    Case("Reshape", (A,), ([0, -1],)),
    Case("Reshape", (A,), ([-1, 2, 3],), note="no zero"),
    Case("Reshape", (A,), ([4, 3, 2],), attributes={"allowzero": 1}, note="allowzero"),
    Case("Reshape", (A, np.array([3, 0, -1])[[0, 2]]), note="computed"),
    Case("Flatten", (A,)),
    Case("Flatten", (A,), attributes={"axis": 0}, note="axis 0"),
    Case("Shape", (A,)),
    Case("Shape", (A,), attributes={"start": 1, "end": -1}, note="a part"),
    Case("Size", (A,)),
    Case("ConstantOfShape", (np.array([2, 3]),)),
    Case("ConstantOfShape", (np.array([2, 3]),), attributes={"value": numpy_helper.from_array(np.array([7]))},
        note="7"),
    Case("Expand", (floats(3, 1),), ([2, 1, 4],)),
    Case("Expand", (floats(3, 1), np.array([2, 1, 4])), note="computed"),
    Case("Tile", (A,), ([2, 1, 3],)),
    Case("Range", tuple(map(np.array, (2, 11, 3)))),
    Case("Slice", (A,), ([1], [-1], [2])),
    Case("Slice", (A,), ([3, -1], [0, -(2**63)], [2, 1], [-2, -1]), note="backwards"),
    Case("Slice", (A,), ([0, 1], [2**63 - 1, 3]), note="no axes"),
    Case("Slice", (A,), attributes={"starts": [1], "ends": [3], "axes": [-1]}, opset=9),
    Case("Slice", (A, np.array([1]), np.array([3])), ([2],), note="computed"),
    Case("Slice", (A, np.array([1], np.int32), np.array([3], np.int32)), note="computed, int32"),
    Case("Gather", (A,), (np.int64(-1),), {"axis": 1}),
    Case("Gather", (A,), ([[2, 0], [1, -1]],), {"axis": 2}, note="many"),
    Case("Gather", (A, np.array([1, 0])), note="computed"),
    Case("Split", (A,), ([1, 3],), {"axis": 2}, outputs=2),
    Case("Split", (A,), attributes={"axis": 2, "split": [3, 1]}, outputs=2, opset=11),
    *(Case(f"Reduce{name}", (A,), ([0, -1],), {"keepdims": 0}) for name in REDUCTIONS),
    Case("ReduceMean", (A,), note="all"),
    Case("ReduceSum", (A,), attributes={"noop_with_empty_axes": 1}, note="none"),
    Case("ReduceMax", (A,), attributes={"axes": [1]}, opset=11),
    Case("MatMul", (A, floats(2, 4, 5))),
    Case("MatMul", (A,), (floats(4, 5),), note="a matrix"),
    Case("MatMul", (A,), (V,), note="a vector"),
    Case("MatMul", (V, floats(2, 4, 5)), note="of a vector"),
    Case("Gemm", (floats(3, 4),), (floats(5, 4), floats(5)), {"transB": 1}),
    Case("Gemm", (floats(4, 3),), (floats(4, 5), floats(3, 1)), {"transA": 1, "alpha": 0.5, "beta": 2.0},
        note="scaled"),
    Case("Gemm", (floats(3, 4),), (floats(4, 5),), note="no C"),
    Case("LayerNormalization", (A,), (V, floats(4))),
    Case("LayerNormalization", (A,), (floats(3, 4),), {"axis": 1, "epsilon": 0.1}, note="axis"),
    Case("BatchNormalization", (floats(2, 3, 4),), (*floats(3, 3), np.abs(floats(3)) + 0.1), {"epsilon": 0.01}),
    Case("Conv", (IMAGE,), (floats(6, 4, 3), floats(6)), {"pads": [1, 0], "strides": [2]}),
    Case("Conv", (IMAGE,), (floats(6, 2, 3), floats(6)), {"group": 2, "dilations": [2]}, note="groups"),
    Case("Conv", (floats(1, 2, 5, 5),), (floats(3, 2, 2, 2),), {"auto_pad": "SAME_UPPER"}, note="auto_pad"),
    Case("ConvTranspose", (IMAGE,), (floats(4, 6, 3), floats(6)), {"strides": [2], "output_padding": [1]}),
    Case("ConvTranspose", (IMAGE,), (floats(4, 3, 3),), {"group": 2, "pads": [1, 0], "dilations": [2]}, note="groups"),
    Case("ConvTranspose", (IMAGE,), (floats(4, 2, 4),), {"auto_pad": "SAME_LOWER", "strides": [3]}, note="auto_pad"),
    Case("ConvTranspose", (IMAGE,), (floats(4, 2, 3),), {"output_shape": [15], "strides": [2]}, note="output_shape",
        fixed=True),
    Case("MaxPool", (IMAGE,), attributes={"kernel_shape": [3], "strides": [2], "pads": [1, 0]}),
    Case("MaxPool", (SQUARE,), attributes={"kernel_shape": [2, 3], "dilations": [2, 1]}, outputs=2, note="indices"),
    Case("MaxPool", (SQUARE,), attributes={"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, note="ceil"),
    Case("MaxPool", (SQUARE,), attributes={"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, note="auto_pad"),
    Case("AveragePool", (SQUARE,), attributes={"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 0, 1, 2]}),
    Case("AveragePool", (SQUARE,), attributes={"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        note="count_include_pad"),
    Case("AveragePool", (SQUARE,), attributes={"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1}, note="ceil"),
    Case("AveragePool", (SQUARE,), attributes={"kernel_shape": [2, 2], "dilations": [2, 2]}, note="dilations"),
    *(Case(f"Global{name}Pool", (SQUARE,)) for name in ("Average", "Max")),
    Case("InstanceNormalization", (SQUARE,), (floats(2), floats(2)), {"epsilon": 0.1}),
    Case("Einsum", (A, B), attributes={"equation": "b i j, bkj -> bik"}),
    Case("PRelu", (A,), (floats(3, 1),)),
    Case("PRelu", (A,), (np.float32(0.3),), note="a scalar"),
    Case("PRelu", (A,), (floats(3, 4),), note="of elements"),
    Case("PRelu", (A, V), note="computed"),
    Case("Round", (A * 5,)),
    Case("Round", (np.arange(-7, 7, dtype=np.float32) / 2,), note="halves"),
    Case("IsInf", (np.array([1, np.inf, -np.inf, np.nan], np.float32),)),
    Case("IsInf", (np.array([1, np.inf, -np.inf], np.float32),), attributes={"detect_negative": 0}, note="positive"),
    Case("Pad", (A,), ([1, 0, 2, 0, 3, 1], np.float32(1.5))),
    Case("Pad", (A,), ([1, -1], None, [-1]), note="axes, negative"),
    Case("Pad", (A,), ([0, 1, 2, 0, 2, 1],), {"mode": "reflect"}, note="reflect"),
    Case("Pad", (A,), ([1, 1, 0, 0, 2, 1],), {"mode": "edge"}, note="edge"),
    Case("Pad", (A, np.array([2, 1, 0, 3])), (np.float32(-1), [2, 0]), note="computed"),
    Case("Pad", (A,), attributes={"pads": [0, 1, 2, 0, 0, 1], "value": 0.5}, opset=10),
    Case("TopK", (A,), ([2],), {"axis": 1}, outputs=2),
    Case("TopK", (A,), ([3],), {"largest": 0}, outputs=2, note="smallest"),
    Case("TopK", (EQUAL,), ([4],), outputs=2, note="equal values"),
    Case("TopK", (A, np.array([2])), outputs=2, note="computed"),
    Case("TopK", (A,), attributes={"k": 2, "axis": 1}, outputs=2, opset=9),
    Case("ArgMax", (A,), attributes={"axis": 1}),
    Case("ArgMin", (A,), attributes={"axis": -1, "keepdims": 0}),
    Case("ArgMax", (EQUAL,), attributes={"axis": 1, "select_last_index": 1}, note="last"),
    Case("ArgMin", (EQUAL,), attributes={"axis": 1}, note="first"),
    Case("CumSum", (A,), (np.int64(1),)),
    Case("CumSum", (A,), (np.int32(-1),), {"exclusive": 1, "reverse": 1}, note="exclusive, reverse"),
    Case("CumSum", (A, np.array(1)), note="computed"),
    Case("GatherElements", (A,), (np.array([[[2, 0, -1, 1]], [[1, -3, 0, 0]]]),), {"axis": 1}),
    Case("GatherElements", (A, PLACES), attributes={"axis": 2}, note="computed"),
    Case("GatherND", (A,), ([[0, 1], [1, -1]],)),
    Case("GatherND", (A,), ([[2], [0]],), {"batch_dims": 1}, note="batch_dims"),
    Case("ScatterND", (A,), ([[0, 1], [1, -1]], floats(2, 4))),
    *(Case("ScatterND", (A,), ([[0, 1], [0, 1]], floats(2, 4)), {"reduction": name}, note=name) for name in SCATTERS),
    Case("ScatterElements", (A,), ([[[2, 0, -1, 1]], [[1, 2, 0, 0]]], floats(2, 1, 4)), {"axis": 1}),
    Case("ScatterElements", (A,), ([[[2, 0]], [[1, 1]]], floats(2, 1, 2)), {"axis": 2, "reduction": "add"}, note="add"),
    Case("Scatter", (A,), ([[[2, 0, 1, 1]], [[1, 2, 0, 0]]], floats(2, 1, 4)), {"axis": 1}, opset=10),
    Case("NonZero", (np.array([[1, 0, 2], [0, 0, 3]], np.float32),)),
    Case("OneHot", (np.array([[2, -1], [0, 1]]),), (np.int64(3), np.array([0.5, 2], np.float32))),
    Case("OneHot", (np.array([[2, 1]]),), ([4], np.array([0, 1])), {"axis": 0}, note="axis"),
    Case("ReverseSequence", (floats(4, 2, 3),), (np.array([3, 2]),)),
    Case("ReverseSequence", (floats(2, 4, 3),), (np.array([3, 2]),), {"batch_axis": 0, "time_axis": 1}, note="axes"),
    Case("Trilu", (A,)),
    Case("Trilu", (A,), (np.int64(-1),), {"upper": 0}, note="lower"),
    Case("Resize", (SQUARE,), (None, np.array([1, 1, 2, 3], np.float32)), {"mode": "linear"}),
    Case("Resize", (SQUARE,), (None, None, [1, 2, 9, 3]), {"mode": "cubic", "cubic_coeff_a": -0.5}, note="cubic",
        fixed=True),
    *(Case("Resize", (SQUARE,), (None, np.array([1.5, 0.6], np.float32)), {"axes": [2, 3], "nearest_mode": mode,
        "coordinate_transformation_mode": transform}, note=f"{mode}, {transform}")
        for mode, transform in (("floor", "asymmetric"), ("round_prefer_ceil", "pytorch_half_pixel"),
                                ("ceil", "align_corners"))),
    Case("Resize", (IMAGE,), (None, np.array([1, 1, 2], np.float32)), note="one axis"),
    Case("Resize", (SQUARE, np.array([1, 2, 10, 8])), note="computed", absent=2),
    Case("Resize", (SQUARE,), (np.array([1, 1, 2, 3], np.float32),), opset=10),
    Case("Upsample", (SQUARE,), (np.array([1, 1, 2, 1], np.float32),), {"mode": "linear"}, opset=9),
    Case("DepthToSpace", (floats(1, 8, 2, 3),), attributes={"blocksize": 2}),
    Case("DepthToSpace", (floats(1, 8, 2, 3),), attributes={"blocksize": 2, "mode": "CRD"}, note="CRD"),
    Case("SpaceToDepth", (floats(1, 2, 4, 6),), attributes={"blocksize": 2}),
    Case("QuantizeLinear", (A,), (np.float32(0.02), np.uint8(100))),
    Case("QuantizeLinear", (A,), (np.array([0.01, 0.02, 0.5], np.float32), np.array([1, 0, -9], np.int8)), {"axis": 1},
        note="axis"),
    Case("DequantizeLinear", (CODES,), (np.float32(0.02), np.uint8(100))),
    Case("DequantizeLinear", (CODES,), (np.array([0.01, 0.5], np.float32), np.array([1, 9], np.uint8)), {"axis": 0},
        note="axis"),
    Case("DynamicQuantizeLinear", (A,), outputs=3),
    Case("DynamicQuantizeLinear", (A * 0,), outputs=3, note="zeros"),
    Case("MatMulInteger", (CODES,), (CODES.T.copy(), np.uint8(7), np.array([3], np.uint8))),
    Case("MatMulInteger", (CODES,), (CODES.T.astype(np.int8),), note="no zero points"),
    Case("ConvInteger", (CODES[None],), (CODES[None, :, :3].copy(), np.uint8(7), np.uint8(3)), {"pads": [1, 1]}),
    Case("ConvInteger", (CODES[None],), (CODES[:, None, :2].astype(np.int8),), {"group": 2}, note="groups"),
)  # fmt: skip


@pytest.mark.parametrize("dynamic", [pytest.param(False, marks=pytest.mark.slow), True], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("opset", sorted({case.opset for case in CASES}))
def test_same_numbers(opset: int, dynamic: bool, tmp_path: Path) -> None:
    """All operators of an opset in one model, for what takes time is to compile each."""

    def check(cases: list[Case]) -> None:
        g = Graph(opset)
        declared: dict[str, Any] = {}
        inputs: dict[str, Array] = {}
        outputs: list[str] = []
        for number, case in enumerate(cases):
            mine, results = case.add_to(g, f"n{number}_", dynamic=dynamic)
            declared |= mine
            outputs += results
            inputs |= dict(zip(mine, case.inputs, strict=True))
        compare(g.model(declared, outputs), tmp_path / "model.xml", inputs)

    def alone(case: Case) -> None:
        check([case])

    together(check, alone, [case for case in CASES if case.opset == opset], str)


SLOPES = np.array([0.5, 0.25, 2, -1], np.float32)
# Versions that ONNX Runtime does not run: opset, inputs after x [2, 4, 7], attributes, result.
OLD: dict[str, tuple[int, tuple[Any, ...], dict[str, Any], Array]] = {
    "PRelu-6": (6, (SLOPES,), {}, np.where(IMAGE < 0, IMAGE * SLOPES[:, np.newaxis], IMAGE)),
    "Pad-1": (1, (), {"paddings": [0, 1, 2, 0, 0, 1], "value": 3.0},
        np.pad(IMAGE, [(0, 0), (1, 0), (2, 1)], constant_values=3)),
}  # fmt: skip


@each_row("name", OLD)
def test_old_versions(name: str, tmp_path: Path) -> None:
    opset, constants, attributes, expected = OLD[name]
    g, path = Graph(opset), tmp_path / "model.xml"
    y = g.add(name.split("-", maxsplit=1)[0], "x", *map(g.constant, constants), **attributes)
    write_model(g.model({"x": (TensorProto.FLOAT, ("N", 4, 7))}, [y]), path)
    for results in (read_model(path)({"x": IMAGE}).values(), run_openvino(path, {"x": IMAGE})):
        np.testing.assert_array_equal(next(iter(results)), expected)


def test_every_operator_has_a_case() -> None:
    in_graphs = {node.op_type for row in GRAPHS.values() for node in row.model().graph.node}
    assert {case.operator for case in CASES} | in_graphs >= set(WRITERS)
    assert {case.operator for case in CASES} <= set(WRITERS)
