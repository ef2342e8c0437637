"""What a translator gets: one layer of an IR, its attributes and inputs, and the graph that its nodes go to."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import numpy as np

from pyrnnx.dtypes import INTEGERS, AnyArray, named_dtype
from pyrnnx.errors import FormatError, UnsupportedError, shown

from ..ir.element_types import by_name, by_precision
from ..ir.layer import NetLayer, Output
from ..ir.ports import MAX_RANK
from ..layers import IRLayer
from .attributes import HIGHEST, LOWEST, REQUIRED, Attributes
from .graph import SMALL, WIDENED, Graph

Dims = tuple[int | None, ...]
END, BEGIN = 2**63 - 1, -(2**63)  # ends of a slice that reaches to the end, or backwards to the beginning, of its axis


class ValueNames:
    """The ONNX values that stand for the outputs of layers; those of constants are made when they are asked for."""

    def __init__(self, graph: Graph, constant: Callable[[Output], AnyArray | None]) -> None:
        self.graph, self.array = graph, constant
        self.names: MutableMapping[Output, str] = {}

    def name(self, output: Output) -> str:
        if output not in self.names:
            array = self.array(output)
            if array is None:  # layers come in topological order: only an output that the operation lacks is unknown
                raise FormatError(
                    f"{output.layer.label}: output port {output.port.id} is connected, and gives no value there"
                )
            if output.layer.type == "Const":
                output.layer.const_data.element_type.computed_dtype(output.layer.label)
            self.names[output] = self.graph.constant(array, output.layer.name)
        return self.names[output]


class LayerContext(Attributes):
    """A layer that is being translated.

    Parameters
    ----------
    layer : NetLayer
    values : ValueNames
    used : callable
        Whether anything takes the k-th output.
    recurrent : IRLayer, optional
        What the layer is, if it is a recurrent one.
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

    # inputs

    def __len__(self) -> int:
        """The number of inputs."""
        return len(self.layer.sources)

    def __getitem__(self, k: int) -> str:
        """The name of the k-th input's value."""
        self._need(k)
        return self._values.name(self.layer.sources[k])

    @property
    def inputs(self) -> list[str]:
        return [self[k] for k in range(len(self))]

    def exactly(self, count: int) -> list[str]:
        """All inputs, of which there must be `count`."""
        if len(self) != count:
            raise FormatError(f"{self.label}: the layer has {len(self)} inputs; expected {count}")
        return self.inputs

    def has(self, k: int) -> bool:
        return k < len(self.layer.sources)

    def _need(self, k: int) -> None:
        if not self.has(k):
            raise FormatError(f"{self.label}: input {k} is missing; the layer has {len(self)}")

    def array(self, k: int) -> AnyArray | None:
        """The k-th input's value if it does not depend on the model's inputs."""
        self._need(k)
        return self._values.array(self.layer.sources[k])

    def array_of(self, output: Output) -> AnyArray | None:
        """The value of any layer's output if it does not depend on the model's inputs."""
        return self._values.array(output)

    def values_apart(self) -> ValueNames:
        """Where outputs can be given other values than they have."""
        values = ValueNames(self.graph, self._values.array)
        values.names = ChainMap({}, self._values.names)
        return values

    def name_of(self, output: Output) -> str:
        """The name of the value of an output of a layer before this one."""
        return self._values.name(output)

    def constant_input(self, k: int, what: str) -> AnyArray:
        """The k-th input's value.

        Raises
        ------
        UnsupportedError
            It depends on the model's inputs.
        """
        array = self.array(k)
        if array is None:
            source = self.layer.sources[k].layer.label
            raise UnsupportedError(
                f"{self.label}: {what} (input {k}) is computed by {source} from the model's inputs; to be translated "
                "to ONNX it must be constant"
            )
        return array

    def integers(
        self, k: int, what: str, *, count: int | None = None, low: int = LOWEST, high: int = HIGHEST
    ) -> list[int]:
        """The k-th input, a list of `count` integers or a scalar (one integer); by default at most `MAX_RANK`."""
        values = self._integers(k, self.constant_input(k, what), what)
        if len(values) != count and (count is not None or len(values) > MAX_RANK):
            expected = f"at most {MAX_RANK}" if count is None else count
            raise FormatError(f"{self.label}: {what} (input {k}) has {len(values)} values; expected {expected}")
        listed: list[int] = values.tolist()
        if any(not low <= one <= high for one in listed):
            raise FormatError(
                f"{self.label}: {what} (input {k}) is {shown(listed)}; expected integers from {low} to {high}"
            )
        return listed

    def _integers(self, k: int, array: AnyArray, what: str = "the value") -> AnyArray:
        """One-dimensional, as int64."""
        if array.dtype.kind not in "iu" or (array.dtype == np.uint64 and (array > HIGHEST).any()):
            raise FormatError(
                f"{self.label}: {what} (input {k}) is {shown(array.reshape(-1)[:8])} of {array.dtype}; "
                "expected integers of at most 64 bits with sign"
            )
        return array.reshape(-1).astype(np.int64)

    def integer(self, k: int, what: str, *, low: int = LOWEST, high: int = HIGHEST) -> int:
        return self.integers(k, what, count=1, low=low, high=high)[0]

    def element(self, k: int, what: str) -> AnyArray | None:
        """The k-th input, which has one element, without axes; None where it is computed at run time."""
        array = self.array(k)
        if array is not None and array.size != 1:
            raise FormatError(f"{self.label}: {what} (input {k}) has shape {array.shape}; expected one element")
        return None if array is None else array.reshape(())

    def number_input(self, k: int, what: str) -> float:
        """The k-th input, which is constant and has one element; not NaN."""
        self.constant_input(k, what)
        value = float(self.element(k, what))  # type: ignore[arg-type]  # it is constant
        if np.isnan(value):
            raise FormatError(f"{self.label}: {what} (input {k}) is NaN; expected a number")
        return value

    # element types and shapes

    def dtype(self, k: int) -> str:
        """NumPy name of the k-th input's dtype."""
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
            raise FormatError(f"{self.label}: {what} has no precision; expected one, to translate the layer")
        return by_precision(self.label, precision).computed_dtype(self.label).name

    def type_attribute(self, name: str, default: Any = REQUIRED) -> str:
        """An attribute that names an element type, as a NumPy name."""
        return by_name(self.label, self.text(name, default)).computed_dtype(self.label).name

    def stored(self, k: int) -> AnyArray | None:
        """The k-th input if it is a constant of an element type that nothing is computed in."""
        self._need(k)
        layer = self.layer.sources[k].layer
        return self.array(k) if layer.type == "Const" and layer.const_data.element_type.stored_only else None

    def shape(self, k: int) -> Dims | None:
        """The k-th input's shape as far as it is known; None where its rank is not."""
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
        """
        Raises
        ------
        UnsupportedError
            The rank is not known.
        FormatError
            It is below `low`.
        """
        shape = self.shape(k)
        if shape is None:
            raise UnsupportedError(f"{self.label}: the rank of input {k} is not known; to be translated it must be")
        if len(shape) < low:
            raise FormatError(f"{self.label}: input {k} has shape {shape}; expected {low} dimensions or more")
        return len(shape)

    def length(self, k: int, what: str) -> int | None:
        """The length of the k-th input, a list; 1 of a scalar, None where it is not known."""
        shape = self.shape(k)
        if shape is None:
            return None
        if len(shape) > 1 or (shape and shape[0] is not None and shape[0] > MAX_RANK):
            raise FormatError(
                f"{self.label}: {what} (input {k}) has shape {shape}; expected a list of at most {MAX_RANK}"
            )
        return shape[0] if shape else 1

    def axis(self, value: int, rank: int, what: str = "axis") -> int:
        """From 0 to rank - 1."""
        if not -rank <= value < rank:
            raise FormatError(f"{self.label}: {what} is {value}; expected {-rank} to {rank - 1}")
        return value % rank

    def axes(self, values: Sequence[int], rank: int, what: str = "axes") -> list[int]:
        """Each from 0 to rank - 1, and none twice."""
        found = [self.axis(value, rank, what) for value in values]
        if len(set(found)) != len(found):
            raise FormatError(f"{self.label}: {what} is {list(values)}; expected each axis once")
        return found

    def axis_of(self, value: int, k: int, what: str = "axis", *, behind: int = 0) -> int:
        """`value`, checked to be an axis of the k-th input, or of `behind` more axes, where the rank is known."""
        shape = self.shape(k)
        if shape is not None:
            self.axis(value, len(shape) + behind, what)
        return value

    # nodes

    def constant(self, values: Any, dtype: str | None = None) -> str:
        """An initializer; of int64 unless said otherwise.

        Raises
        ------
        FormatError
            Values that an integer dtype does not hold.
        """
        given, wanted = np.asarray(values), named_dtype(dtype or "int64")
        with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest number is infinity
            array = given.astype(wanted)
        if wanted.kind in "iu" and given.dtype != wanted and given.size and (array != given).any():
            raise FormatError(
                f"{self.label}: a value is {shown(given)}, which {wanted} does not hold; expected integers of that type"
            )
        return self.graph.constant(array, f"{self.layer.name}/constant")

    def nodes(self, op_type: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """A node with several outputs."""
        return self.graph.node(op_type, inputs, self.layer.name, outputs, **attributes)

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """A node with one output."""
        return self.graph.node(op_type, inputs, self.layer.name, 1, **attributes)[0]

    def typed(
        self, op_type: str, dtype: str, *inputs: str, first: int = 0, last: int | None = None, **attributes: Any
    ) -> str:
        """A node whose inputs[first:last] and output are of `dtype`, or are cast to and from what `WIDENED` says."""
        wide = WIDENED.get(op_type, {}).get(dtype)
        if wide is None:
            return self.node(op_type, *inputs, **attributes)
        widened = list(inputs)
        widened[first:last] = [self.cast(name, wide) if name else "" for name in inputs[first:last]]
        return self.cast(self.node(op_type, *widened, **attributes), dtype)

    def reduce(self, op_type: str, name: str, axes: str, dtype: str, *, keep: bool = True) -> str:
        """A reduction; without axes nothing is reduced."""
        return self.typed(op_type, dtype, name, axes, last=1, keepdims=int(keep), noop_with_empty_axes=1)

    def cast(self, name: str, dtype: str) -> str:
        array = self.graph.constant_array(name)
        if array is not None and array.size <= SMALL:
            return name if array.dtype.name == dtype else self.converted(array, dtype)
        return self.node("Cast", name, to=self.graph.element_type(dtype))

    def converted(self, array: AnyArray, dtype: str) -> str:
        """An initializer with the content of an array, in another dtype."""
        with np.errstate(all="ignore"):  # as Cast, which has no errors
            return self.constant(array.astype(named_dtype(dtype)), dtype)

    def as_dtype(self, k: int, dtype: str) -> str:
        """The k-th input in another dtype."""
        return self[k] if self.dtype(k) == dtype else self.cast(self[k], dtype)

    def int64(self, k: int) -> str:
        """The k-th input, which is of integers."""
        if self.dtype(k) not in INTEGERS:
            raise FormatError(f"{self.label}: input {k} is of {self.dtype(k)}; expected integers")
        return self.as_dtype(k, "int64")

    def list_of_int64(self, k: int) -> str:
        """The k-th input as a 1-D int64 value, of a scalar too."""
        array = self.array(k)
        if array is not None:
            return self.constant(self._integers(k, array))
        name = self.int64(k)
        return name if self.shape(k) else self.reshape(name, [-1])

    def scalar_int64(self, k: int) -> str:
        """The k-th input, which has one element, without axes."""
        array = self.array(k)
        return self.reshape(self.int64(k), []) if array is None else self.constant(self.integer(k, "the value"))

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        return self.node("Reshape", name, self.constant(list(shape)))

    def transpose(self, name: str, order: Sequence[int]) -> str:
        return name if list(order) == sorted(order) else self.node("Transpose", name, perm=list(order))

    def unsqueeze(self, name: str, axes: Sequence[int]) -> str:
        return self.node("Unsqueeze", name, self.constant(list(axes))) if axes else name

    def squeeze(self, name: str, axes: Sequence[int]) -> str:
        return self.node("Squeeze", name, self.constant(list(axes))) if axes else name

    def slice(self, name: str, start: int, end: int, axis: int, step: int = 1) -> str:
        return self.node("Slice", name, *(self.constant([one]) for one in (start, end, axis, step)))

    def dimension(self, name: str, axis: int) -> str:
        """The size of a value's axis, [1]."""
        return self.slice(self.node("Shape", name), axis, END if axis == -1 else axis + 1, 0)

    def concat(self, names: Sequence[str], axis: int = 0) -> str:
        return self.node("Concat", *names, axis=axis) if len(names) > 1 else names[0]
