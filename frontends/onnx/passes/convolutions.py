"""Pass that turns convolutions over one short axis into products of matrices.

    Conv(X, W, B)  ->  Transpose(Add(MatMul(Unfold(Transpose(X)), W'), B))

ONNX Runtime multiplies the windows of each row of the batch on their own, with one window in each lane of a vector. If
each row has few windows, a product over all rows with packed weights takes half to a tenth of the time. The products
are those of the convolution, summed in another order: both differ by at most 4 * 2**-24 times the sum of the terms'
magnitudes from the exact result (measured, up to 1536 terms).

The number of windows is estimated from the shapes of the model's inputs. Results do not depend on the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.layers import custom_operators

from ..graph.constants import PLAIN, array_of, set_constants, shape_of
from ..graph.walk import Graph, first_output, node_label
from ..messages import copied
from ..onnx_package import import_onnx
from .constants import compute_constants

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from ..graph.constants import Tensor

    Tensors = Mapping[str, Tensor]
# Measured for 1 to 32 rows: up to 8 windows the product is faster, from 16 on as fast; small weights gain nothing.
_MOST_WINDOWS = 8
_FEWEST_WEIGHTS = 4096
_LARGEST = 2**24  # attribute of Unfold
# Operators whose results have the length of the longest input.
_KEEPING = """Abs Add Cast Clip Div Elu Erf Exp Gelu HardSigmoid HardSwish Identity LeakyRelu Log Max Min Mul Neg PRelu
    Pow Reciprocal Relu Selu Sigmoid Softplus Softsign Sqrt Sub Tanh"""


@dataclass(frozen=True)
class _Window:
    """Attributes of an Unfold, with the names that it has for them."""

    kernel: int
    stride: int
    dilation: int
    pad_begin: int
    pad_end: int

    def count(self, length: int) -> int:
        """Return the number of windows in `length` elements."""
        room = length + self.pad_begin + self.pad_end - (self.kernel - 1) * self.dilation - 1
        return room // self.stride + 1

    @property
    def is_element(self) -> bool:
        """Return whether the windows are the elements."""
        return self == _Window(1, 1, 1, 0, 0)


def multiply_windows(proto: ModelProto, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Replace the convolutions of a model in place, and return the values of its new initializers, which it lacks.

    The weights of the convolutions stay.

    Parameters
    ----------
    proto : onnx.ModelProto
    arrays : mapping
        Values of initializers that the model lacks, by name.
    """
    graph = proto.graph
    if not any(node.op_type == "Conv" for node in graph.node):
        return {}
    inputs = {value.name for value in graph.input}
    tensors: dict[str, Tensor] = {
        tensor.name: arrays.get(tensor.name, tensor)
        for tensor in graph.initializer
        if tensor.name not in inputs and not tensor.data_location
    }
    windows = {first_output(node): window for node in graph.node if (window := _window(node, tensors)) is not None}
    if not windows:
        return {}
    tensors |= _computed(proto, arrays, tensors)
    lengths = _lengths(graph, tensors, windows)
    chosen = {name: window for name, window in windows.items() if 0 < lengths.get(name, 0) <= _MOST_WINDOWS}
    if not chosen:
        return {}
    nodes, matrices = list[Any](), dict[str, AnyArray]()
    for node in graph.node:
        window = chosen.get(first_output(node))
        if window is None:
            nodes.append(copied(node))
            continue
        prefix = f"pyrnnx/{node.output[0]}"
        nodes += _product(node, window, prefix)
        matrix = array_of(tensors[node.input[1]], node_label(node)).transpose(2, 1, 0)
        matrices[f"{prefix}/W"] = np.reshape(matrix, (-1, matrix.shape[2]))
    del graph.node[:]
    graph.node.extend(nodes)
    for name, matrix in matrices.items():
        graph.initializer.add(name=name, data_type=import_onnx().TensorProto.FLOAT, dims=matrix.shape)
    if all(entry.domain != custom_operators.DOMAIN for entry in proto.opset_import):
        proto.opset_import.add(domain=custom_operators.DOMAIN, version=1)
    return matrices


def _window(node: Any, tensors: Tensors) -> _Window | None:
    """Return the window of a convolution that can be a product; None for other nodes."""
    is_conv = node.op_type == "Conv" and not node.domain and bool(first_output(node))
    if not is_conv or len(node.input) < 2 or node.input[1] not in tensors:
        return None
    onnx, shape = import_onnx(), shape_of(tensors[node.input[1]])
    if len(shape) != 3 or math.prod(shape) < _FEWEST_WEIGHTS or not _is_float32(tensors[node.input[1]]):
        return None
    try:
        given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    except ValueError:  # an attribute of a function
        return None
    strides, dilations, pads = given.get("strides", [1]), given.get("dilations", [1]), given.get("pads", [0, 0])
    lists = (strides, dilations, pads)
    are_sizes = all(isinstance(sizes, list) and all(isinstance(size, int) for size in sizes) for sizes in lists)
    if not are_sizes or given.pop("auto_pad", b"NOTSET") != b"NOTSET" or given.pop("group", 1) != 1:
        return None
    if [*map(len, lists)] != [1, 1, 2] or given.get("kernel_shape", [*shape[2:]]) != [*shape[2:]]:
        return None
    window = _Window(shape[2], strides[0], dilations[0], *pads)
    fits = min(window.kernel, window.stride, window.dilation) >= 1 and min(pads) >= 0
    return window if fits and max(window.kernel, window.stride, window.dilation, *pads) <= _LARGEST else None


def _is_float32(tensor: Any) -> bool:
    dtype = tensor.dtype if isinstance(tensor, np.ndarray) else PLAIN.get(tensor.data_type)
    return str(dtype) == "float32"


def _product(node: NodeProto, window: _Window, prefix: str) -> list[NodeProto]:
    """Return the nodes that compute a convolution as a product of its windows with its weights."""
    make = import_onnx().helper.make_node
    nodes = [make("Transpose", node.input[:1], [f"{prefix}/X"], name=f"{prefix}/first", perm=[0, 2, 1])]
    if not window.is_element:
        outputs, domain = [f"{prefix}/windows"], custom_operators.DOMAIN
        nodes.append(
            make(custom_operators.UNFOLD, nodes[-1].output, outputs, name=prefix, domain=domain, **vars(window))
        )
    nodes.append(make("MatMul", [nodes[-1].output[0], f"{prefix}/W"], [f"{prefix}/Y"], name=f"{prefix}/multiply"))
    if any(node.input[2:]):
        nodes.append(make("Add", [nodes[-1].output[0], node.input[2]], [f"{prefix}/biased"], name=f"{prefix}/add"))
    return [*nodes, make("Transpose", nodes[-1].output, node.output, name=f"{prefix}/last", perm=[0, 2, 1])]


# Estimated lengths


def _computed(proto: ModelProto, arrays: Mapping[str, AnyArray], tensors: Tensors) -> dict[str, Tensor]:
    """Return other constants that lengths depend on: PyTorch writes pads as a few nodes that compute them."""
    nodes = proto.graph.node
    names = {name for node in nodes if node.op_type in _RULES for name in node.input[1:]}
    names |= {first_output(node) for node in nodes if node.op_type == "Constant"}
    graph = Graph(proto.graph)
    graph.arrays = arrays
    root = set_constants(graph, "")
    compute_constants(root, proto, {root: sorted(names - {*tensors})})
    values = {name: root.constants.tensor(name) for name in names - {*tensors, ""}}
    return {name: value for name, value in values.items() if value is not None and not _is_external(value)}


def _is_external(tensor: Tensor) -> bool:
    return not isinstance(tensor, np.ndarray) and bool(tensor.data_location)


def _lengths(graph: Any, tensors: Tensors, windows: Mapping[str, _Window]) -> dict[str, int]:
    """Return the size of the last axis by name, as far as the inputs' shapes and a few operators show it."""
    lengths, keeping = {}, _KEEPING.split()
    for value in graph.input:
        sizes = value.type.tensor_type.shape.dim
        if len(sizes) and sizes[-1].dim_value > 0:
            lengths[value.name] = sizes[-1].dim_value
    for node in graph.node:
        names = [name for name in node.input if name and name not in tensors]
        if not node.output or node.output[0] in lengths or any(name not in lengths for name in names) or not names:
            continue
        if node.output[0] in windows:
            lengths[node.output[0]] = windows[node.output[0]].count(lengths[names[0]])
        elif node.op_type in keeping:
            lengths[node.output[0]] = max(lengths[name] for name in names)
        elif rule := _RULES.get(node.op_type):
            constants = [_integers(tensors, name) for name in node.input[1:]]
            length = rule(lengths[names[0]], constants)
            if length is not None:
                lengths[node.output[0]] = length
    return lengths


def _integers(tensors: Tensors, name: str) -> list[int]:
    """Return a small constant of integers; empty for other values."""
    if name not in tensors or math.prod(shape_of(tensors[name])) > 64:
        return []
    array = array_of(tensors[name], name)
    return [int(value) for value in array.ravel()] if array.dtype.kind == "i" else []


# Length and constant inputs from the second on -> length of the result; None if it is not known. Values have 3 axes.
Rule = Callable[[int, Sequence[list[int]]], int | None]


def _pad(length: int, constants: Sequence[list[int]]) -> int | None:
    pads = constants[0] if constants else []
    return length + pads[len(pads) // 2 - 1] + pads[-1] if len(pads) > 1 and len(constants) < 3 else None


def _unsqueeze(length: int, constants: Sequence[list[int]]) -> int | None:
    return length if constants and constants[0] and set(constants[0]) <= {0, 1} else None


def _slice(length: int, constants: Sequence[list[int]]) -> int | None:
    if len(constants) < 3 or not all(constants):
        return None
    steps = constants[3] if len(constants) > 3 else [1] * len(constants[2])
    for start, stop, axis, step in zip(*constants[:3], steps, strict=False):
        if axis in (-1, 2):
            length = len(range(length)[start : stop : step or 1])
    return length


_RULES: dict[str, Rule] = {"Pad": _pad, "Unsqueeze": _unsqueeze, "Slice": _slice}
