"""ONNX models to write: nodes, constants, layers, and types of values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, shortened
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.tensor_info import TensorInfo

from ..translation.onnx_frontend import Model, Tensors, array_of, import_onnx, read_model, tensor_info

if TYPE_CHECKING:
    from onnx import GraphProto

_SMALL = 64  # elements of constants whose values shape inference needs: shapes, axes


@dataclass(frozen=True, eq=False)
class Source:
    """A folded model.

    Attributes
    ----------
    label : str
        Name of the model in errors.
    graph : onnx.GraphProto
        Graph with its nodes in topological order.
    opset : int
        Version of the default domain.
    layers : mapping
        Layers of recurrent nodes, by name: a Layer if the weights are constant.
    types : mapping
        Types and shapes of values, by name.
    tensors : mapping
        Constants by name: an onnx.TensorProto or an array.
    """

    label: str
    graph: GraphProto
    opset: int
    layers: Mapping[str, Layer | Any]
    types: Mapping[str, TensorInfo]
    tensors: Tensors

    def constant(self, name: str) -> AnyArray | None:
        """Return the array of a constant; None for any other value."""
        return array_of(self.tensors[name], self.label) if name in self.tensors else None


def onnx_model(source: Any, label: str = "") -> Model:
    """Return a model, or read one from a path, bytes or a ModelProto; `label` is its name in errors.

    Raises
    ------
    PyrnnxError
        As in the ONNX front-end's `read_model`.
    """
    if isinstance(source, Model):
        return source
    return Model(source, label) if label else read_model(source)


def source_of(model: Model) -> Source:
    """Fold a model and infer its types.

    Raises
    ------
    PyrnnxError
        As in `model.layers`; or shape inference fails, because the model is too large or faulty.
    """
    proto, tensors = model.folded()
    for tensor in proto.graph.initializer:
        if math.prod(tensor.dims) <= _SMALL:
            array = array_of(tensors[tensor.name], model.label)
            tensor.CopyFrom(import_onnx().numpy_helper.from_array(array, tensor.name))
    try:
        inferred = import_onnx().shape_inference.infer_shapes(proto, data_prop=True)
    except Exception as error:  # of several types
        raise FormatError(f"{model.label}: its shapes cannot be inferred ({shortened(str(error))})") from error
    graph = proto.graph
    declared = (*inferred.graph.value_info, *inferred.graph.output, *graph.input)
    types = {info.name: tensor_info(model.label, info) for info in declared}
    opset = next((row.version for row in proto.opset_import if not row.domain), 1)
    return Source(model.label, graph, opset, model.layers, types, tensors)
