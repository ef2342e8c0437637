"""Builder of an ONNX graph with nodes of any opset, constants and unique names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._version import __version__
from pyrnnx.errors import ArgumentError, shortened, shown

from ..onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

Dimension = int | str
AXES_ARE_INPUTS = 13  # first opset in which the axes of Squeeze and Split are an input
SHAPE_IS_INPUT = 5  # first opset in which the shape of Reshape is an input
_OLDEST_IR = 4  # first IR version in which an initializer need not also be an input


class GraphWriter:
    """Builder of an ONNX graph.

    Attributes
    ----------
    label : str
        Name in error messages.
    opset : int
        Opset of the default domain.
    dtype : numpy.dtype
        Dtype of inputs and outputs that are declared without one.
    """

    def __init__(self, label: str, opset: int, dtype: np.dtype[Any]) -> None:
        self.label, self.opset, self.dtype = label, opset, dtype
        self._onnx = import_onnx()
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._names: set[str] = set()

    def unique(self, name: str) -> str:
        """Return the name, with a number if a node already has it."""
        unique, number = self._text(name), 1
        while unique in self._names:
            unique, number = f"{name}_{number}", number + 1
        self._names.add(unique)
        return unique

    def _text(self, name: str) -> str:
        """Return the name; raise if UTF-8 cannot encode it, because protobuf requires that."""
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(f"{self.label}: the name {shown(name)} cannot be written ({error})") from None
        return name

    def input(self, name: str, shape: Sequence[Dimension], dtype: DTypeLike | None = None) -> str:
        """Declare an input and return its name."""
        self._inputs.append(self._info(name, shape, dtype))
        return name

    def output(self, name: str, shape: Sequence[Dimension]) -> None:
        """Declare an output."""
        self._outputs.append(self._info(name, shape))

    def _info(self, name: str, shape: Sequence[Dimension], dtype: DTypeLike | None = None) -> ValueInfoProto:
        helper = self._onnx.helper
        element_type = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype if dtype is None else dtype))
        info: ValueInfoProto = helper.make_tensor_value_info(name, element_type, list(shape))
        return info

    def constant(self, name: str, array: AnyArray) -> str:
        """Add an initializer and return its name."""
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str, **attributes: Any) -> None:
        """Add a node without absent trailing inputs."""
        names = list(inputs)
        while not names[-1]:
            names.pop()
        self._nodes.append(self._onnx.helper.make_node(op_type, names, list(outputs), name, **attributes))

    def transpose(self, value: str, perm: Sequence[int], output: str) -> str:
        """Add a Transpose and return the name of its output."""
        self.node("Transpose", [value], [output], self.unique(f"{output}.Transpose"), perm=list(perm))
        return output

    def squeeze(self, value: str, axis: int, output: str) -> str:
        """Add a Squeeze of an axis of length 1 and return the name of its output."""
        self._with_integers("Squeeze", value, "axes", [axis], [output], f"{output}.Squeeze", AXES_ARE_INPUTS)
        return output

    def reshape(self, value: str, sizes: Sequence[int], output: str) -> str:
        """Add a Reshape, in which size 0 means the size of the same axis, and return the name of its output."""
        self._with_integers("Reshape", value, "shape", sizes, [output], f"{output}.Reshape", SHAPE_IS_INPUT)
        return output

    def split(self, value: str, sizes: Sequence[int], outputs: Sequence[str]) -> None:
        """Add a Split into parts of these sizes along the first axis."""
        self._with_integers("Split", value, "split", sizes, outputs, f"{value}.Split", AXES_ARE_INPUTS, axis=0)

    def concat(self, values: Sequence[str], output: str) -> None:
        """Add a Concat along the first axis."""
        self.node("Concat", values, [output], self.unique(f"{output}.Concat"), axis=0)

    def _with_integers(
        self,
        op_type: str,
        value: str,
        what: str,
        integers: Sequence[int],
        outputs: Sequence[str],
        name: str,
        since: int,
        **attributes: Any,
    ) -> None:
        """Add a node with a list of integers, an input from the opset `since` on and an attribute before."""
        inputs = [value]
        if self.opset >= since:
            inputs.append(self.constant(f"{name}.{what}", np.array(integers, np.int64)))
        else:
            attributes[what] = list(integers)
        self.node(op_type, inputs, outputs, self.unique(name), **attributes)

    def model(self, name: str) -> ModelProto:
        """Return a model of the graph."""
        helper = self._onnx.helper
        try:
            graph = helper.make_graph(
                self._nodes, self._text(name), self._inputs, self._outputs, initializer=self._constants
            )
            opsets = [helper.make_opsetid("", self.opset)]
            oldest = max(_OLDEST_IR, helper.find_min_ir_version_for(opsets, ignore_unknown=True))
            result: ModelProto = helper.make_model(
                graph,
                opset_imports=opsets,
                ir_version=oldest,
                producer_name="pyrnnx",
                producer_version=__version__,
            )
        except (ValueError, MemoryError) as error:  # its size
            raise ArgumentError(f"{self.label}: the model cannot be built ({shortened(str(error))})") from error
        return result
