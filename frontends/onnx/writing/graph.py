"""Builder of an ONNX graph with nodes of any opset, constants and unique names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._version import __version__

from ..onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, ValueInfoProto

Dimension = int | str
AXES_ARE_INPUTS = 13  # first opset in which the axes of Squeeze and Split are an input
SHAPE_IS_INPUT = 5  # first opset in which the shape of Reshape is an input
_OLDEST_IR = 4  # first IR version in which an initializer need not also be an input


class GraphWriter:
    """Builder of an ONNX graph; `dtype` is that of inputs and outputs that are declared without one."""

    def __init__(self, opset: int, dtype: np.dtype[Any]) -> None:
        self.opset, self.dtype = opset, dtype
        self._onnx = import_onnx()
        self._graph: GraphProto = self._onnx.GraphProto()
        self._names: set[str] = set()

    def unique(self, name: str) -> str:
        """Return the name, with a number if a node already has it."""
        unique, number = name, 1
        while unique in self._names:
            unique, number = f"{name}_{number}", number + 1
        self._names.add(unique)
        return unique

    def input(self, name: str, shape: Sequence[Dimension], dtype: DTypeLike | None = None) -> str:
        self._graph.input.append(self._info(name, shape, dtype))
        return name

    def output(self, name: str, shape: Sequence[Dimension]) -> None:
        self._graph.output.append(self._info(name, shape))

    def _info(self, name: str, shape: Sequence[Dimension], dtype: DTypeLike | None = None) -> ValueInfoProto:
        helper = self._onnx.helper
        element_type = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype if dtype is None else dtype))
        info: ValueInfoProto = helper.make_tensor_value_info(name, element_type, list(shape))
        return info

    def constant(self, name: str, array: AnyArray) -> str:
        self._graph.initializer.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def node(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any
    ) -> None:
        """Add a node without absent trailing inputs."""
        names = list(inputs)
        while not names[-1]:
            names.pop()
        self._graph.node.append(self._onnx.helper.make_node(op_type, names, list(outputs), name, **attributes))

    def transpose(self, value: str, perm: Sequence[int], output: str) -> str:
        self.node("Transpose", [value], [output], perm=list(perm))
        return output

    def squeeze(self, value: str, axis: int, output: str) -> str:
        self._with_integers("Squeeze", value, "axes", [axis], [output], AXES_ARE_INPUTS)
        return output

    def reshape(self, value: str, sizes: Sequence[int], output: str) -> str:
        """Add a Reshape, in which size 0 means the size of the same axis."""
        self._with_integers("Reshape", value, "shape", sizes, [output], SHAPE_IS_INPUT)
        return output

    def split(self, value: str, sizes: Sequence[int], outputs: Sequence[str]) -> None:
        self._with_integers("Split", value, "split", sizes, outputs, AXES_ARE_INPUTS, axis=0)

    def _with_integers(
        self,
        op_type: str,
        value: str,
        what: str,
        integers: Sequence[int],
        outputs: Sequence[str],
        since: int,
        **attributes: Any,
    ) -> None:
        """Add a node with a list of integers, an input from the opset `since` on and an attribute before."""
        inputs = [value]
        if self.opset >= since:
            inputs.append(self.constant(f"{value}.{op_type}.{what}", np.array(integers, np.int64)))
        else:
            attributes[what] = list(integers)
        self.node(op_type, inputs, outputs, **attributes)

    def model(self, name: str) -> ModelProto:
        helper = self._onnx.helper
        self._graph.name = name
        opsets = [helper.make_opsetid("", self.opset)]
        result: ModelProto = helper.make_model(
            self._graph,
            opset_imports=opsets,
            ir_version=max(_OLDEST_IR, helper.find_min_ir_version_for(opsets, ignore_unknown=True)),
            producer_name="pyrnnx",
            producer_version=__version__,
        )
        return result
