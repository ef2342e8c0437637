"""Types and shapes of a model's inputs and outputs, with names of dynamic dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import UnsupportedError, shown
from pyrnnx.operator.tensor_info import Interval

from ...onnx.graph.inference import infer_shapes, light_copy
from ...onnx.onnx_package import import_onnx
from ..ir.element_types import by_precision
from ..ir.layer import NetLayer, Output
from ..ir.variables import Variable
from .graph import element_type

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto


def input_info(layer: NetLayer, name: str) -> ValueInfoProto:
    """Return the info of a Parameter; its doc_string contains bounds of dynamic dimensions, which ONNX lacks."""
    shape = layer.outputs[0].shape
    if shape is None:
        raise UnsupportedError(
            f"{layer.label}: its rank is dynamic; expected a fixed one, which inputs of ONNX models need"
        )
    names = _named(name, shape)
    info: ValueInfoProto = import_onnx().helper.make_tensor_value_info(name, _element_type(Output(layer, 0)), names)
    if layer.shape is not None:
        bounds = [f"{symbol}: {d}" for symbol, d in zip(names, layer.shape, strict=True) if isinstance(d, Interval)]
        info.doc_string = "; ".join(bounds)
    return info


def output_info(output: Output, name: str) -> ValueInfoProto:
    """Return the info of a value, with the dimensions that its port declares."""
    make_info = import_onnx().helper.make_tensor_value_info
    info: ValueInfoProto = make_info(name, _element_type(output), output.port.shape)
    return info


def variable_info(variable: Variable, name: str, *, is_input: bool = False) -> ValueInfoProto:
    """Return the info of a variable's value; dynamic dimensions of an input have names."""
    if variable.dtype is None:
        raise UnsupportedError(
            f"{variable.reads[0].label}: the element type of variable {shown(variable.id)} is unknown"
        )
    sizes = None
    if variable.shape is not None:
        sizes = [size if isinstance(size, int) else None for size in variable.shape]
    dims = _named(name, sizes) if is_input and sizes is not None else sizes
    info: ValueInfoProto = import_onnx().helper.make_tensor_value_info(name, element_type(variable.dtype), dims)
    return info


def _named(name: str, shape: Sequence[int | None]) -> list[int | str]:
    return [f"{name}_dim_{k}" if size is None else size for k, size in enumerate(shape)]


def _element_type(output: Output) -> int:
    """Return ONNX's number of the element type; 0 (undefined) if the port has no precision."""
    precision, label = output.port.precision, output.layer.label
    return 0 if precision is None else element_type(by_precision(label, precision).computed_dtype(label).name)


def with_output_dimensions(model: ModelProto) -> ModelProto:
    """Set the outputs' types and shapes by onnx's shape inference, with names of the dynamic dimensions."""
    light = light_copy(model)
    with suppress(Exception):  # of several types, for a contradictory model; running it reports the cause
        # data_prop would take minutes and gigabytes for a cast of 2^27 elements.
        light = infer_shapes(light, strict_mode=True)
    inferred = {info.name: info.type.tensor_type for info in light.graph.output}
    symbols = {dim.dim_param for info in model.graph.input for dim in info.type.tensor_type.shape.dim}
    for info in model.graph.output:
        own, other = info.type.tensor_type, inferred[info.name]
        # A port without <dim> is a scalar or has any rank. If inference does not know, a scalar is assumed: onnx's
        # checker and OpenVINO's CPU plugin need a rank.
        shape = other.shape if other.HasField("shape") else own.shape
        declared = own.shape.dim if len(own.shape.dim) == len(shape.dim) else [None] * len(shape.dim)
        dims = [_dimension(pair, symbols) for pair in zip(shape.dim, declared, strict=True)]
        make_type = import_onnx().helper.make_tensor_type_proto
        own.CopyFrom(make_type(own.elem_type or other.elem_type, _named(info.name, dims)).tensor_type)
    return model


def _dimension(pair: Sequence[Any], symbols: set[str]) -> Any:
    """Return the size that shape inference or the port tells, else the name of an input's dimension, or None."""
    sizes = [dim.dim_value for dim in pair if dim is not None and dim.HasField("dim_value")]
    return sizes[0] if sizes else pair[0].dim_param if pair[0].dim_param in symbols else None
