"""An ONNX model that is to be written: its nodes, constants, layers, and what is known of its values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import FormatError, shortened
from pyrnnx.layer import Layer
from pyrnnx.tensor_info import TensorInfo

from ..translation.onnx_frontend import Model, array_of, import_onnx, read_model, tensor_info

if TYPE_CHECKING:
    from onnx import GraphProto

_FEW = 64  # shape inference looks at the values of constants up to so many elements: shapes, axes


@dataclass(frozen=True, eq=False)
class Source:
    """A folded model.

    Attributes
    ----------
    label : str
        How errors name it.
    graph : onnx.GraphProto
        Its nodes in an order in which they can run.
    opset : int
        Version of the default domain.
    layers : mapping
        Of recurrent nodes, by their names: a Layer where the weights are constants.
    types : mapping
        What is known of values, by their names.
    tensors : mapping
        The constants: an onnx.TensorProto or an array.
    """

    label: str
    graph: GraphProto
    opset: int
    layers: Mapping[str, Layer | Any]
    types: Mapping[str, TensorInfo]
    tensors: Mapping[str, Any]

    def constant(self, name: str) -> AnyArray | None:
        """The array of a constant; None of any other value."""
        return array_of(self.tensors[name], self.label) if name in self.tensors else None


def onnx_model(source: Any, label: str = "") -> Model:
    """The ONNX model that a path, bytes or a ModelProto hold, or that is given; `label` is how errors name it.

    Raises
    ------
    PyrnnxError
        As of that front-end's `read_model`.
    """
    if isinstance(source, Model):
        return source
    return Model(source, label) if label else read_model(source)


def source_of(model: Model) -> Source:
    """What of a model is written.

    Raises
    ------
    PyrnnxError
        As of `model.layers`; a model whose shapes onnx cannot infer, by its size or its faults.
    """
    proto, tensors = model.folded()
    for one in proto.graph.initializer:
        if math.prod(one.dims) <= _FEW:
            one.CopyFrom(import_onnx().numpy_helper.from_array(array_of(tensors[one.name], model.label), one.name))
    try:
        inferred = import_onnx().shape_inference.infer_shapes(proto, data_prop=True)
    except Exception as error:  # of several types, by what is wrong
        raise FormatError(f"{model.label}: its shapes cannot be inferred ({shortened(str(error))})") from error
    graph = proto.graph
    declared = (*inferred.graph.value_info, *inferred.graph.output, *graph.input)
    types = {one.name: tensor_info(model.label, one) for one in declared}
    opset = next((one.version for one in proto.opset_import if not one.domain), 1)
    return Source(model.label, graph, opset, model.layers, types, tensors)
