"""Constants that are too large to be folded: what every call will need for them, told without computing any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.dtypes import AnyArray

from ..onnx_package import import_onnx
from .sizes import expected_bytes

if TYPE_CHECKING:
    from onnx import NodeProto

# Shape inference looks at the values of arrays up to so many elements; the values of a stand-in mean nothing, so that
# none is as small.
_FEW = 64


def stand_ins(
    node: NodeProto, inputs: Sequence[AnyArray | None], opsets: Mapping[str, int]
) -> tuple[dict[str, AnyArray], int]:
    """Arrays of the dtypes and shapes of the results, which take no memory; and the bytes that the results will take.

    Nothing and 0 where onnx's shape inference does not tell them.
    """
    onnx = import_onnx()
    names = [name for name in node.input if name]
    arrays = dict(zip(names, (one for one in inputs if one is not None), strict=True))
    try:
        element = onnx.helper.np_dtype_to_tensor_dtype
        types = {name: onnx.helper.make_tensor_type_proto(element(a.dtype), a.shape) for name, a in arrays.items()}
        small = {name: onnx.numpy_helper.from_array(a, name) for name, a in arrays.items() if a.size <= _FEW}
        schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
        imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        found = onnx.shape_inference.infer_node_outputs(schema, node, types, small, opset_imports=imports)
        results = {name: _stand_in(onnx, one) for name, one in found.items()}
    except Exception:  # whatever is wrong will be raised when the model is called
        return {}, 0
    known = {name: one for name, one in results.items() if one is not None}
    size = min(expected_bytes(node, inputs) or 0, sum(one.nbytes for one in known.values()))
    return {name: one for name, one in known.items() if one.size > _FEW}, size


def _stand_in(onnx: Any, declared: Any) -> AnyArray | None:
    tensor = declared.tensor_type
    shape = [one.dim_value if one.HasField("dim_value") else -1 for one in tensor.shape.dim]
    if not tensor.HasField("shape") or min(shape, default=0) < 0:
        return None
    return np.broadcast_to(np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)), shape)
