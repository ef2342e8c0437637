"""The constants of a graph: initializers, and what was computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import FormatError, shortened, shown

from ..onnx_package import import_onnx
from .walk import local_names

if TYPE_CHECKING:
    from onnx import GraphProto, TensorProto

    Tensor: TypeAlias = TensorProto | AnyArray


class Constants:
    """What is constant in one graph, as its nodes see it: in the graph itself, and in those around it.

    A body sees the names of the graphs around it, but for those that it defines itself:

        a = 1, b = 2                    found from the body:  a  1, of the outer graph
          body: b = input, c = 3                              b  none: the body's own, an input
                                                              c  3
    Parameters
    ----------
    graph : onnx.GraphProto
    outer : Constants, optional
        Of the graph around it.
    label : str
        How errors name the model.
    defaults : bool
        Whether inputs that are initializers too count as constants; else they are inputs.
    """

    def __init__(self, graph: GraphProto, outer: Constants | None, label: str, defaults: bool) -> None:
        self._outer, self._label, self._local = outer, label, local_names(graph)
        inputs = set() if defaults else {one.name for one in graph.input}
        # A tensor until its array is asked for: most weights are only passed on.
        self._values: dict[str, Any] = {one.name: one for one in graph.initializer if one.name not in inputs}
        self._given = frozenset(self._values)

    def add(self, values: Mapping[str, Any]) -> None:
        """Results of a node, as arrays or tensors."""
        for value in values.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # the model's own from now on, as `array_of` gives it
        self._values |= values

    def owner(self, name: str) -> Constants | None:
        """The constants that have the name; None where it is no constant."""
        found: Constants | None = self
        while found is not None and name not in found._values:
            found = None if name in found._local else found._outer
        return found

    def value(self, name: str) -> AnyArray | None:
        """The array that a node gets for an input of that name; None where it is no constant.

        Raises
        ------
        FormatError
            A tensor that cannot be read.
        """
        owner = self.owner(name)
        return None if owner is None else owner._array(name)

    def _array(self, name: str) -> AnyArray:
        array = self._values[name] = array_of(self._values[name], self._label)
        return array

    def own(self) -> Iterator[tuple[str, Tensor]]:
        """Those of the graph itself, by name."""
        return iter(self._values.items())

    def computed(self) -> Iterator[tuple[str, Tensor]]:
        """What was added, by name."""
        return ((name, value) for name, value in self._values.items() if name not in self._given)


def named(tensor: Tensor, name: str) -> TensorProto:
    """An onnx.TensorProto of that name; it may be a copy."""
    if isinstance(tensor, np.ndarray):
        made: TensorProto = import_onnx().numpy_helper.from_array(tensor, name)
        return made
    if tensor.name == name:
        return tensor
    copy = type(tensor)()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def without_values(tensor: Tensor, name: str) -> TensorProto:
    """An onnx.TensorProto of that name, element type and shape alone."""
    onnx = import_onnx()
    made: TensorProto
    if isinstance(tensor, np.ndarray):
        element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(object) if tensor.dtype.kind == "U" else tensor.dtype)
        made = onnx.TensorProto(name=name, data_type=element, dims=tensor.shape)
    else:
        made = onnx.TensorProto(name=name, data_type=tensor.data_type, dims=tensor.dims)
    return made


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """The sizes that an onnx.TensorProto declares, or an array has."""
    return tensor.shape if isinstance(tensor, np.ndarray) else tuple(tensor.dims)


def array_of(tensor: Any, label: str) -> AnyArray:
    """The array of an onnx.TensorProto, which nobody can write to, or of what is one already.

    `label` is how errors name the model.

    Raises
    ------
    FormatError
        A tensor that cannot be read.
    """
    if isinstance(tensor, np.ndarray):
        return tensor
    try:
        value: AnyArray = import_onnx().numpy_helper.to_array(tensor)
    except Exception as error:  # of several types, by what is wrong
        raise FormatError(
            f"{label}: the tensor {shown(tensor.name)} cannot be read ({shortened(str(error))})"
        ) from error
    value.flags.writeable = False
    return value
