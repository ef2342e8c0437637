"""Single-layer models from recurrent layers: an ONNX node or an IR, with constant weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.frontends.onnx.schemas import DEFAULT_OPSET
from pyrnnx.layers.layer import Layer
from pyrnnx.load import load
from pyrnnx.models.model import layer_values
from pyrnnx.operator.conventions import CANONICAL, OUTPUTS, rearrange
from pyrnnx.testing.cases import Case
from pyrnnx.testing.models.layer_runs import LayerRun
from pyrnnx.testing.runtimes.models import ModelCase

if TYPE_CHECKING:
    from onnx import NodeProto

_WEIGHTS = ("W", "R", "B", "P")
_DEFAULTS: Mapping[str, Any] = {"clip": None, "input_forget": 0, "activation_alpha": [], "activation_beta": []}
_ARRANGEMENT = ("layout", "output_sequence")  # attributes that have no part in the numbers
OLDEST_OPSET = 14  # an older one has the same operators but for layout, which is not written


def write_alone(
    run: LayerRun, path: Path, *, static: bool, opset: int = DEFAULT_OPSET, node: NodeProto | None = None
) -> AloneModel:
    """Write the layer of a run to a path that ends in .onnx or .xml.

    Parameters
    ----------
    run : LayerRun
    path : Path
    static : bool
        Whether to declare the shapes of the arrays, instead of a dynamic batch_size and seq_length: OpenVINO computes
        the two in different ways.
    opset : int
        Of an ONNX model.
    node : onnx.NodeProto, optional
        Whose attributes are copied: runtimes may read in two ways what it leaves to defaults.

    Raises
    ------
    PyrnnxError
        What the format cannot express.
    """
    assert run.layer is not None
    assert run.arrays is not None
    if path.suffix == ".onnx":
        path.write_bytes(_onnx_model(run.layer, run.arrays, static, opset, node))
        axes = {name: CANONICAL.axes_of(name) for name in run.layer.output_names}
        return AloneModel(ModelCase(run.name, path), dict(run.arrays), axes)
    from pyrnnx.frontends.openvino import write_model

    write_model(run.layer, path)
    return _of_ir(run, path, static)


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


def _onnx_model(
    layer: Layer, arrays: Mapping[str, AnyArray], static: bool, opset: int, node: NodeProto | None
) -> bytes:
    from pyrnnx.testing.onnx_models import make_model

    arguments = oracle.arguments(layer, arrays)
    arguments.pop("coupled_gate", None)
    tensors = {name: arguments.pop(name) for name in (*_WEIGHTS, *arrays) if name in arguments}
    tensors = {name: array if name == "sequence_lens" else array.astype(layer.dtype) for name, array in tensors.items()}
    attributes = {name: value for name, value in arguments.items() if name not in _DEFAULTS or value != _DEFAULTS[name]}
    T, N, I = tensors["X"].shape
    case = Case(
        layer.name or layer.op.cell,
        layer.op.cell,
        {**attributes, "hidden_size": layer.op.hidden_size},
        tuple(name for name in tensors if name not in ("X", "W", "R", "sequence_lens")),
        T=T,
        N=N,
        I=I,
        H=layer.op.hidden_size,
        opset=opset,
        dtype=layer.dtype.name,
        lens=(T,) * N if "sequence_lens" in tensors else None,
    )
    model = make_model(case, tensors, constants=_WEIGHTS)
    if node is not None:
        del model.graph.node[0].attribute[:]
        model.graph.node[0].attribute.extend(
            attribute for attribute in node.attribute if attribute.name not in _ARRANGEMENT
        )
    if not static:
        for info in (*model.graph.input, *model.graph.output):
            for axis, dim in zip(CANONICAL.axes_of(info.name), info.type.tensor_type.shape.dim, strict=True):
                if axis in "TN":
                    dim.dim_param = axis
    return bytes(model.SerializeToString())


def _of_ir(run: LayerRun, path: Path, static: bool) -> AloneModel:
    """Read back what `pyrnnx.frontends.openvino.write_model` wrote of a layer."""
    assert run.arrays is not None
    model = load(path)
    (values,) = layer_values(model).values()
    inputs = {}
    for argument, value in values.items():
        for info in model.inputs:
            if {info.name, *info.aliases} & {*value.names}:
                array = rearrange(_given(run, argument), CANONICAL.axes_of(argument), value.axes)
                inputs[info.name] = array.astype(info.dtype)  # lengths have several types in IRs
    shapes = {name: array.shape for name, array in inputs.items()} if static else None
    return AloneModel(
        ModelCase(run.name, path, shapes),
        inputs,
        {output: values[output].axes for output in OUTPUTS if output in values},
    )


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
