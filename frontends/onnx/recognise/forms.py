"""Values as sums of products: the form in which the equations of two exporters are the same.

    value [..., K]  =  sum of  product of atoms  times  coefficient   +  bias

An atom is columns of a value of the graph, or an activation function of them. A coefficient is a number, a vector of
length K, or a matrix [columns of the atoms, K]. So z * h + (1 - z) * n and n + z * (h - n) have the same form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from pyrnnx._internal.dtypes import AnyArray

Dim = int | str | None  # a size, the name of a size, or unknown
Shape = tuple[Dim, ...]
MOST_TERMS, MOST_FACTORS = 6, 3  # of a cell's equations, with room; bounds the time for other graphs
# Views are operations on the leading axes of a value that only move it, such as Transpose and the slice of a time step:
#     ("squeeze", axis)   ("unsqueeze", axis)   ("transpose", axes)   ("select", axis, index)   ("flip", axis)
# An index is an int, or ITERATION, the iteration number of a Loop. No view moves or removes the last axis.
View: TypeAlias = tuple[Any, ...]
ITERATION = "i"


@dataclass(frozen=True, order=True)
class Ref:
    """Columns `start` to `stop` of the last axis of a value, after `views` of its other axes."""

    name: str
    start: int
    stop: int
    views: tuple[View, ...] = ()

    @property
    def width(self) -> int:
        return self.stop - self.start

    def columns(self, start: int, stop: int) -> Ref:
        return replace(self, start=self.start + start, stop=self.start + stop)

    def viewed(self, *views: View) -> Ref:
        return replace(self, views=compose(self.views, views)) if views else self


@dataclass(frozen=True)
class Atom:
    """Columns of a value, or an activation function of them, with its alpha and beta."""

    ref: Ref
    function: str = ""
    parameters: tuple[float, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return self.ref, self.function, self.parameters


Factors = tuple[Atom, ...]


@dataclass(frozen=True, eq=False)
class Form:
    """Sum of products of atoms, plus a bias, a vector of length K; `terms` are the coefficients by the factors.

    The last dimension of the shape is K, an int; a constant with one element has shape (1,).
    """

    shape: Shape
    bias: AnyArray
    terms: Mapping[Factors, AnyArray] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return int(self.bias.shape[0])

    @property
    def is_constant(self) -> bool:
        return not self.terms

    @property
    def is_polynomial(self) -> bool:
        """True if all coefficients are numbers, and the bias is the same in each column."""
        return all(not c.ndim for c in self.terms.values()) and bool((self.bias == self.bias[:1]).all())

    @property
    def single(self) -> Atom | None:
        """The atom that is the whole form; None for other forms."""
        if len(self.terms) != 1 or self.bias.any():
            return None
        ((factors, coefficient),) = self.terms.items()
        return factors[0] if len(factors) == 1 and not coefficient.ndim and coefficient == 1 else None

    def columns(self, start: int, stop: int) -> Form:
        terms: dict[Factors, AnyArray] = {}
        for factors, coefficient in self.terms.items():
            kept = factors
            if coefficient.ndim < 2:
                kept = tuple(replace(atom, ref=atom.ref.columns(start, stop)) for atom in factors)
            terms[kept] = coefficient[..., start:stop] if coefficient.ndim else coefficient
        return Form((*self.shape[:-1], stop - start), self.bias[start:stop], terms)

    def viewed(self, *views: View) -> Form | None:
        """Return the form of views of the leading axes; None if an axis is not there."""
        if not views:
            return self
        shape: Shape | None = self.shape
        for view in views:
            shape = None if shape is None else pushed(view, shape)
        if shape is None:
            return None
        terms = {
            tuple(replace(atom, ref=atom.ref.viewed(*views)) for atom in factors): coefficient
            for factors, coefficient in self.terms.items()
        }
        return Form(shape, self.bias, terms)


def leaf(ref: Ref, shape: Shape, dtype: np.dtype[Any], function: str = "", parameters: tuple[float, ...] = ()) -> Form:
    terms: dict[Factors, AnyArray] = {(Atom(ref, function, parameters),): np.ones((), dtype)}
    return Form((*shape[:-1], ref.width), np.zeros(ref.width, dtype), terms)


def constant(array: AnyArray) -> Form | None:
    """Return the form of an array whose rows are equal; None for other arrays."""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim and array.shape[-1] else None
    if array.ndim == 0:
        return Form((1,), array.reshape(1))
    if rows is None or not len(rows) or (len(rows) > 1 and not (rows == rows[0]).all()):
        return None
    return Form(array.shape, rows[0])


def broadcast(a: Shape, b: Shape) -> Shape:
    """Return the shape of an elementwise operation; dimensions that may not fit each other are unknown."""
    a, b = ((1,) * (max(len(a), len(b)) - len(item)) + item for item in (a, b))
    return tuple(x if y in (x, 1) else y if x == 1 else None for x, y in zip(a, b, strict=True))


def aligned(a: Form, b: Form) -> tuple[Form, Form, Shape] | None:
    """Return both operands of an elementwise operation with the same rank and width, and the result's shape.

    None if an operand that is not constant is repeated: its atoms have no row for each index of the result.
    """
    rank = max(len(a.shape), len(b.shape))
    raised = [item.viewed(*[("unsqueeze", 0)] * (rank - len(item.shape))) for item in (a, b)]
    first, second = (_widened(item, max(a.width, b.width)) if item is not None else None for item in raised)
    if first is None or second is None:
        return None
    shape = broadcast(first.shape, second.shape)
    is_repeated = any(
        x == 1 != y for item in (first, second) if item.terms for x, y in zip(item.shape, shape, strict=True)
    )
    return None if is_repeated else (first, second, shape)


def _widened(form: Form, width: int) -> Form | None:
    if form.width == width:
        return form
    if form.width != 1 or form.terms:  # a column that is repeated: not in any cell
        return None
    return Form((*form.shape[:-1], width), np.broadcast_to(form.bias, (width,)))


def add(a: Form, b: Form, sign: int = 1) -> Form | None:
    """Return a + sign * b; None if it has too many terms."""
    both = aligned(a, b)
    if both is None:
        return None
    a, b, shape = both
    terms = dict(a.terms)
    for factors, coefficient in b.terms.items():
        signed = coefficient if sign == 1 else -coefficient
        if factors not in terms:
            terms[factors] = signed
        elif terms[factors].ndim == signed.ndim:
            terms[factors] = terms[factors] + signed
        else:
            return None
    terms = {factors: item for factors, item in terms.items() if item.ndim or item != 0}
    bias = a.bias if not b.bias.any() else a.bias + b.bias if sign == 1 else a.bias - b.bias
    return Form(shape, bias, terms) if len(terms) <= MOST_TERMS else None


def scaled(form: Form, factor: AnyArray, shape: Shape) -> Form:
    """Return the form times a vector with its width."""
    if not factor.any():
        return Form(shape, form.bias * factor)
    number: AnyArray = factor[0] if (factor == factor[0]).all() else factor
    return Form(shape, form.bias * factor, {key: np.asarray(item * number) for key, item in form.terms.items()})


def multiply(a: Form, b: Form) -> Form | None:
    """Return a * b by elements; None if the product is not a form of few terms."""
    both = aligned(a, b)
    if both is None:
        return None
    a, b, shape = both
    if a.is_constant or b.is_constant:
        return scaled(b, a.bias, shape) if a.is_constant else scaled(a, b.bias, shape)
    if not (a.is_polynomial and b.is_polynomial):
        return None
    total: Form | None = Form(shape, a.bias * b.bias)
    for left, x in (*a.terms.items(), ((), a.bias[0])):
        for right, y in (*b.terms.items(), ((), b.bias[0])):
            factors = tuple(sorted((*left, *right), key=lambda atom: atom.key))
            if total is None or len(factors) > MOST_FACTORS:
                return None
            if factors and x * y != 0:
                total = add(total, Form(shape, np.zeros_like(a.bias), {factors: np.asarray(x * y)}))
    return total


def product(form: Form, matrix: AnyArray, shape: Shape, bias: AnyArray | None = None) -> Form | None:
    """Return a form without bias times a matrix [width, K]; None if it has matrices already."""
    if form.bias.any() or any(coefficient.ndim > 1 for coefficient in form.terms.values()):
        return None
    terms = {
        factors: matrix if not item.ndim and item == 1 else (matrix * item if not item.ndim else item[:, None] * matrix)
        for factors, item in form.terms.items()
    }
    return Form(shape, np.zeros(matrix.shape[1], matrix.dtype) if bias is None else bias, terms)


def pushed(view: View, shape: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the shape after a view; None if it does not fit."""
    kind, last = view[0], len(shape) - 1
    if kind == "transpose":
        axes = view[1]
        is_fit = len(axes) == len(shape) and axes[-1] == last
        return tuple(shape[axis] for axis in axes) if is_fit else None
    axis = view[1]
    if kind in ("flip", "select") and axis < last and shape[axis] is None:
        return None  # operands of other sizes may meet here: one element may stand for all
    if kind == "flip":
        return shape if axis < last else None
    if kind == "unsqueeze":
        return (*shape[:axis], 1, *shape[axis:]) if axis <= last else None
    if axis >= last or (kind == "squeeze" and shape[axis] != 1):
        return None
    return (*shape[:axis], *shape[axis + 1 :])


def compose(first: Sequence[View], second: Sequence[View]) -> tuple[View, ...]:
    """Return both views in order, without pairs that cancel each other."""
    views = list(first)
    for view in second:
        before = views[-1] if views else ("",)
        kinds = {before[0], view[0]}
        is_undone = before == ("unsqueeze", view[1]) and view == ("select", view[1], 0)
        if is_undone or (before[1:] == view[1:] and kinds in ({"squeeze", "unsqueeze"}, {"flip"})):
            views.pop()
        elif kinds == {"transpose"}:
            axes = tuple(before[1][axis] for axis in view[1])
            views.pop()
            if axes != tuple(range(len(axes))):
                views.append(("transpose", axes))
        else:
            views.append(view)
    return tuple(views)
