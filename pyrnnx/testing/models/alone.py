"""Single-layer models from recurrent layers: an ONNX node or an IR, with constant weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.frontends.onnx.operators.schemas import DEFAULT_OPSET
from pyrnnx.load import load
from pyrnnx.models.model import layer_values
from pyrnnx.operator.conventions import CANONICAL, OUTPUTS, rearrange
from pyrnnx.testing.models.layer_runs import LayerRun
from pyrnnx.testing.runtimes.models import ModelCase

if TYPE_CHECKING:
    from onnx import NodeProto

_ARRANGEMENT = ("layout", "output_sequence")  # attributes that have no part in the numbers
OLDEST_OPSET = 14  # an older one has the same operators but for layout, which is not written


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


def write_alone(
    run: LayerRun, path: Path, *, static: bool, opset: int = DEFAULT_OPSET, node: NodeProto | None = None
) -> AloneModel:
    """Write the layer of a run to a path that ends in .onnx or .xml.

    `static` gives runtimes the shapes of the arrays instead of a dynamic batch_size and seq_length: OpenVINO computes
    the two in different ways. Attributes of an ONNX `node` are copied: runtimes may read in two ways what it leaves to
    defaults.

    Raises
    ------
    PyrnnxError
        What the format cannot express.
    """
    inputs, axes = _write_onnx(run, path, opset, node) if path.suffix == ".onnx" else _write_ir(run, path)
    shapes = {name: array.shape for name, array in inputs.items()} if static else None
    return AloneModel(ModelCase(run.name, path, shapes), inputs, axes)


def _write_onnx(
    run: LayerRun, path: Path, opset: int, node: NodeProto | None
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Write an ONNX model, which has canonical names and axes; return its inputs, and the axes of its outputs."""
    from pyrnnx.frontends.onnx import write_model

    assert run.layer is not None
    assert run.arrays is not None
    model = write_model(run.layer, inputs=[name for name in run.arrays if name != "X"], opset=opset)
    if node is not None:
        (written,) = (written for written in model.graph.node if written.op_type == run.layer.op.cell)
        del written.attribute[:]
        written.attribute.extend(attribute for attribute in node.attribute if attribute.name not in _ARRANGEMENT)
    path.write_bytes(model.SerializeToString())
    inputs = {
        name: array if name == "sequence_lens" else array.astype(run.layer.dtype) for name, array in run.arrays.items()
    }
    return inputs, {name: CANONICAL.axes_of(name) for name in run.layer.output_names}


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
