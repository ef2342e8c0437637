"""Context of a translator: one layer of an IR, its attributes and inputs, and the graph of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray, named_dtype
from pyrnnx.errors import FormatError, shown

from ..ir.layer import NetLayer
from .graph import SMALL, WIDENED, element_type
from .inputs import END, LayerInputs


class LayerContext(LayerInputs):
    """A layer in translation, whose methods add nodes to the graph; parameters as for `LayerInputs`."""

    def constant(self, values: Any, dtype: str | None = None) -> str:
        """Add an initializer, by default of int64; return its name."""
        source, target = np.asarray(values), named_dtype(dtype or "int64")
        with np.errstate(over="ignore", invalid="ignore"):  # overflows become infinity
            array = source.astype(target)
        if target.kind in "iu" and source.dtype != target and source.size and (array != source).any():
            raise FormatError(f"{self.label}: a value is {shown(source)}; expected integers in the range of {target}")
        return self.graph.constant(array, f"{self.layer.name}/constant")

    def nodes(self, op_type: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs; return their names."""
        return self.graph.node(op_type, inputs, self.layer.name, outputs, **attributes)

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; return its name."""
        return self.graph.node(op_type, inputs, self.layer.name, 1, **attributes)[0]

    def typed(
        self, op_type: str, dtype: str, *inputs: str, first: int = 0, last: int | None = None, **attributes: Any
    ) -> str:
        """Add a node whose inputs[first:last] and output have `dtype`, with casts to and from its `WIDENED` type."""
        wide = WIDENED.get(op_type, {}).get(dtype)
        if wide is None:
            return self.node(op_type, *inputs, **attributes)
        widened = list(inputs)
        widened[first:last] = [self.cast(name, wide) if name else "" for name in inputs[first:last]]
        return self.cast(self.node(op_type, *widened, **attributes), dtype)

    def reduce(self, op_type: str, name: str, axes: str, dtype: str, *, keep: bool = True) -> str:
        """Add a reduction; without axes it reduces nothing."""
        return self.typed(op_type, dtype, name, axes, last=1, keepdims=int(keep), noop_with_empty_axes=1)

    def cast(self, name: str, dtype: str) -> str:
        """Add a cast; small constants are converted at once."""
        array = self.graph.constant_array(name)
        if array is not None and array.size <= SMALL:
            return name if array.dtype.name == dtype else self.converted(array, dtype)
        return self.node("Cast", name, to=element_type(dtype))

    def converted(self, array: AnyArray, dtype: str) -> str:
        """Add an initializer with the values of an array in another dtype."""
        with np.errstate(all="ignore"):  # like Cast, which has no errors
            return self.constant(array.astype(named_dtype(dtype)), dtype)

    def as_dtype(self, k: int, dtype: str) -> str:
        """Return the k-th input in another dtype."""
        return self[k] if self.dtype(k) == dtype else self.cast(self[k], dtype)

    def int64(self, k: int) -> str:
        """Return the k-th input, of integers, as int64."""
        if self.dtype(k) not in INTEGERS:
            raise FormatError(f"{self.label}: input {k} has dtype {self.dtype(k)}; expected an integer type")
        return self.as_dtype(k, "int64")

    def list_of_int64(self, k: int) -> str:
        """Return the k-th input, a list or a scalar, as a 1-D int64 value."""
        array = self.array(k)
        if array is not None:
            return self.constant(self._integers(k, array))
        name = self.int64(k)
        return name if self.shape(k) else self.reshape(name, [-1])

    def scalar_int64(self, k: int) -> str:
        """Return the k-th input, of one element, as an int64 scalar."""
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
        return self.node("Slice", name, *(self.constant([value]) for value in (start, end, axis, step)))

    def dimension(self, name: str, axis: int) -> str:
        """Return the size of a value's axis, [1]."""
        return self.slice(self.node("Shape", name), axis, END if axis == -1 else axis + 1, 0)

    def concat(self, names: Sequence[str], axis: int = 0) -> str:
        return self.node("Concat", *names, axis=axis) if len(names) > 1 else names[0]


Translator = Callable[[LayerContext], str | Sequence[str]]
TranslatorType = TypeVar("TranslatorType", bound=Translator)

# By type in lower case, then by the first opset of the translated version.
TRANSLATORS: dict[str, dict[int, Translator]] = {}


def translates(name: str, *, since: int = 1) -> Callable[[TranslatorType], TranslatorType]:
    """Register a translator of an operation's versions since opset `since`."""

    def register(function: TranslatorType) -> TranslatorType:
        TRANSLATORS.setdefault(name.lower(), {})[since] = function
        return function

    return register


def translator(layer: NetLayer) -> Translator | None:
    """Return the translator of a layer's type and version; None if there is none."""
    rows = TRANSLATORS.get(layer.type.lower(), {})
    # The opset of "extension" and other sets of custom operations is 0.
    first = max([since for since in rows if since <= layer.opset], default=None)
    return None if first is None else rows[first]
