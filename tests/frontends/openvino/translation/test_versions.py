"""Every version of every translated operation; versions that OpenVINO no longer writes are written by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from numpy.typing import NDArray
from openvino_decoding import AROUND
from openvino_elementwise import ELEMENTWISE, SHAPES
from openvino_indexing import INDEXING, REDUCTIONS
from openvino_irs import run_exported
from openvino_layers import assert_same, function, make_arrays, write
from openvino_linear import IMAGES, LINEAR, POOLING, SPECTRA
from openvino_operations import build
from rows import each_row

from pyrnnx import UnsupportedError
from pyrnnx.frontends.openvino import OPERATIONS, read_layer, read_model, to_onnx
from pyrnnx.frontends.openvino.translation.operations import TRANSLATORS

Array = NDArray[Any]
NEWEST = 10**9


@dataclass(frozen=True)
class Row:
    """A layer of one version, its inputs, and its outputs by NumPy."""

    type: str
    opset: int
    expected: Callable[..., Sequence[Array]]
    arrays: tuple[Array, ...]
    data: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return rng().uniform(-1, 1, shape).astype(np.float32)


def rms(x: Array, scale: Array | None = None) -> list[Array]:
    wide = x.astype(np.float64)
    result = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 0.1)
    return [(result if scale is None else result * scale).astype(np.float32)]


def mvn(*axes: int) -> Callable[[Array], list[Array]]:
    def normalized(x: Array) -> list[Array]:
        wide = x.astype(np.float64)
        centred = wide - wide.mean(axes, keepdims=True)
        return [(centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 0.1)).astype(np.float32)]

    return normalized


ROWS = (
    Row("RMS", 1, rms, (normal(2, 3, 5), normal(5)), {"epsilon": 0.1}, "with a scale"),
    Row("RMS", 1, rms, (normal(2, 3, 5),), {"epsilon": 0.1}, "without a scale"),
    Row("RMS", 1, lambda x, scale: rms(x), (normal(2, 3, 5), normal(5)),
        {"epsilon": 0.1, "elementwise_affine": "false"}, "with a scale that is not used"),
    Row("MVN", 2, mvn(2, 3), (normal(2, 3, 4, 5),), {"eps": 0.1}, "by channel"),
    Row("MVN", 2, mvn(1, 2, 3), (normal(2, 3, 4, 5),), {"eps": 0.1, "across_channels": "true"}, "across channels"),
    Row("MVN", 2, mvn(1, 3), (normal(2, 3, 4, 5),), {"eps": 0.1, "reduction_axes": "1,3"}, "over axes"),
)  # fmt: skip


@each_row("row", ROWS, ids=lambda row: f"{row.type}-{row.opset} {row.name}")
def test_written_by_hand(row: Row) -> None:
    ports: list[Any] = [("FP32", array.shape) for array in row.arrays]
    shape = row.arrays[0].shape
    layers = [
        nets.parameter(k, f"x{k}", ",".join(map(str, array.shape)), array.shape) for k, array in enumerate(row.arrays)
    ]
    layers += [
        nets.layer(7, "it", row.type, row.data, ports, [("FP32", shape)], f"opset{row.opset}"),
        nets.result(8, "y", shape),
    ]
    count = len(row.arrays)
    connections = nets.edges(*(f"{k}.0 7.{k}" for k in range(count)), f"7.{count} 8.0")
    model = read_model(nets.net(layers, connections), b"")
    expected = row.expected(*row.arrays)
    for outputs in (list(model(*row.arrays).values()), run_exported(to_onnx(model), row.arrays)):
        for one, other in zip(outputs, expected, strict=True):
            assert one.dtype == other.dtype
            # sums of up to 60 terms of float32 in another order
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def recurrent_model(kind: str, **data: str) -> tuple[Any, list[Array]]:
    """Return a net of one layer, all of whose inputs are the model's, and arrays for it."""
    text = write(kind, data, precision="FP32", attributes='id="50" name="it"')
    declared = read_layer(text)
    arrays = make_arrays(declared)
    layers = [
        nets.parameter(
            k, port.name, ",".join(map(str, array.shape)), array.shape, "i32" if array.dtype.kind == "i" else "f32"
        )
        for k, (port, array) in enumerate(zip(declared.inputs, arrays, strict=True))
    ]
    layers += [
        text,
        *(nets.result(60 + k, f"y{k}", [size or 0 for size in port.shape]) for k, port in enumerate(declared.outputs)),
    ]
    ends = [f"{k}.0 50.{port.id}" for k, port in enumerate(declared.inputs)]
    ends += [f"50.{port.id} {60 + k}.0" for k, port in enumerate(declared.outputs)]
    return read_model(nets.net(layers, nets.edges(*ends)), b""), arrays


@each_row("kind", OPERATIONS)
def test_recurrent_versions(kind: str) -> None:
    """Weights, states and lengths computed at run time: the numbers of the function."""
    model, arrays = recurrent_model(kind)
    assert_same(tuple(model(*arrays).values()), function(kind, *arrays))
    to_onnx(model)


@each_row("kind", ["LSTMSequence-1", "LSTMCell-1"])
def test_input_forget(kind: str) -> None:
    """P in the order f, i, o, and i = 1 - f: negated in the place of the gate that ONNX computes, by nodes."""
    model, arrays = recurrent_model(kind, input_forget="true")
    wanted = function(kind, *arrays, input_forget=True)
    assert_same(tuple(model(*arrays).values()), wanted)
    proto = to_onnx(model)
    assert sum(node.op_type == "Neg" for node in proto.graph.node) == len("WRBP")
    for a, b in zip(run_exported(proto, arrays), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=5e-6)  # float32, 5 steps
    # only 1 - sigmoid(x) is the function of -x: no operator of ONNX; the model is run all the same
    activations = {"activations": "hardsigmoid,tanh,tanh"}
    model, arrays = recurrent_model(kind, input_forget="true", **activations)
    with pytest.raises(UnsupportedError, match=r"'it' \(id 50\): input_forget with activation HardSigmoid.*i = 1 - f"):
        to_onnx(model)
    wanted = function(kind, *arrays, input_forget=True, activations=["hardsigmoid", "tanh", "tanh"])
    assert_same(tuple(model(*arrays).values()), wanted)


def test_every_registered_version_has_a_row() -> None:
    """By type and the first opset that a translator is for."""
    run = {(row.type.lower(), row.opset) for row in ROWS}
    run |= {(row.type.lower(), row.first_opset) for row in OPERATIONS.values()}
    for case in ELEMENTWISE + SHAPES + INDEXING + REDUCTIONS + LINEAR + POOLING + IMAGES + SPECTRA + AROUND:
        kinds = [node.get_type_info() for node in build(case)[0].get_ordered_ops()]
        # what is beside the operation that the case is of does not count
        own = [kind for kind in kinds if kind.name.lower() == case.type.lower()]
        assert own, case.name
        run |= {(kind.name.lower(), int(kind.version_id.removeprefix("opset"))) for kind in own}
    missing = []
    for kind, rows in TRANSLATORS.items():
        firsts = sorted(rows)
        for first, following in zip(firsts, [*firsts[1:], NEWEST], strict=True):
            if not any(name == kind and first <= opset < following for name, opset in run):
                missing.append((kind, first))
    assert missing == []
