"""Values of a graph as forms, from the nodes that compute them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

from ..graph.constants import array_of
from ..graph.walk import Node
from . import forms
from .forms import Form, Ref, Shape
from .moves import Columns, Moves
from .scope import Scope, attribute_of

_MOST_NODES = 80  # on a path; deeper values are atoms
_FLOATS = ("float32", "float64")
_STRIPPED = ("Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Transpose")
# Operators that are activation functions of the recurrent operators, with their parameters' defaults.
# ThresholdedRelu is not one: it differs at x = alpha.
ACTIVATIONS: dict[str, dict[str, float]] = {
    "Sigmoid": {},
    "Tanh": {},
    "Relu": {},
    "Softsign": {},
    "Softplus": {},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Elu": {"alpha": 1.0},
}


class Values:
    """Forms of values; `stops` are the values that are atoms, such as states."""

    def __init__(self, scope: Scope, stops: Collection[str] = ()) -> None:
        self.scope, self.stops = scope, frozenset(stops)
        self._forms: dict[str, Form | None] = {}
        self._refs: dict[str, Ref | None] = {}
        self._depth = 0
        self.moves = Moves(scope, self.shape)

    def base(self, name: str) -> str:
        """Return the value that a name is moved from without a selection, whatever the shapes."""
        while (node := self.scope.producer(name)) is not None:
            truth = self.moves.truth(node.input[0]) if node.op_type == "Where" else None
            if node.op_type not in _STRIPPED and truth is None:
                break
            name = node.input[0 if truth is None else 1 if truth else 2]
        return name

    def shape(self, name: str) -> Shape | None:
        form = self.form(name)
        return self.scope.shape(name) if form is None else form.shape

    def form(self, name: str) -> Form | None:
        """Return the form of a value; None if its shape is unknown."""
        if name not in self._forms:
            if name in self.stops:
                self._forms[name] = self._leaf(name)
            elif self._depth > _MOST_NODES:
                return self._leaf(name)
            else:
                self._forms[name] = self.expanded(name)
        return self._forms[name]

    def expanded(self, name: str) -> Form | None:
        """Return the form of a value although it may be a stop."""
        self._depth += 1
        try:
            return self._constant(name) or self._moved(name) or self._computed(name) or self._leaf(name)
        finally:
            self._depth -= 1

    def forget(self, name: str) -> None:
        """Forget the form of a value whose shape was unknown."""
        self._forms.pop(name, None)
        self._refs.pop(name, None)

    def at(self, ref: Ref) -> Form | None:
        """Return the form of a value's columns and views, although the value may be a stop."""
        form = self.expanded(ref.name)
        if form is None or ref.stop > form.width:
            return None
        return form.columns(ref.start, ref.stop).viewed(*ref.views)

    def ref(self, name: str) -> Ref | None:
        """Return a value as columns and views of the value that it is moved from; None if its shape is unknown."""
        if name not in self._refs:
            self._refs[name] = self._ref(name)
        return self._refs[name]

    def _ref(self, name: str) -> Ref | None:
        shape = self.shape(name)
        if shape is None or not shape or not isinstance(shape[-1], int):
            return None
        move = None if name in self.stops or self.scope.array(name) is not None else self.moves.of(name)
        source = None if move is None else self.ref(move.source)
        if move is None or source is None:
            return Ref(name, 0, shape[-1])
        if isinstance(move.how, Columns):
            return source.columns(move.how.start, move.how.stop)
        return source.viewed(*move.how)

    def _leaf(self, name: str, width: int | None = None) -> Form | None:
        shape, dtype = self.scope.shape(name), np.dtype(np.float32)
        if shape is None or not shape:
            return None
        last = shape[-1] if isinstance(shape[-1], int) else width
        if not isinstance(last, int) or width not in (None, last):
            return None
        array = self.scope.array(name)
        return forms.leaf(Ref(name, 0, last), shape, dtype if array is None else array.dtype)

    def _constant(self, name: str) -> Form | None:
        array = self.scope.array(name)
        return None if array is None or array.dtype.name not in _FLOATS else forms.constant(array)

    def _moved(self, name: str) -> Form | None:
        move = self.moves.of(name)
        form = None if move is None else self.form(move.source)
        if move is None or form is None:
            return None
        if isinstance(move.how, Columns):
            return form.columns(move.how.start, move.how.stop) if move.how.stop <= form.width else None
        return form.viewed(*move.how)

    def _computed(self, name: str) -> Form | None:
        node = self.scope.producer(name)
        if node is None or name != node.output[0]:
            return None
        if node.op_type in ACTIVATIONS:
            return self._function(node)
        if node.op_type in LIMITS:
            return self._limited(node)
        compute = getattr(self, f"_{node.op_type.lower()}", None) if node.op_type in _OPERATORS else None
        form: Form | None = None if compute is None else compute(node)
        return form

    def _function(self, node: Node) -> Form | None:
        ref, shape = self.ref(node.input[0]), self.shape(node.input[0])
        if ref is None or shape is None:
            return None
        defaults = ACTIVATIONS[node.op_type]
        parameters = tuple(float(attribute_of(node, key, value)) for key, value in defaults.items())
        return forms.leaf(ref, shape, np.dtype(np.float32), node.op_type, parameters)

    def _limited(self, node: Node) -> Form | None:
        """Return a value between 0 and m as m * HardSigmoid with alpha = 1 / m."""
        limits, name = self._limits(node), node.input[0]
        inner = self.scope.producer(name)
        if inner is not None and inner.op_type in LIMITS:
            limits = [
                pick(pair) for pick, pair in zip((max, min), zip(limits, self._limits(inner), strict=True), strict=True)
            ]
            name = inner.input[0]
        ref, shape, (low, high) = self.ref(name), self.shape(name), limits
        if ref is None or shape is None or low != 0 or not 0 < high < np.inf:
            return None
        dtype = np.dtype(np.float32)
        form = forms.leaf(ref, shape, dtype, "HardSigmoid", (1 / high, 0.0))
        return forms.scaled(form, np.full(form.width, high, dtype), form.shape)

    def _limits(self, node: Node) -> list[float]:
        """Return between which numbers a Clip, Max or Min keeps its first input."""
        keys = ("min", "max")
        sources = dict(
            zip({"Clip": keys, "Max": keys[:1], "Min": keys[1:]}[node.op_type], node.input[1:], strict=False)
        )
        arrays = {key: self.scope.array(name) for key, name in sources.items() if name}
        limits = []
        for key, default in zip(keys, (-np.inf, np.inf), strict=True):
            array = arrays.get(key)
            is_unknown = key in arrays and (array is None or array.size != 1)
            given = attribute_of(node, key, default) if array is None else array.reshape(-1)[0]
            limits.append(np.nan if is_unknown else float(given))
        return limits

    def _operands(self, node: Node) -> tuple[Form, Form] | None:
        if len(node.input) != 2:
            return None
        a, b = map(self.form, node.input)
        return None if a is None or b is None else (a, b)

    def _add(self, node: Node) -> Form | None:
        operands = self._operands(node)
        return None if operands is None else forms.add(*operands, sign=-1 if node.op_type == "Sub" else 1)

    _sub = _add

    def _neg(self, node: Node) -> Form | None:
        form = self.form(node.input[0])
        return None if form is None else forms.scaled(form, np.full(form.width, -1, form.bias.dtype), form.shape)

    def _mul(self, node: Node) -> Form | None:
        operands = self._operands(node)
        if operands is None:
            return None
        # A factor with matrices is one atom, so that r * (h R + b) is a product of two atoms.
        whole = [self._as_factor(name, form) for name, form in zip(node.input, operands, strict=True)]
        if operands[0].is_constant or operands[1].is_constant:
            whole = [*operands]
        return None if whole[0] is None or whole[1] is None else forms.multiply(whole[0], whole[1])

    def _as_factor(self, name: str, form: Form) -> Form | None:
        if form.is_polynomial or form.is_constant:
            return form
        ref = self.ref(name)
        return None if ref is None else forms.leaf(ref, form.shape, form.bias.dtype)

    def _expand(self, node: Node) -> Form | None:
        """Return a constant in more rows; other values are atoms."""
        form, target = self.form(node.input[0]), self.moves.numbers(node.input[1])
        if form is None or target is None or not form.is_constant:
            return None
        shape = forms.broadcast(form.shape, target)
        if not shape or not isinstance(shape[-1], int) or form.width not in (1, shape[-1]):
            return None
        return Form(shape, np.broadcast_to(form.bias, (shape[-1],)))

    def _tile(self, node: Node) -> Form | None:
        """Return a value whose axes keep their sizes where they are repeated once; onnx infers no names for them."""
        shape, repeats = self.shape(node.input[0]), self.moves.numbers(node.input[1])
        if not shape or repeats is None or len(repeats) != len(shape):
            return None
        sizes = tuple(
            size if count == 1 else size * count if isinstance(size, int) and isinstance(count, int) else None
            for size, count in zip(shape, repeats, strict=True)
        )
        last = sizes[-1]
        return forms.leaf(Ref(node.output[0], 0, last), sizes, np.dtype(np.float32)) if isinstance(last, int) else None

    def _constantofshape(self, node: Node) -> Form | None:
        shape, array = self.moves.numbers(node.input[0]), filler(node)
        if not shape or not isinstance(shape[-1], int) or not shape[-1]:
            return None
        return Form(shape, np.broadcast_to(array.reshape(1), (shape[-1],))) if array.dtype.name in _FLOATS else None

    def _matmul(self, node: Node) -> Form | None:
        matrix = self.scope.array(node.input[1])
        return None if matrix is None or matrix.ndim != 2 else self._linear(node.input[0], matrix)

    def _gemm(self, node: Node) -> Form | None:
        matrix = self.scope.array(node.input[1])
        if matrix is None or matrix.ndim != 2 or attribute_of(node, "transA", 0):
            return None
        matrix = matrix.T if attribute_of(node, "transB", 0) else matrix
        alpha, beta = (attribute_of(node, key, 1.0) for key in ("alpha", "beta"))
        form = self._linear(node.input[0], matrix if alpha == 1 else matrix * matrix.dtype.type(alpha))
        if form is None or len(node.input) < 3 or not node.input[2]:
            return form
        added = self.form(node.input[2])
        if added is not None and beta != 1:
            added = forms.scaled(added, np.full(added.width, beta, added.bias.dtype), added.shape)
        return None if added is None else forms.add(form, added)

    def _linear(self, name: str, matrix: AnyArray) -> Form | None:
        """Return a value times a constant matrix; of joined columns, each times its rows of the matrix."""
        total: Form | None = None
        start = 0
        parts = self.moves.parts(name)
        for part in parts:
            form = self._multiplied(part, matrix.shape[0] if len(parts) == 1 else None)
            if form is None or form.width + start > matrix.shape[0]:
                return None
            rows = matrix if len(parts) == 1 else matrix[start : start + form.width]
            start += form.width
            shape: Shape = (*form.shape[:-1], matrix.shape[1])
            if form.is_constant and not form.bias.any():
                new: Form | None = Form(shape, np.zeros(matrix.shape[1], matrix.dtype))
            else:
                new = forms.product(form, rows, shape)
            total = new if total is None or new is None else forms.add(total, new)
            if total is None:
                return None
        return total if start == matrix.shape[0] else None

    def _is_gated_state(self, form: Form) -> bool:
        """Return whether a form is r * h of a GRU."""
        if len(form.terms) != 1 or form.bias.any() or not form.is_polynomial:
            return False
        (factors,) = form.terms
        plain = [atom.ref.name for atom in factors if not atom.function]
        return len(factors) == 2 and len(plain) == 1 and plain[0] in self.stops

    def _multiplied(self, name: str, width: int | None) -> Form | None:
        """Return what a matrix multiplies: zeros, an atom without function, or a gate times a state."""
        form = self.form(name)
        if form is None:
            return self._leaf(name, width)
        if form.is_constant and not form.bias.any():
            return form
        single = form.single
        if (single is not None and not single.function) or self._is_gated_state(form):
            return form
        ref = self.ref(name)
        return None if ref is None else forms.leaf(ref, form.shape, form.bias.dtype)


def value_shape(scope: Scope, name: str) -> Shape | None:
    shape = scope.shape(name)
    return Values(scope).shape(name) if shape is None else shape


def with_shapes(scope: Scope, stops: Collection[str], ordered: Iterable[str]) -> Values:
    """Return values with these stops, whose shapes are computed in an order in which each needs earlier ones only."""
    values = Values(scope, stops)
    for name in ordered:
        shape = scope.shape(name)
        if shape and all(isinstance(size, int) for size in shape):
            scope.known[name] = shape
        form = None if name in scope.known else values.expanded(name)
        if form is not None and None not in form.shape:
            scope.known[name] = form.shape
            values.forget(name)
        elif name not in scope.known:  # what was computed from it may have another form once it is known
            values = Values(scope, stops)
    return Values(scope, stops)


LIMITS = ("Clip", "Max", "Min")
_OPERATORS = {"Add", "Sub", "Neg", "Mul", "Expand", "Tile", "ConstantOfShape", "MatMul", "Gemm"}


def filler(node: Node) -> AnyArray:
    """Return the element of a ConstantOfShape as an array of one."""
    value = attribute_of(node, "value")
    return np.zeros(1, np.float32) if value is None else array_of(value, "ConstantOfShape")
