"""Context of a translator: one layer, its attributes, inputs and nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray, named_dtype
from pyrnnx.errors import FormatError, UnsupportedError, shortened, shown

from ..ir.element_types import by_name, by_precision
from ..ir.layer import NetLayer
from ..ir.ports import MAX_RANK
from ..schemas import explain
from .attributes import HIGHEST, LOWEST, REQUIRED, Attributes
from .graph import WIDENED, element_type, guarded

if TYPE_CHECKING:
    from .scope import Scope

Dims = tuple[int | None, ...]
END, BEGIN = 2**63 - 1, -(2**63)  # end of a slice at the end of its axis, or backwards at the beginning


class LayerContext(Attributes):
    """A layer in translation, whose methods add nodes to the graph of its scope."""

    def __init__(self, layer: NetLayer, scope: Scope) -> None:
        self.scope, self.graph = scope, scope.graph
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
        return self.scope.name(self.layer.sources[k])

    @property
    def inputs(self) -> list[str]:
        return [self[k] for k in range(len(self))]

    def has(self, k: int) -> bool:
        return k < len(self.layer.sources)

    def _need(self, k: int) -> None:
        if not self.has(k):
            raise FormatError(f"{self.label}: input {k} is missing; the layer has {len(self)}")

    def array(self, k: int) -> AnyArray | None:
        """Return the k-th input's value; None if it depends on the model's inputs."""
        self._need(k)
        return self.scope.array(self.layer.sources[k])

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
        """Return the k-th input, a list of `count` integers or a scalar."""
        listed: list[int] = self._integers(k, self.constant_input(k, what), what).tolist()
        if count not in (None, len(listed)):
            raise FormatError(f"{self.label}: {what} (input {k}) has {len(listed)} values; expected {count}")
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
        """Return the k-th input, a constant of one element."""
        self.constant_input(k, what)
        return float(self.element(k, what))  # type: ignore[arg-type]  # it is constant

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

    def rank(self, k: int) -> int:
        """Return the rank of the k-th input."""
        shape = self.shape(k)
        if shape is None:
            raise UnsupportedError(f"{self.label}: the rank of input {k} is unknown; the translation to ONNX needs it")
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


def translate_layer(layer: NetLayer, scope: Scope) -> list[str]:
    """Translate a layer; return the names of its outputs' values."""
    function = translator(layer)
    if function is None:
        raise UnsupportedError(not_translated(layer))
    ctx = LayerContext(layer, scope)
    with guarded(layer.label, f"attributes and inputs of {shortened(layer.type)}"):
        names = function(ctx)
    if scope.net.declared(layer) is None:  # else the reader has checked them
        ctx.check_attributes()
    outputs = [names] if isinstance(names, str) else list(names)
    for k in range(len(layer.outputs)):
        if scope.is_used(layer, k) and not any(outputs[k : k + 1]):
            raise FormatError(f"{layer.label}: output {k} is used, but {shortened(layer.type)} does not compute it")
    return outputs


def not_translated(layer: NetLayer) -> str:
    """Return the message about a layer that has no translator."""
    version = f" of {shortened(layer.version)}" if layer.version else ""
    reason = explain(layer.type)
    first = min(TRANSLATORS.get(layer.type.lower(), ()), default=0)
    if first > layer.opset:
        reason = f"expected opset{first} or later"
    elif reason is None:
        reason = "this operation is not translated; replace its layer, or run the model with OpenVINO"
    return f"{layer.label}: {shortened(layer.type)}{version} cannot be run or exported to ONNX: {reason}"
