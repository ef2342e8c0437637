"""Single-layer models from recurrent layers: an ONNX node or an IR, with constant weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.frontends.onnx.operators.layers import QuantizedLayer
from pyrnnx.frontends.onnx.operators.schemas import DEFAULT_OPSET, OPERATORS
from pyrnnx.load import load
from pyrnnx.models.model import layer_values
from pyrnnx.operator.conventions import CANONICAL, OUTPUTS, rearrange
from pyrnnx.testing.models.layer_runs import LayerRun
from pyrnnx.testing.runtimes.models import ModelCase

if TYPE_CHECKING:
    from onnx import ModelProto

_IR_VERSION = 8
_QUANTIZED = OPERATORS["DynamicQuantizeLSTM"]


@dataclass(frozen=True, eq=False)
class AloneModel:
    """Model written by `write_alone`."""

    case: ModelCase
    inputs: dict[str, AnyArray]  # by the names of the model, in its arrangement
    axes: Mapping[str, str]  # of its outputs in order, by canonical name

    def canonical(self, outputs: Sequence[AnyArray | None]) -> dict[str, AnyArray]:
        """Return outputs of the model, in its order, by canonical name, and in canonical axes if they have as many."""
        return {
            name: rearrange(array, axes, CANONICAL.axes_of(name)) if array.ndim == len(axes) else array
            for (name, axes), array in zip(self.axes.items(), outputs, strict=False)
            if array is not None
        }


def write_alone(run: LayerRun, path: Path, *, static: bool) -> AloneModel:
    """Write the layer of a run to a path that ends in .onnx or .xml.

    `static` gives runtimes the shapes of the arrays instead of a dynamic batch_size and seq_length: OpenVINO computes
    the two in different ways. A PyrnnxError is raised for what the format cannot express.
    """
    inputs, axes = _write_onnx(run, path) if path.suffix == ".onnx" else _write_ir(run, path)
    shapes = {name: array.shape for name, array in inputs.items()} if static else None
    return AloneModel(ModelCase(run.name, path, shapes), inputs, axes)


def _write_onnx(run: LayerRun, path: Path) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Write an ONNX model, which has canonical names and axes; return its inputs, and the axes of its outputs."""
    from pyrnnx.frontends.onnx import write_model

    assert run.layer is not None
    assert run.arrays is not None
    if isinstance(run.layer, QuantizedLayer):
        model = _quantized_model(run.layer, run.arrays)
    else:
        model = write_model(run.layer, inputs=[name for name in run.arrays if name != "X"])
    path.write_bytes(model.SerializeToString())
    inputs = {
        name: array if name == "sequence_lens" else array.astype(run.layer.dtype) for name, array in run.arrays.items()
    }
    return inputs, {name: CANONICAL.axes_of(name) for name in run.layer.output_names}


def _quantized_model(layer: QuantizedLayer, arrays: Mapping[str, AnyArray]) -> ModelProto:
    """Return a model of one DynamicQuantizeLSTM, with the names of LSTM."""
    from onnx import TensorProto, helper, numpy_helper

    weights: dict[str, Any] = {"B": layer.weights.get("B"), "P": layer.weights.get("P")}
    for name in "WR":
        weight: Any = layer.kept_weights[name]
        weights[name] = weight.codes.transpose(0, 2, 1)
        weights |= {f"{name}_scale": weight.scale, f"{name}_zero_point": weight.zero_point}
    constants = {name: np.ascontiguousarray(array) for name, array in weights.items() if array is not None}
    names = [name if name in {**constants, **arrays} else "" for name in _QUANTIZED.inputs]
    op = layer.op
    functions = oracle.activations(function for direction in op.activations for function in direction)
    attributes = {"hidden_size": op.hidden_size, "direction": op.direction.value, "clip": op.clip, **functions}
    attributes["input_forget"] = int(op.input_forget)
    given = {name: value for name, value in attributes.items() if value}
    node = helper.make_node(_QUANTIZED.name, names, layer.output_names, domain=_QUANTIZED.domain, **given)

    def value(name: str) -> Any:
        element = TensorProto.INT32 if name == "sequence_lens" else TensorProto.FLOAT
        return helper.make_tensor_value_info(name, element, CANONICAL.axes_of(name))

    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([node], "it", [*map(value, arrays)], [*map(value, layer.output_names)], initializers)
    opsets = [helper.make_opsetid(domain, version) for domain, version in (("", DEFAULT_OPSET), (node.domain, 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)


def _write_ir(run: LayerRun, path: Path) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Write an IR, and read back its names and axes."""
    from pyrnnx.frontends.openvino import write_model

    assert run.layer is not None
    write_model(run.layer, path)
    model = load(path)
    (values,) = layer_values(model).values()
    inputs = {}
    for argument, value in values.items():
        for info in model.inputs:
            if {info.name, *info.aliases} & {*value.names}:
                array = rearrange(_given(run, argument), CANONICAL.axes_of(argument), value.axes)
                inputs[info.name] = array.astype(info.dtype)  # lengths have several types in IRs
    return inputs, {output: values[output].axes for output in OUTPUTS if output in values}


def _given(run: LayerRun, argument: str) -> AnyArray:
    """Return an argument of the layer's call; without one, rows are whole and states zero."""
    assert run.arrays is not None
    assert run.layer is not None
    if argument in run.arrays:
        return run.arrays[argument]
    T, N, _ = run.arrays["X"].shape
    if argument == "sequence_lens":
        return np.full(N, T, np.int32)
    return np.zeros((run.layer.op.num_directions, N, run.layer.op.hidden_size), run.layer.dtype)
