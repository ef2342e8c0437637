"""Builder of ONNX graphs: unique names, shared constants, and types that ONNX Runtime has kernels for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import named_dtype
from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened, shown
from pyrnnx.operator.tensor_info import Interval

from ...onnx.graph.inference import infer_shapes, light_copy
from ...onnx.graph.walk import all_nodes
from ...onnx.onnx_package import import_onnx
from ..ir.element_types import by_precision
from ..ir.layer import NetLayer, Output
from ..ir.variables import Variable

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

OPSET, IR_VERSION = 22, 10
SMALL = 1024  # elements of a constant that is computed at once and cached, as it costs little
LARGEST_MODEL = 2**31 - 1  # bytes of a protobuf message

# Element types that an operator allows but ONNX Runtime has no kernel for; a wider type computes the same.
_SHORT = {"int16": "int32", "uint16": "int32"}
_WIDE = {"uint32": "int64", "uint64": "int64"}
_SMALL = {"int8": "int32", "uint8": "int32", **_SHORT, **_WIDE}
WIDENED: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("Max", "Min", "Clip", "Pad"), _SHORT),
    "Where": {**_SHORT, "uint64": "int64", "bool": "uint8"},
    **dict.fromkeys((f"Reduce{kind}" for kind in ("Max", "Min", "Mean", "Prod", "Sum", "L1", "L2")), _WIDE),
    "CumSum": _WIDE,
    "Einsum": {**_SMALL, "bfloat16": "float32"},
    "Pow": {"int8": "int32", "uint8": "int32", **_SHORT, **_WIDE},
    "ReverseSequence": {"bfloat16": "float32"},
}


@contextmanager
def guarded(label: str, expected: str) -> Iterator[None]:
    """Raise any exception, for example about contradictory attributes, as a PyrnnxError that names `label`."""
    try:
        yield
    except PyrnnxError:
        raise
    except MemoryError as error:
        raise PyrnnxError(f"{label}: a constant exceeds memory ({error})") from error
    except Exception as error:
        reason = f"{type(error).__name__}: {shortened(str(error))}"
        raise FormatError(f"{label}: cannot be translated to ONNX ({reason}); expected {expected}") from error


def element_type(dtype: str) -> int:
    """Return ONNX's number of a NumPy dtype name."""
    onnx = import_onnx()
    return int(onnx.TensorProto.STRING if dtype == "str" else onnx.helper.np_dtype_to_tensor_dtype(named_dtype(dtype)))


class Graph:
    """Nodes in topological order, and the constants that they read."""

    def __init__(self, name: str, reserved: Iterable[str] = ()) -> None:
        self.onnx = import_onnx()
        self.name = name
        self.nodes: list[NodeProto] = []
        self._tensors: dict[str, TensorProto] = {}
        self._by_content: dict[tuple[Any, ...], str] = {}
        self._values: set[str] = {"", *reserved}
        self._node_names: set[str] = {""}
        self._next: dict[str, int] = {}
        self._bytes = [0]  # of all constants; a list, which the graphs of bodies share

    def body(self, name: str) -> Graph:
        """Return a graph for the body of a node, which shares this graph's constants and unique names."""
        inner = copy(self)
        inner.name, inner.nodes = name, []
        return inner

    def value_name(self, wanted: str) -> str:
        """Reserve the name, with a number if a value has it already."""
        return self._unique(wanted or "value", self._values)

    def _unique(self, wanted: str, used: set[str]) -> str:
        name = wanted
        while name in used:
            number = self._next[wanted] = self._next.get(wanted, 0) + 1
            name = f"{wanted}_{number}"
        used.add(name)
        return name

    def constant(self, array: Any, name: str = "constant") -> str:
        """Return the name of an initializer with that content; add one called `name` if there is none yet."""
        array = np.asarray(array)  # of any byte order and layout; ascontiguousarray would add an axis to a scalar
        if array.nbytes > LARGEST_MODEL:
            raise self._too_large()
        data = array.tobytes()
        content = (array.dtype.name, array.shape, hashlib.blake2b(data, digest_size=16).digest())
        if content not in self._by_content:
            self._bytes[0] += len(data)
            if self._bytes[0] > LARGEST_MODEL:
                raise self._too_large()
            unique = self.value_name(name)
            tensor = self.onnx.TensorProto(name=unique, dims=array.shape, data_type=element_type(array.dtype.name))
            tensor.raw_data = data
            self._tensors[unique] = tensor
            self._by_content[content] = unique
        return self._by_content[content]

    def _too_large(self) -> UnsupportedError:
        return UnsupportedError(
            f"{shortened(self.name)}: its constants exceed {LARGEST_MODEL} bytes (2 GB), the limit of an ONNX model "
            "without external data"
        )

    def node(self, op_type: str, inputs: Iterable[str], name: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node without attributes of None; return the names of its outputs, which begin with `name`."""
        names = [self.value_name(f"{name}/{op_type}") for _ in range(outputs)]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        unique = self._unique(f"{name}/{op_type}", self._node_names)
        self.nodes.append(self.onnx.helper.make_node(op_type, list(inputs), names, unique, **attributes))
        return names

    def name_node(self, index: int, wanted: str) -> None:
        """Rename a node, with a number if a node has the name already."""
        self.nodes[index].name = self._unique(wanted, self._node_names)

    def rename(self, old: str, new: str, since: int) -> None:
        """Rename a value in the nodes from index `since`."""
        for node in self.nodes[since:]:
            for names in (node.input, node.output):
                for k, name in enumerate(names):
                    if name == old:
                        names[k] = new

    def proto(self, inputs: Iterable[ValueInfoProto], outputs: Iterable[ValueInfoProto]) -> GraphProto:
        """Return a GraphProto without constants."""
        graph: GraphProto = self.onnx.GraphProto(name=self.name)
        graph.node.extend(self.nodes)
        graph.input.extend(inputs)
        graph.output.extend(outputs)
        return graph

    def model(self, inputs: Iterable[ValueInfoProto], outputs: Iterable[ValueInfoProto]) -> ModelProto:
        """Return the model, with the constants that a node reads or that are outputs."""
        helper, graph = self.onnx.helper, self.proto(inputs, outputs)
        nodes = list(all_nodes(graph.node))
        used = {name for node in nodes for name in node.input} | {info.name for info in graph.output}
        graph.initializer.extend(tensor for name, tensor in self._tensors.items() if name in used)
        domains = {"": OPSET, **{node.domain: 1 for node in nodes if node.domain}}
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        model: ModelProto = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="pyrnnx"
        )
        return model


# Types and shapes of inputs and outputs, with names of dynamic dimensions


def input_info(layer: NetLayer, name: str) -> ValueInfoProto:
    """Return the info of a Parameter; its doc_string contains bounds of dynamic dimensions, which ONNX lacks."""
    shape = layer.outputs[0].shape
    if shape is None:
        raise UnsupportedError(
            f"{layer.label}: its rank is dynamic; expected a fixed one, which inputs of ONNX models need"
        )
    names = _named(name, shape)
    info: ValueInfoProto = import_onnx().helper.make_tensor_value_info(name, _port_type(Output(layer, 0)), names)
    if layer.shape is not None:
        bounds = [f"{symbol}: {d}" for symbol, d in zip(names, layer.shape, strict=True) if isinstance(d, Interval)]
        info.doc_string = "; ".join(bounds)
    return info


def output_info(output: Output, name: str) -> ValueInfoProto:
    """Return the info of a value, with the dimensions that its port declares."""
    make_info = import_onnx().helper.make_tensor_value_info
    info: ValueInfoProto = make_info(name, _port_type(output), output.port.shape)
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


def _port_type(output: Output) -> int:
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
