"""Equations of the cells as data, and a float64 interpreter that runs them, right or changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison.oracle import Arguments
from pyrnnx.operator.conventions import CANONICAL
from pyrnnx.operator.op import CELLS, CellName
from pyrnnx.reference.activations import Activation, resolve_activations
from pyrnnx.reference.cells import split

# The factors of a term are applied from the last to the first, W and R as matrix products. A prime is the step before,
# f, g and h are the functions of the operators' texts. k is what the texts write as h(Ct).
EQUATIONS = {
    "RNN": ("i = f(W X + R H' + Wb + Rb)", "H = i"),
    "GRU": (
        "z = f(W X + R H' + Wb + Rb)",
        "r = f(W X + R H' + Wb + Rb)",
        "h = g(W X + R r H' + Wb + Rb)",
        "H = (1-z) h + z H'",
    ),
    "LSTM": (
        "i = f(W X + R H' + P C' + Wb + Rb)",
        "f = f(W X + R H' + P C' + Wb + Rb)",
        "c = g(W X + R H' + Wb + Rb)",
        "C = f C' + i c",
        "o = f(W X + R H' + P C + Wb + Rb)",
        "k = h(C)",
        "H = o k",
    ),
}
_LINEAR_BEFORE_RESET = "h = g(W X + r R H' + Wb + r Rb)"
_BACKWARD = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_INSTEAD = {"X": ("X'",), "H'": ("H''", "H0"), "C'": ("C''", "C0"), "C": ("C'",)}
_EVERY_GATE = {"X": "W*Xt", "H'": "R*Ht-1", "P": "P", "Wb": "Wb", "Rb": "Rb"}
_OTHER_FUNCTIONS: Mapping[str, Callable[[AnyArray], AnyArray]] = {
    **{name: Activation(name, 0.0, 0.0) for name in ("Sigmoid", "Tanh", "Relu")},
    "HardSigmoid with alpha 0.2": Activation("HardSigmoid", 0.2, 0.5),  # of ONNX and Keras 2
    "HardSigmoid with alpha 1/6": Activation("HardSigmoid", 1 / 6, 0.5),  # of PyTorch and Keras 3
    "left out": lambda x: x,
}

Term = tuple[str, ...]


class Equation(NamedTuple):
    """A result, which is a function ("" is none) of a sum of products."""

    result: str
    function: str
    terms: tuple[Term, ...]

    @property
    def is_gate(self) -> bool:
        return self.function in ("f", "g")


Equations = dict[str, Equation]  # by result, in the order of computation


def equations_of(cell: str, given: Arguments) -> Equations:
    """Return the equations of a cell with these arguments of the oracle, without terms of absent weights."""
    rows = {row.result: row for row in map(_read, EQUATIONS[cell])}
    if given.get("linear_before_reset"):
        rows["h"] = _read(_LINEAR_BEFORE_RESET)
    if given.get("input_forget"):
        coupled, other = ("f", "i") if given["coupled_gate"] == "f" else ("i", "f")
        rows = {other: rows[other], **rows, coupled: Equation(coupled, "", ((f"(1-{other})",),))}
    absent = {*(() if "B" in given else ("Wb", "Rb")), *(() if "P" in given else ("P",))}
    return {
        name: row._replace(terms=tuple([term for term in row.terms if not absent & {*term}]))
        for name, row in rows.items()
    }


def _read(text: str) -> Equation:
    result, _, right = text.partition(" = ")
    function = right[0] if right[1:2] == "(" else ""
    terms = (right[2:-1] if function else right).split(" + ")
    return Equation(result, function, tuple(tuple(term.split()) for term in terms))


@np.errstate(over="ignore", invalid="ignore")
def run(
    cell: CellName, given: Arguments, is_apart: Callable[[AnyArray, Any], bool] | None = None
) -> dict[str, AnyArray]:
    """Return the outputs of a cell, canonical and in float64; none as soon as `is_apart` of some of Y and their index.

    The arguments are those of the oracle and, optionally: equations, functions (by result, or "f()", "g()" and "h()"),
    the names of values that are clipped, which directions run backward, the times at which backward rows end, and
    whether Y is in the order of computation.
    """
    X, lengths = given["X"].astype(np.float64), given["sequence_lens"]
    T, N, _ = X.shape
    D, _, H = given["R"].shape
    rows = given.get("equations") or equations_of(cell, given)
    backward = given.get("backward") or _BACKWARD[given["direction"]]
    ends: Any = given.get("ends", lengths)
    states = {"H": "initial_h", "C": "initial_c"} if cell == "LSTM" else {"H": "initial_h"}
    Y, last = np.zeros((T, D, N, H)), {name: np.zeros((D, N, H)) for name in states}
    for d, step in enumerate(_steps(cell, given, rows)):
        initial = {name: given[argument][d].astype(np.float64) for name, argument in states.items()}
        constants = {"1": np.ones(()), **{f"{name}0": state for name, state in initial.items()}}
        before = {"X": np.zeros_like(X[:1].sum(axis=0)), **initial}
        before |= {f"{name}'": state for name, state in initial.items()}
        for k in range(int(lengths.max(initial=0))):
            active = np.flatnonzero(lengths > k)
            times = np.broadcast_to(np.maximum(ends - 1 - k, 0) if backward[d] else k, N)
            values = {f"{name}'": value for name, value in before.items() if not name.endswith("''")}
            before = step({**values, **constants, "X": X[times, np.arange(N)]})
            index = (k if given.get("in_order_of_computation") else times[active], d, active)
            Y[index] = before["H"][active]
            if is_apart is not None and is_apart(Y[index], index):
                return {}
            for name, array in last.items():
                array[d, active] = before[name][active]
    return {"Y": Y, **{f"Y_{name.lower()}": array for name, array in last.items()}}


Values = dict[str, AnyArray]


def _steps(cell: CellName, given: Arguments, rows: Equations) -> Iterator[Callable[[Values], Values]]:
    """Yield, for each direction, the function that adds the results of the equations to the values of a step."""
    (D, _, H), gates = given["R"].shape, CELLS[cell].gates
    absent = {"B": np.zeros((D, 2 * len(gates) * H)), "P": np.zeros((D, 3 * H))}
    given, zeros = {**absent, **given}, np.zeros((len(given["sequence_lens"]), H))
    functions = resolve_activations(
        cell,
        D,
        names=given["activations"],
        alphas=given["activation_alpha"],
        betas=given["activation_beta"],
        threshold_shift=given.get("threshold_shift", 0.0),
    )
    clip = given["clip"]
    clipped: Collection[str] = given.get("clipped", [f"{row.result}_in" for row in rows.values() if row.is_gate])
    clipped = () if given["clip"] is None else clipped
    for d in range(D):
        Wb, Rb = np.split(given["B"][d].astype(np.float64), 2)
        weights = {name: split(given[name][d].astype(np.float64), gates) for name in "WR"}
        weights |= {"Wb": split(Wb, gates), "Rb": split(Rb, gates), "P": split(given["P"][d], CANONICAL.peepholes)}
        by_name = dict(zip(("f()", "g()", "h()"), functions[d], strict=False)) | given.get("functions", {})

        def step(values: Values, weights: Any = weights, by_name: Any = by_name) -> Values:
            for row in rows.values():
                total = zeros
                for term in row.terms:
                    total = total + _product(term, row.result, values, weights)
                if f"{row.result}_in" in clipped:
                    total = np.minimum(np.maximum(total, -clip), clip)
                if row.function:
                    total = by_name.get(row.result, by_name[f"{row.function}()"])(total)
                if row.result in clipped:
                    total = np.minimum(np.maximum(total, -clip), clip)
                values[row.result] = total
            return values

        yield step


def _product(term: Term, gate: str, values: Values, weights: Mapping[str, Mapping[str, AnyArray]]) -> Any:
    product: Any = 1.0
    for factor in reversed(term):
        if factor in ("W", "R"):
            product = product @ weights[factor][gate].T
        elif factor in weights:
            product = product * weights[factor][gate]
        elif factor.startswith("(1-"):
            product = product * (1 - values.get(factor[3:-1], 0.0))
        else:
            product = product * values.get(factor, 0.0)  # a gate has no step before the first
    return product


# Changed equations


@cache
def changed_equations(*rows: Equation) -> Sequence[tuple[str, Arguments]]:
    """Return words that follow "as if", and arguments of `run` that change equations or functions.

    Each term is left out, added twice, or taken from another step, in one equation or in all gates.
    """
    result, seen = [], {rows}
    for words, changes in _changes({row.result: row for row in rows}):
        changed = tuple(changes.get("equations", {}).values())
        if not changed or changed not in seen:
            seen.add(changed)
            result.append((words, changes))
    return result


def _changes(rows: Equations) -> Iterator[tuple[str, Arguments]]:
    for text, place, terms in _selections(rows):
        yield f"{text} were left out of {place}", _edited(rows, terms, lambda term: ())
        yield f"{text} were added twice in {place}", _edited(rows, terms, lambda term: (term, term))
        factors = dict.fromkeys(factor for chosen in terms.values() for term in chosen for factor in term)
        for factor in factors:
            others = _INSTEAD.get(factor, (f"{factor[:-1]}')" if factor[-1] == ")" else f"{factor}'",))
            if factor in ("W", "R", "P", "Wb", "Rb"):
                continue
            for other in others:
                changes = _edited(rows, terms, lambda term, *pair: (_replaced(term, *pair),), factor, other)
                yield f"{_shown(factor)} were {_shown(other)} in {text} of {place}", changes
            if len(factors) > 1 and not rows[next(iter(terms))].is_gate:
                changes = _edited(rows, terms, lambda term, old: (tuple(name for name in term if name != old),), factor)
                yield f"{_shown(factor)} were left out of {text} in {place}", changes
    for letter in dict.fromkeys(row.function for row in rows.values() if row.function):
        if sum(row.function == letter for row in rows.values()) > 1:
            for other, function in _OTHER_FUNCTIONS.items():
                yield f"activation {letter} were {other}", {"functions": {f"{letter}()": function}}
    for row in rows.values():
        yield from _changed_equation(rows, row)


def _selections(rows: Equations) -> Iterator[tuple[str, str, dict[str, list[Term]]]]:
    """Yield terms by equation, with words for them and for where they are."""
    gates = [row for row in rows.values() if row.is_gate]
    for row in rows.values():
        for term in row.terms:
            yield _product_in_words(term, row.result), row.result, {row.result: [term]}
        if biases := [term for term in row.terms if term[-1] in ("Wb", "Rb")]:
            yield f"Wb{row.result} and Rb{row.result}", row.result, {row.result: biases}
    every: dict[str, dict[str, list[Term]]] = {}
    for row in gates if len(gates) > 1 else ():
        for term in row.terms:
            key = "P" if "P" in term else term[-1]
            for kind in (key, "B") if key in ("Wb", "Rb") else (key,):
                every.setdefault(kind, {}).setdefault(row.result, []).append(term)
    for key, terms in every.items():
        yield _EVERY_GATE.get(key, "Wb and Rb"), "every gate", terms


def _edited(
    rows: Equations, terms: Mapping[str, Collection[Term]], edit: Callable[..., tuple[Term, ...]], *arguments: str
) -> Arguments:
    return {
        "equations": {
            name: row._replace(
                terms=tuple(
                    new
                    for term in row.terms
                    for new in (edit(term, *arguments) if term in terms.get(name, ()) else (term,))
                )
            )
            for name, row in rows.items()
        }
    }


def _replaced(term: Term, old: str, new: str) -> Term:
    return tuple([new if factor == old else factor for factor in term])


def _changed_equation(rows: Equations, row: Equation) -> Iterator[tuple[str, Arguments]]:
    def changed(*terms: Term, function: str = row.function) -> Arguments:
        return {"equations": {**rows, row.result: Equation(row.result, function, terms)}}

    name = _shown(row.result)
    if row.is_gate:
        yield f"{name} were 0", changed(function="")
        yield f"{name} were 1", changed(("1",), function="")
        yield f"1 were added to the argument of {row.result}", changed(*row.terms, ("1",))
    if row.function:
        for other, function in _OTHER_FUNCTIONS.items():
            yield f"the activation of {name} were {other}", {"functions": {row.result: function}}
    if row.result == "h":
        for term in row.terms:
            scaled = tuple(factor for factor in term if factor != "r") if "r" in term else ("r", *term)
            words = "did not scale" if "r" in term else "scaled"
            text = _product_in_words(tuple(factor for factor in term if factor != "r"), row.result)
            yield f"the reset gate {words} {text}", changed(*(scaled if own == term else own for own in row.terms))
    if row.result in ("H", "C") and len(row.terms) == 2:
        (a, x), (b, y) = row.terms
        yield f"{_shown(a)} and {_shown(b)} were exchanged in {row.result}", changed((b, x), (a, y))


def _product_in_words(term: Term, gate: str) -> str:
    return "*".join(f"{factor}{gate}" if factor in ("W", "R", "P", "Wb", "Rb") else _shown(factor) for factor in term)


def _shown(factor: str) -> str:
    """Return a value as the operators' texts write it: "Ht-1" for H'."""
    if factor.startswith("(1-"):
        return f"(1-{_shown(factor[3:-1])})"
    if factor in ("H0", "C0"):
        return f"initial_{factor[0].lower()}"
    name, steps = factor.rstrip("'"), factor.count("'")
    before = f"-{steps}" if steps else ""
    return f"h(Ct{before})" if name == "k" else f"{name}t{before}"
