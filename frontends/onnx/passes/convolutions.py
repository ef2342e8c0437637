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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.layers import custom_operators

from ..graph.constants import Constants, array_of, named, set_constants, shape_of
from ..graph.inference import inferred_types
from ..graph.walk import Graph, first_output, node_label
from ..messages import copied
from ..onnx_package import import_onnx
from .constants import compute_constants

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

# Measured for 1 to 32 rows: up to 8 windows the product is faster, from 16 on as fast; small weights gain nothing.
_MOST_WINDOWS = 8
_FEWEST_WEIGHTS = 4096
_LARGEST = 2**24  # attribute of Unfold
_SIZED = ("Pad", "Reshape", "Slice", "Squeeze", "Unsqueeze")  # whose inputs from the second on set the shape


@dataclass(frozen=True)
class _Window:
    """Attributes of an Unfold, with the names that it has for them."""

    kernel: int
    stride: int
    dilation: int
    pad_begin: int
    pad_end: int


def multiply_windows(proto: ModelProto, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Replace the convolutions of a model in place, and return the values of its new initializers, which it lacks.

    The weights of the convolutions stay; `arrays` are values of initializers that the model lacks.
    """
    graph = proto.graph
    if not any(node.op_type == "Conv" for node in graph.node):
        return {}
    whole = Graph(graph)
    whole.arrays = arrays
    constants: Constants = set_constants(whole, "").constants
    windows = {first_output(node): window for node in graph.node if (window := _window(node, constants)) is not None}
    if not windows:
        return {}
    lengths = _lengths(proto, whole)
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
        weights: Any = constants.tensor(node.input[1])
        matrix = array_of(weights, node_label(node)).transpose(2, 1, 0)
        matrices[f"{prefix}/W"] = np.reshape(matrix, (-1, matrix.shape[2]))
    del graph.node[:]
    graph.node.extend(nodes)
    for name, matrix in matrices.items():
        graph.initializer.add(name=name, data_type=import_onnx().TensorProto.FLOAT, dims=matrix.shape)
    if all(entry.domain != custom_operators.DOMAIN for entry in proto.opset_import):
        proto.opset_import.add(domain=custom_operators.DOMAIN, version=1)
    return matrices


def _window(node: Any, constants: Constants) -> _Window | None:
    """Return the window of a convolution that can be a product; None for other nodes."""
    is_conv = node.op_type == "Conv" and not node.domain and bool(first_output(node))
    tensor = constants.tensor(node.input[1]) if is_conv and len(node.input) > 1 else None
    if tensor is None or len(shape_of(tensor)) != 3 or math.prod(shape_of(tensor)) < _FEWEST_WEIGHTS:
        return None
    if isinstance(tensor, np.ndarray):
        is_float32 = tensor.dtype == np.float32
    else:
        is_float32 = tensor.data_type == tensor.FLOAT and not tensor.data_location
    if not is_float32:
        return None
    onnx, shape = import_onnx(), shape_of(tensor)
    try:
        given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        (stride,), (dilation,) = given.get("strides", [1]), given.get("dilations", [1])
        window = _Window(shape[2], stride, dilation, *given.get("pads", [0, 0]))
        fits = min(window.kernel, stride, dilation) >= 1 and min(window.pad_begin, window.pad_end) >= 0
        fits = fits and max(vars(window).values()) <= _LARGEST
    except (TypeError, ValueError):  # attributes of a function, or wrong ones
        return None
    is_plain = given.get("auto_pad", b"NOTSET") == b"NOTSET" and given.get("group", 1) == 1
    return window if fits and is_plain and given.get("kernel_shape", [*shape[2:]]) == [*shape[2:]] else None


def _product(node: NodeProto, window: _Window, prefix: str) -> list[NodeProto]:
    """Return the nodes that compute a convolution as a product of its windows with its weights."""
    make = import_onnx().helper.make_node
    nodes = [make("Transpose", node.input[:1], [f"{prefix}/X"], name=f"{prefix}/first", perm=[0, 2, 1])]
    if window != _Window(1, 1, 1, 0, 0):
        outputs, domain = [f"{prefix}/windows"], custom_operators.DOMAIN
        nodes.append(
            make(custom_operators.UNFOLD, nodes[-1].output, outputs, name=prefix, domain=domain, **vars(window))
        )
    nodes.append(make("MatMul", [nodes[-1].output[0], f"{prefix}/W"], [f"{prefix}/Y"], name=f"{prefix}/multiply"))
    if any(node.input[2:]):
        nodes.append(make("Add", [nodes[-1].output[0], node.input[2]], [f"{prefix}/biased"], name=f"{prefix}/add"))
    return [*nodes, make("Transpose", nodes[-1].output, node.output, name=f"{prefix}/last", perm=[0, 2, 1])]


def _lengths(proto: ModelProto, graph: Graph) -> dict[str, int]:
    """Return the sizes of last axes by name, as far as onnx infers them from the shapes of the inputs.

    PyTorch writes pads as a few nodes that compute them.
    """
    names = {name for node in graph.node if node.op_type in _SIZED for name in node.input[1:]}
    compute_constants(graph, proto, {graph: sorted(names)})
    proto = copied(proto)
    values = {name: graph.constants.tensor(name) for name in names}
    proto.graph.initializer.extend(named(v, name) for name, v in values.items() if isinstance(v, np.ndarray))
    shapes = inferred_types(proto).shapes
    return {name: shape[-1] for name, shape in shapes.items() if shape and isinstance(shape[-1], int)}
