"""Types and shapes of a model's inputs and outputs, with names of dynamic dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrnnx.errors import UnsupportedError, shown
from pyrnnx.operator.tensor_info import Interval

from ...onnx.graph.inference import infer_shapes
from ...onnx.onnx_package import import_onnx
from ...onnx.recognise.scope import without_weights
from ..ir.element_types import by_precision
from ..ir.layer import NetLayer, Output
from ..ir.variables import Variable
from .graph import Graph, element_type

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


def input_info(graph: Graph, layer: NetLayer, name: str) -> ValueInfoProto:
    """Return the info of a Parameter; its doc_string contains bounds of dynamic dimensions, which ONNX lacks."""
    shape = layer.outputs[0].shape
    if shape is None:
        raise UnsupportedError(
            f"{layer.label}: its rank is dynamic; expected a fixed one, which inputs of ONNX models need"
        )
    names = [f"{name}_dim_{k}" if size is None else size for k, size in enumerate(shape)]
    info: ValueInfoProto = graph.onnx.helper.make_tensor_value_info(name, _element_type(graph, layer, 0), names)
    if layer.shape is not None:
        bounds = [f"{symbol}: {d}" for symbol, d in zip(names, layer.shape, strict=True) if isinstance(d, Interval)]
        info.doc_string = "; ".join(bounds)
    return info


def output_info(graph: Graph, output: Output, name: str) -> ValueInfoProto:
    """Return the info of a value, with the dimensions that its port declares."""
    info: ValueInfoProto = graph.onnx.helper.make_tensor_value_info(
        name, _element_type(graph, output.layer, output.index), output.port.shape
    )
    return info


def variable_info(graph: Graph, variable: Variable, name: str, *, is_input: bool = False) -> ValueInfoProto:
    """Return the info of a variable's value; dynamic dimensions of an input have names."""
    if variable.dtype is None:
        raise UnsupportedError(
            f"{variable.reads[0].label}: the element type of variable {shown(variable.id)} is unknown"
        )
    dims: list[int | str | None] | None = None
    if variable.shape is not None:
        sizes = [size if isinstance(size, int) else None for size in variable.shape]
        dims = [f"{name}_dim_{k}" if size is None and is_input else size for k, size in enumerate(sizes)]
    info: ValueInfoProto = graph.onnx.helper.make_tensor_value_info(name, element_type(variable.dtype), dims)
    return info


def _element_type(graph: Graph, layer: NetLayer, index: int) -> int:
    """Return ONNX's number of the element type; 0 (undefined) if the port has no precision."""
    precision = layer.outputs[index].precision
    if precision is None:
        return 0
    return element_type(by_precision(layer.label, precision).computed_dtype(layer.label).name)


def with_output_dimensions(model: ModelProto) -> ModelProto:
    """Set the outputs' types and shapes by onnx's shape inference, with names of the dynamic dimensions."""
    inferred = {info.name: info.type.tensor_type for info in _inferred(model).graph.output}
    symbols = {dim.dim_param for info in model.graph.input for dim in info.type.tensor_type.shape.dim}
    for info in model.graph.output:
        own, other = info.type.tensor_type, inferred[info.name]
        own.elem_type = own.elem_type or other.elem_type
        # A port without <dim> is a scalar or has any rank. If inference does not know, a scalar is assumed: onnx's
        # checker and OpenVINO's CPU plugin need a rank.
        shape = other.shape if other.HasField("shape") else own.shape
        declared = list(own.shape.dim) if len(own.shape.dim) == len(shape.dim) else [None] * len(shape.dim)
        dims: list[int | str] = []
        for k, (inferred_dim, port_dim) in enumerate(zip(shape.dim, declared, strict=True)):
            dim = _dimension(inferred_dim, port_dim, symbols)
            dims.append(f"{info.name}_dim_{k}" if dim is None else dim)
        own.CopyFrom(import_onnx().helper.make_tensor_type_proto(own.elem_type, dims).tensor_type)
    return model


def _dimension(inferred: Any, declared: Any, symbols: set[str]) -> int | str | None:
    for dim in (inferred, declared):
        if dim is not None and dim.HasField("dim_value"):
            return int(dim.dim_value)
    return str(inferred.dim_param) if inferred.dim_param in symbols else None


def _inferred(model: ModelProto) -> ModelProto:
    light = without_weights(model)
    try:
        # data_prop would take minutes and gigabytes for a cast of 2^27 elements.
        result: ModelProto = infer_shapes(light, strict_mode=True)
    except Exception:  # of several types, for a contradictory model; running it reports the cause
        return light
    return result
