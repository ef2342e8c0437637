"""Inputs of a layer in translation: names of values, constants, element types and shapes."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import FormatError, UnsupportedError, shown

from ..ir.element_types import by_name, by_precision
from ..ir.layer import NetLayer, Output
from ..ir.ports import MAX_RANK
from ..layers import IRLayer
from .attributes import HIGHEST, LOWEST, REQUIRED, Attributes
from .graph import Graph

Dims = tuple[int | None, ...]
END, BEGIN = 2**63 - 1, -(2**63)  # end of a slice at the end of its axis, or backwards at the beginning


class ValueNames:
    """The names of ONNX values by outputs of layers; initializers of constants are added on first use."""

    def __init__(self, graph: Graph, constant: Callable[[Output], AnyArray | None]) -> None:
        self.graph, self.array = graph, constant
        self.names: MutableMapping[Output, str] = {}

    def name(self, output: Output) -> str:
        """Return the name of a value."""
        if output not in self.names:
            array = self.array(output)
            if array is None:  # layers come in topological order: only an output that the operation lacks is unknown
                raise FormatError(
                    f"{output.layer.label}: output port {output.port.id} is connected, but the operation lacks it"
                )
            if output.layer.type == "Const":
                output.layer.const_data.element_type.computed_dtype(output.layer.label)
            self.names[output] = self.graph.constant(array, output.layer.name)
        return self.names[output]


class LayerInputs(Attributes):
    """The attributes and inputs of a layer in translation.

    Parameters
    ----------
    layer : NetLayer
    values : ValueNames
    used : callable
        Function that returns whether anything reads the k-th output.
    recurrent : IRLayer, optional
        Declaration of a recurrent layer.
    """

    def __init__(
        self, layer: NetLayer, values: ValueNames, used: Callable[[int], bool], recurrent: IRLayer | None = None
    ) -> None:
        self.graph, self.used = values.graph, used
        self.recurrent = recurrent
        self._values = values
        super().__init__(layer)

    @property
    def opset(self) -> int:
        return self.layer.opset

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self.layer.sources)

    def __getitem__(self, k: int) -> str:
        """Return the name of the k-th input's value."""
        self._need(k)
        return self._values.name(self.layer.sources[k])

    @property
    def inputs(self) -> list[str]:
        return [self[k] for k in range(len(self))]

    def exactly(self, count: int) -> list[str]:
        """Return all inputs; raise unless there are `count`."""
        if len(self) != count:
            raise FormatError(f"{self.label}: the layer has {len(self)} inputs; expected {count}")
        return self.inputs

    def has(self, k: int) -> bool:
        return k < len(self.layer.sources)

    def _need(self, k: int) -> None:
        if not self.has(k):
            raise FormatError(f"{self.label}: input {k} is missing; the layer has {len(self)}")

    def array(self, k: int) -> AnyArray | None:
        """Return the k-th input's value; None if it depends on the model's inputs."""
        self._need(k)
        return self._values.array(self.layer.sources[k])

    def array_of(self, output: Output) -> AnyArray | None:
        """Return the value of any layer's output; None if it depends on the model's inputs."""
        return self._values.array(output)

    def overridable_values(self) -> ValueNames:
        """Return a copy of the names, in which outputs can have other values."""
        values = ValueNames(self.graph, self._values.array)
        values.names = ChainMap({}, self._values.names)
        return values

    def name_of(self, output: Output) -> str:
        """Return the name of the value of an earlier layer's output."""
        return self._values.name(output)

    def constant_input(self, k: int, what: str) -> AnyArray:
        """Return the k-th input's value; raise an UnsupportedError if it depends on the model's inputs."""
        array = self.array(k)
        if array is None:
            source = self.layer.sources[k].layer.label
            raise UnsupportedError(
                f"{self.label}: {what} (input {k}) is computed by {source} from the model's inputs; expected a "
                "constant, which the translation to ONNX needs"
            )
        return array

    def integers(
        self, k: int, what: str, *, count: int | None = None, low: int = LOWEST, high: int = HIGHEST
    ) -> list[int]:
        """Return the k-th input, a list of `count` integers or a scalar; without `count`, at most `MAX_RANK`."""
        values = self._integers(k, self.constant_input(k, what), what)
        if len(values) != count and (count is not None or len(values) > MAX_RANK):
            expected = f"at most {MAX_RANK}" if count is None else count
            raise FormatError(f"{self.label}: {what} (input {k}) has {len(values)} values; expected {expected}")
        listed: list[int] = values.tolist()
        if any(not low <= value <= high for value in listed):
            raise FormatError(
                f"{self.label}: {what} (input {k}) is {shown(listed)}; expected integers from {low} to {high}"
            )
        return listed

    def _integers(self, k: int, array: AnyArray, what: str = "the value") -> AnyArray:
        """Return integers one-dimensional, as int64."""
        if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and (array > HIGHEST).any()):
            raise FormatError(
                f"{self.label}: {what} (input {k}) is {shown(array.reshape(-1)[:8])} of {array.dtype}; "
                "expected integers in the range of int64"
            )
        return array.reshape(-1).astype(np.int64)

    def integer(self, k: int, what: str, *, low: int = LOWEST, high: int = HIGHEST) -> int:
        return self.integers(k, what, count=1, low=low, high=high)[0]

    def element(self, k: int, what: str) -> AnyArray | None:
        """Return the k-th input, of one element, without axes; None if it is computed at run time."""
        array = self.array(k)
        if array is not None and array.size != 1:
            raise FormatError(f"{self.label}: {what} (input {k}) has shape {array.shape}; expected one element")
        return None if array is None else array.reshape(())

    def number_input(self, k: int, what: str) -> float:
        """Return the k-th input, a constant of one element that is not NaN."""
        self.constant_input(k, what)
        value = float(self.element(k, what))  # type: ignore[arg-type]  # it is constant
        if np.isnan(value):
            raise FormatError(f"{self.label}: {what} (input {k}) is NaN; expected a number")
        return value

    def dtype(self, k: int) -> str:
        """Return the NumPy name of the k-th input's dtype."""
        self._need(k)
        source = self.layer.sources[k]
        precision = source.port.precision or self.layer.inputs[k].precision
        if precision is None:
            array = self.array(k)
            if array is not None:
                return array.dtype.name
        return self._dtype(precision, f"input {k}")

    def output_dtype(self, k: int = 0) -> str:
        if k >= len(self.layer.outputs):
            raise FormatError(f"{self.label}: output {k} is missing; the layer has {len(self.layer.outputs)}")
        return self._dtype(self.layer.outputs[k].precision, f"output {k}")

    def _dtype(self, precision: str | None, what: str) -> str:
        if precision is None:
            raise FormatError(f"{self.label}: {what} has no precision, which the translation to ONNX needs")
        return by_precision(self.label, precision).computed_dtype(self.label).name

    def type_attribute(self, name: str, default: Any = REQUIRED) -> str:
        """Return the NumPy name of an attribute's element type."""
        return by_name(self.label, self.text(name, default)).computed_dtype(self.label).name

    def stored(self, k: int) -> AnyArray | None:
        """Return the k-th input if it is a constant of an element type that only constants have."""
        self._need(k)
        layer = self.layer.sources[k].layer
        return self.array(k) if layer.type == "Const" and layer.const_data.element_type.stored_only else None

    def shape(self, k: int) -> Dims | None:
        """Return the k-th input's shape as far as it is known; None if the rank is unknown."""
        self._need(k)
        source = self.layer.sources[k]
        declared = source.port.shape
        if declared is None:
            declared = self.layer.inputs[k].shape
        if declared is None or None in declared:
            array = self.array(k)
            if array is not None:
                return tuple(array.shape)
        return declared

    def rank(self, k: int, *, low: int = 0) -> int:
        """Return the rank of the k-th input."""
        shape = self.shape(k)
        if shape is None:
            raise UnsupportedError(f"{self.label}: the rank of input {k} is unknown; the translation to ONNX needs it")
        if len(shape) < low:
            raise FormatError(f"{self.label}: input {k} has shape {shape}; expected {low} dimensions or more")
        return len(shape)

    def length(self, k: int, what: str) -> int | None:
        """Return the length of the k-th input, a list; 1 for a scalar, None if it is unknown."""
        shape = self.shape(k)
        if shape is None:
            return None
        if len(shape) > 1 or (shape and shape[0] is not None and shape[0] > MAX_RANK):
            raise FormatError(
                f"{self.label}: {what} (input {k}) has shape {shape}; expected a list of at most {MAX_RANK}"
            )
        return shape[0] if shape else 1

    def axis(self, value: int, rank: int, what: str = "axis") -> int:
        """Return an axis from 0 to rank - 1."""
        if not -rank <= value < rank:
            raise FormatError(f"{self.label}: {what} is {value}; expected {-rank} to {rank - 1}")
        return value % rank

    def axes(self, values: Sequence[int], rank: int, what: str = "axes") -> list[int]:
        """Return distinct axes, each from 0 to rank - 1."""
        axes = [self.axis(value, rank, what) for value in values]
        if len(set(axes)) != len(axes):
            raise FormatError(f"{self.label}: {what} is {list(values)}; expected each axis once")
        return axes

    def axis_of(self, value: int, k: int, what: str = "axis", *, extra: int = 0) -> int:
        """Return `value`, an axis of the k-th input with `extra` axes; raise if it exceeds a known rank."""
        shape = self.shape(k)
        if shape is not None:
            self.axis(value, len(shape) + extra, what)
        return value
