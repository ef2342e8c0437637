"""Stand-ins for constants that are too large to fold: dtype, shape and bytes, without values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ..onnx_package import import_onnx
from .sizes import expected_bytes
from .walk import Node

if TYPE_CHECKING:
    from onnx import TypeProto

# Shape inference reads the values of arrays up to this size; stand-ins are larger, as their values mean nothing.
_FEW = 64


def stand_ins(
    node: Node, inputs: Sequence[AnyArray | None], opsets: Mapping[str, int]
) -> tuple[dict[str, AnyArray], int]:
    """Return arrays of the results' dtypes and shapes that take no memory, and the bytes of the results.

    If onnx's shape inference fails, there are no arrays and 0 bytes.
    """
    onnx = import_onnx()
    names = [name for name in node.input if name]
    arrays = dict(zip(names, (array for array in inputs if array is not None), strict=True))
    try:
        element = onnx.helper.np_dtype_to_tensor_dtype
        types = {name: onnx.helper.make_tensor_type_proto(element(a.dtype), a.shape) for name, a in arrays.items()}
        small = {name: onnx.numpy_helper.from_array(a, name) for name, a in arrays.items() if a.size <= _FEW}
        schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
        imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        types_of_results = onnx.shape_inference.infer_node_outputs(
            schema, node.proto, types, small, opset_imports=imports
        )
        results = {name: _stand_in(onnx, declared) for name, declared in types_of_results.items()}
    except Exception:  # a call of the model raises the error
        return {}, 0
    known = {name: array for name, array in results.items() if array is not None}
    size = min(expected_bytes(node, inputs) or 0, sum(array.nbytes for array in known.values()))
    return {name: array for name, array in known.items() if array.size > _FEW}, size


def _stand_in(onnx: Any, declared: TypeProto) -> AnyArray | None:
    tensor = declared.tensor_type
    shape = [size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim]
    if not tensor.HasField("shape") or min(shape, default=0) < 0:
        return None
    return np.broadcast_to(np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)), shape)
