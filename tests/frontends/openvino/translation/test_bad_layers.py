"""Layers with contradicting attributes and constants: an immediate error that names the layer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from openvino_nets import Bin, edges, layer, net, parameter, result
from rows import each_row

from pyrnnx import FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.openvino import Model, read_model, to_onnx
from pyrnnx.frontends.openvino.translation.operations import TRANSLATORS

pytest.importorskip("onnx")

Array = NDArray[Any]
BIG = 2**62
KINDS = {"float32": ("f32", "FP32"), "int64": ("i64", "I64"), "float64": ("f64", "FP64"), "uint64": ("u64", "U64")}


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


@dataclass(frozen=True)
class Case:
    """A layer of a type that takes x, of a shape, and constants."""

    name: str
    words: str
    data: dict[str, Any] = field(default_factory=dict)
    constants: tuple[Array, ...] = ()
    opset: int = 1
    shape: tuple[int, ...] = (1, 2, 8)
    outputs: int = 1
    dtype: str = "f32"
    error: type[PyrnnxError] = FormatError

    @property
    def type(self) -> str:
        return self.name.split()[0]

    def model(self) -> Model:
        store, dims = Bin(), ", ".join(map(str, self.shape))
        precision = {"f32": "FP32", "i32": "I32", "i64": "I64"}[self.dtype]
        ports: list[Any] = [(precision, self.shape)]
        layers = [parameter(0, "x", dims, self.shape, self.dtype)]
        for k, array in enumerate(self.constants, start=1):
            layers.append(store.constant(k, f"c{k}", array, *KINDS[array.dtype.name]))
            ports.append((KINDS[array.dtype.name][1], array.shape))
        count = len(ports)
        open_rank = [(precision, [-1] * len(self.shape))] * self.outputs
        layers.append(layer(90, "odd", self.type, self.data, ports, open_rank, f"opset{self.opset}"))
        layers += [result(91 + k, f"y{k}", [-1] * len(self.shape), precision) for k in range(self.outputs)]
        connections = [f"{k}.0 90.{k}" for k in range(count)]
        connections += [f"90.{count + k} {91 + k}.0" for k in range(self.outputs)]
        return read_model(net(layers, edges(*connections)), store.data)


POOL = {"kernel": "3", "strides": "1", "pads_begin": "0", "pads_end": "0"}
CONV = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"}
FILTERS = np.ones((3, 2, 3), np.float32)
BACK = np.ones((2, 3, 3), np.float32)
TOP_K = {"axis": 1, "mode": "max", "sort": "value"}
RESIZE = {"mode": "nearest", "shape_calculation_mode": "sizes"}
CASES = (
    Case("SoftMax huge", f"axis is '{2**64}'; expected an integer of 64 bits", {"axis": 2**64}, opset=8),
    Case("Clamp NaN", "min is NaN; expected a number", {"min": "nan", "max": 1}),
    Case("Split count", "num_splits is '2'; expected an integer from 1 to 1", {"num_splits": 2}, (ints(1),)),
    Case("Clamp turned round", "min is 2.0, max 1.0", {"min": 2, "max": 1}),
    Case("FakeQuantize levels", "levels is '1'; expected", {"levels": 1}, (FILTERS,) * 4),
    Case("Transpose fractions", "of float32; expected integers", {}, (np.array([0, 1.5, 2], np.float32),)),
    Case("Reshape unsigned", "of uint64; expected integers", {"special_zero": "true"}, (np.array([2**63], np.uint64),)),
    Case("Tile repeats", "repeats (input 1) has shape (2, 2)", {}, (ints(1, 2, 3, 4).reshape(2, 2),)),
    Case("STFT", "frame_step (input 3) is [0]; expected integers from 1", {"transpose_frames": "false"},
         (FILTERS[0, 0], ints(2), ints(0)), 15, shape=(2, 9)),
    Case("Convolution dilations", "dilations has 2 values, [1, 2]; expected 1",
         {**CONV, "dilations": "1,2"}, (FILTERS,)),
    Case("Convolution stride 0", "strides is '0'; expected integers from 1",
         {**CONV, "strides": 0, "auto_pad": "same_upper"}, (FILTERS,)),
    Case("ConvolutionBackpropData output_shape", "output_shape (input 2) has 2 values", CONV, (BACK, ints(8, 9))),
    Case("MaxPool kernel", "kernel is ''; expected integers", {**POOL, "kernel": ""}),
    Case("MaxPool extents", f"kernel is '{BIG}'", {**POOL, "kernel": BIG, "dilations": BIG}, opset=8),
    Case("AdaptiveAvgPool huge", "which is not translated",
         {}, (ints(2),), 8, shape=(1, 2, 2**40), error=UnsupportedError),
    Case("Abs outputs", "output 1 is used, but Abs does not compute it", outputs=2),
    Case("Gather batch_dims", "batch_dims is 1", {"batch_dims": 1}, (ints(0), ints(0)), 8, error=UnsupportedError),
    Case("ScatterElementsUpdate", "use_init_val is False", {"reduction": "sum", "use_init_val": "false"},
         (ints(0).reshape(1, 1, 1), FILTERS[:1, :1, :1], ints(0)), 12, error=UnsupportedError),
    Case("Pad symmetric", "pad_mode is 'symmetric'",
         {"pad_mode": "symmetric"}, (ints(1, 1, 1), ints(1, 1, 1)), error=UnsupportedError),
    Case("SpaceToDepth", "mode is 'depth_first'", {"mode": "depth_first", "block_size": 2}, shape=(1, 4, 2, 2),
         error=UnsupportedError),
    Case("Squeeze skipping", "allow_axis_skip is True", {"allow_axis_skip": "true"}, (ints(0),), 15,
         error=UnsupportedError),
    Case("Convolution integers", "element type is 'int64', which is not translated; expected a floating-point one",
         CONV, (FILTERS,), dtype="i64", error=UnsupportedError),
    Case("Frobnicate", "of opset4 cannot be run or exported to ONNX: this operation is not translated", opset=4,
         error=UnsupportedError),
    Case("GroupNormalization", "of opset2 cannot be run", opset=2, error=UnsupportedError),
    Case("Abs speed", "'speed' ('fast') is unknown in Abs opset1", {"speed": "fast"}, error=UnsupportedError),
    Case("Add as Caffe", "auto_broadcast is 'pdpd'", {"auto_broadcast": "pdpd"}, (FILTERS,), error=UnsupportedError),
    Case("Add inputs", "input 1 is missing; the layer has 1"),
    Case("Elu nothing", "attribute 'alpha' is missing"),
    Case("Round", "mode is 'up'", {"mode": "up"}, opset=5, error=UnsupportedError),
    Case("Convert unknown", "'f99'", {"destination_type": "f99"}),
    Case("Convert unread", "'nf4'", {"destination_type": "nf4"}, error=UnsupportedError),
    Case("Einsum terms", "equation is 'ij,jk->ik'; expected a term for each input", {"equation": "ij,jk->ik"}, opset=7),
    Case("Einsum letters", "equation is 'ij->ji'; expected", {"equation": "ij->ji"}, opset=7),
    Case("ConvolutionBackpropData same", "auto_pad is 'same_upper'",
         {**CONV, "auto_pad": "same_upper"}, (BACK,), error=UnsupportedError),
    Case("ScaledDotProductAttention inputs", "number of inputs is 6",
         {"causal": "false"}, (FILTERS,) * 5, 13, error=UnsupportedError),
)  # fmt: skip


@each_row("case", CASES, ids=lambda case: case.name)
def test_error_names_layer_and_cause(case: Case) -> None:
    model = case.model()
    x = np.zeros([size if size < 100 else 1 for size in case.shape], np.int64 if case.dtype == "i64" else np.float32)
    acts: list[Callable[[], Any]] = [lambda: to_onnx(model)]
    if x.shape == case.shape:
        acts.append(lambda: model(x))
    for act in acts:
        with pytest.raises(case.error, match=re.escape(f"{case.type} 'odd' (id 90): ")) as caught:
            act()
        assert case.words in str(caught.value)


def run(case: Case, x: Any) -> list[Any]:
    return [array.tolist() for array in case.model()(np.array(x)).values()]


def test_clamp_of_integers_to_infinity() -> None:
    case = Case("Clamp", "", {"min": "-1.5", "max": "inf"}, shape=(3,), dtype="i64")
    assert run(case, [-5, 0, 2**62]) == [[-1, 0, 2**62]]
    case = Case("Clamp", "", {"min": "-inf", "max": "2.5"}, shape=(3,), dtype="i64")
    assert run(case, [-5, 2, 7]) == [[-5, 2, 2]]


def test_empty_lists_are_defaults() -> None:
    """OpenVINO reads empty lists as defaults."""
    case = Case("Convolution", "", {**CONV, "dilations": "", "pads_begin": "", "pads_end": ""}, (FILTERS,))
    assert run(case, np.ones((1, 2, 8), np.float32)) == [[[[6.0] * 6] * 3]]
    case = Case("MaxPool", "", {**POOL, "strides": "", "pads_begin": "", "pads_end": ""}, shape=(1, 1, 4))
    assert run(case, np.arange(4, dtype=np.float32).reshape(1, 1, 4)) == [[[[2.0, 3.0]]]]


def test_max_pool_8_without_its_second_output() -> None:
    case = Case("MaxPool", "", {**POOL, "index_element_type": "i64"}, opset=8, shape=(1, 1, 4))
    assert run(case, np.arange(4, dtype=np.float32).reshape(1, 1, 4)) == [[[[2.0, 3.0]]]]


def test_what_a_translator_does_not_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    """One guard handles all unexpected errors."""
    for error in (ValueError, KeyError, ZeroDivisionError, AssertionError, RecursionError, MemoryError):

        def fails(call: Any, error: type[Exception] = error) -> str:
            raise error("why")

        monkeypatch.setitem(TRANSLATORS, "abs", {1: fails})
        with pytest.raises(PyrnnxError, match=r"Abs 'odd' \(id 90\): .*why"):
            to_onnx(Case("Abs", "").model())


def test_shape_inference_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is exported with what its ports say."""
    import onnx

    def fails(*arguments: Any, **more: Any) -> None:
        raise RuntimeError("why")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", fails)
    assert [one.name for one in to_onnx(Case("Abs", "").model()).graph.output] == ["odd"]
