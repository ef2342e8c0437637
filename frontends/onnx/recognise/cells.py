"""Cells: values whose form is the equation of an RNN, a GRU or an LSTM.

RNN   h' = f(x W + h R + b)
GRU   h' = n - z n + z h,  n = g(x W + (r h) R + b), or g(x W + b + r (h R + b'))  if linear_before_reset
LSTM  h' = o h(c'),        c' = f c + i g
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.operator.op import Activation, CellName, DirectionName, RecurrentOp

from .forms import Atom, Factors, Form, Ref, Shape
from .values import Values

ORDER = {"RNN": ("h",), "GRU": ("z", "r", "h"), "LSTM": ("i", "o", "f", "c")}  # gates in the weights of ONNX
# Gates that determine the activations, in the order of ONNX; the other gates have the same function.
_FUNCTIONS = {"RNN": ("h",), "GRU": ("z", "h"), "LSTM": ("i", "c", "out")}
_LINEAR = "Affine"
_SAME = {"RNN": (), "GRU": (("z", "r"),), "LSTM": (("i", "f"), ("i", "o"))}


@dataclass(frozen=True, eq=False)
class Gate:
    """Function of x W + h R + b, with W by the values that it multiplies; R is None if the state is zero."""

    function: str
    parameters: tuple[float, ...]
    W: Mapping[Ref, AnyArray]
    R: AnyArray | None
    b: AnyArray

    def opposite(self) -> Gate | None:
        """Return the gate 1 - f(x) = f(-x); None for functions without this symmetry."""
        if self.function != "Sigmoid" and (self.function != "HardSigmoid" or self.parameters[1] != 0.5):
            return None
        W = {ref: -matrix for ref, matrix in self.W.items()}
        return Gate(self.function, self.parameters, W, None if self.R is None else -self.R, -self.b)

    def same(self, other: Gate, x: Mapping[Ref, Ref]) -> bool:
        """Return whether another gate has the same function and weights; R of a zero state is unknown."""
        if (self.function, self.parameters) != (other.function, other.parameters) or not _same(self.b, other.b):
            return False
        if self.R is not None and other.R is not None and not _same(self.R, other.R):
            return False
        has_same_inputs = {x[ref] for ref in self.W} == set(other.W)
        return has_same_inputs and all(_same(matrix, other.W[x[ref]]) for ref, matrix in self.W.items())


@dataclass(frozen=True, eq=False)
class Cell:
    """One step of a recurrent operator.

    The gate "out" has the function of an LSTM's h alone; without c, an LSTM may lack the gate f. h and c, the states
    before the step, are None for zeros. `reset_bias` is b' of a GRU.
    """

    operator: CellName
    gates: Mapping[str, Gate]
    h: Ref | None
    c: Ref | None
    new_h: Ref
    new_c: Ref | None
    shape: Shape
    linear_before_reset: bool = False
    reset_bias: AnyArray | None = None

    @property
    def xs(self) -> tuple[Ref, ...]:
        return tuple(sorted({ref for gate in self.gates.values() for ref in gate.W}))

    @property
    def is_complete(self) -> bool:
        """True if the states are not zeros, so that all gates are known."""
        return self.h is not None and (self.operator != "LSTM" or self.c is not None)

    @property
    def hidden_size(self) -> int:
        return self.new_h.width

    def op(self, direction: DirectionName) -> RecurrentOp:
        gates = (self.gates[name] for name in _FUNCTIONS[self.operator])
        functions = tuple(Activation(gate.function, *gate.parameters) for gate in gates)
        linear = self.linear_before_reset
        return RecurrentOp(self.operator, self.hidden_size, direction, (functions,), linear_before_reset=linear)

    def same_weights(self, other: Cell, x: Mapping[Ref, Ref]) -> bool:
        """Return whether another cell computes the same of its own values; `x` maps this one's to those."""
        kinds = (self.operator, self.linear_before_reset), (other.operator, other.linear_before_reset)
        if kinds[0] != kinds[1] or not _same(self.reset_bias, other.reset_bias):
            return False
        return all(self.gates[name].same(other.gates[name], x) for name in self.gates.keys() & other.gates.keys())


def _same(a: AnyArray | None, b: AnyArray | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    is_view = a.__array_interface__["data"] == b.__array_interface__["data"] and a.strides == b.strides
    return is_view or np.array_equal(a, b)


@dataclass
class _Parts:
    """Terms of a gate's argument."""

    bias: AnyArray
    W: dict[Ref, AnyArray] = field(default_factory=dict)
    states: dict[Ref, AnyArray] = field(default_factory=dict)
    products: dict[Factors, AnyArray] = field(default_factory=dict)


class Matcher:
    """Matches values with cells; the stops of `values` are the states, and values of other steps."""

    def __init__(self, values: Values, states: set[str]) -> None:
        self._values, self._states = values, states

    def match(self, name: str) -> Cell | str:
        """Return the cell that computes a value, or what is missing; "" if it is far from a new state."""
        ref = self._values.ref(name)
        form = None if ref is None else self._values.at(ref)
        if ref is None or form is None:
            return "the shape of the state is unknown"
        if not form.terms or (form.single is not None and not form.single.function):
            return ""
        if form.bias.any() or any(coefficient.ndim for coefficient in form.terms.values()):
            return "the new state is not a product of gates"
        lengths = tuple(sorted(map(len, form.terms)))
        matches = {(1,): self._rnn, (2,): self._lstm, (1, 2): self._gru, (1, 2, 2): self._gru}
        return matches[lengths](ref, form) if lengths in matches else "the new state is not that of an RNN, GRU or LSTM"

    def _rnn(self, ref: Ref, form: Form) -> Cell | str:
        ((atom,),) = form.terms
        if not atom.function or form.terms[atom,] != 1:
            return "the new state is not an activation function"
        gate = self._gate(atom)
        if isinstance(gate, str):
            return gate
        return self._cell("RNN", {"h": gate[0]}, gate[1], ref, form.shape)

    def _lstm(self, ref: Ref, form: Form) -> Cell | str:
        ((factors, coefficient),) = form.terms.items()
        why = "the new state is not o * h(c)"
        if coefficient != 1 or not all(atom.function for atom in factors):
            return why
        for o, out in (factors, factors[::-1]):
            result = self._lstm_of(ref, form, o, out)
            if isinstance(result, Cell):
                return result
            why = result if len(result) > len(why) else why
        return why

    def _lstm_of(self, ref: Ref, form: Form, o: Atom, out: Atom) -> Cell | str:
        cell_state = self._values.at(out.ref)
        if cell_state is None or cell_state.bias.any() or any(c.ndim or c != 1 for c in cell_state.terms.values()):
            return "the cell state is not f * c + i * g"
        kept = {factors: [a for a in factors if not a.function] for factors in cell_state.terms}
        forget = [factors for factors, states in kept.items() if len(states) == 1 and len(factors) == 2]
        new = [factors for factors, states in kept.items() if not states and len(factors) == 2]
        if len(new) != 1 or len(forget) > 1 or len(forget) + 1 != len(kept):
            return "the cell state is not f * c + i * g"
        c = kept[forget[0]][0].ref if forget else None
        atoms = {"o": o, "i": new[0][0], "c": new[0][1]}
        if (atoms["c"].function, atoms["c"].parameters) == (o.function, o.parameters):
            atoms["i"], atoms["c"] = atoms["c"], atoms["i"]
        if forget:
            atoms["f"] = next(atom for atom in forget[0] if atom.function)
        gates: dict[str, Gate] = {}
        states: set[Ref] = set()
        for name, atom in atoms.items():
            gate = self._gate(atom)
            if isinstance(gate, str):
                return gate
            gates[name] = gate[0]
            states |= gate[1]
        width = cell_state.width
        gates["out"] = Gate(out.function, out.parameters, {}, None, np.zeros(width, cell_state.bias.dtype))
        new_c = out.ref
        return self._cell("LSTM", gates, states, ref, form.shape, c=c, new_c=new_c)

    def _gru(self, ref: Ref, form: Form) -> Cell | str:
        """Return the GRU n - z n + z h, or h - z h + z n, whose update gate is 1 - z."""
        why = "the new state is not (1 - z) * n + z * h"
        ((single, coefficient),) = ((key[0], value) for key, value in form.terms.items() if len(key) == 1)
        pairs = {factors: float(value) for factors, value in form.terms.items() if len(factors) == 2}
        leaving = [factors for factors, value in pairs.items() if value == -1 and single in factors]
        coming = [factors for factors, value in pairs.items() if value == 1]
        if coefficient != 1 or len(leaving) != 1 or len(coming) + 1 != len(pairs):
            return why
        z = leaving[0][0] if leaving[0][1] == single else leaving[0][1]
        others = [atom for atom in coming[0] if atom != z] if coming else []
        if coming and (len(others) != 1 or z not in coming[0]):
            return why
        is_opposite = self._is_state(single)
        n, kept = (others, [single]) if is_opposite else ([single], others)
        if not n or self._is_state(n[0]) or not all(map(self._is_state, kept)):
            return why
        gate = self._gate(z)
        if isinstance(gate, str):
            return gate
        update = gate[0].opposite() if is_opposite else gate[0]
        if update is None:
            return "the update gate has the opposite meaning, and no sigmoid"
        new = n[0] if n[0].function else replace(n[0], function=_LINEAR, parameters=(1.0, 0.0))
        cell = self._reset(ref, form, new, {"z": update}, gate[1] | {atom.ref for atom in kept})
        has_state = not isinstance(cell, str) and cell.h is not None
        return why if has_state and not kept else cell

    def _is_state(self, atom: Atom) -> bool:
        return not atom.function and atom.ref.name in self._states

    def _reset(self, ref: Ref, form: Form, n: Atom, gates: dict[str, Gate], states: set[Ref]) -> Cell | str:
        """Return the cell of a GRU whose gate z is known."""
        parts = self._parts(n)
        if isinstance(parts, str):
            return parts
        if not parts.products:
            gates["h"] = Gate(n.function, n.parameters, parts.W, None, parts.bias)
            has_state = bool(states or parts.states)
            return "the GRU has no reset gate" if has_state else self._cell("GRU", gates, states, ref, form.shape)
        why = "the candidate of the GRU is not g(x W + r h R + b)"
        if len(parts.products) != 1 or parts.states:
            return why
        ((factors, coefficient),) = parts.products.items()
        reset = [atom for atom in factors if atom.function]
        other = [atom for atom in factors if not atom.function]
        gate = self._gate(reset[0]) if len(reset) == 1 and len(other) < 2 else why
        if isinstance(gate, str):
            return gate
        gates["r"], states = gate[0], states | gate[1]
        inner: tuple[AnyArray | None, AnyArray | None, set[Ref]] | str
        if coefficient.ndim == 2 and other and other[0].ref.name in self._states:
            inner = coefficient, None, {other[0].ref}
        else:
            inner = self._inner(other, coefficient)
        if isinstance(inner, str):
            return inner
        R, bias, more = inner
        gates["h"] = Gate(n.function, n.parameters, parts.W, R, parts.bias)
        return self._cell("GRU", gates, states | more, ref, form.shape, reset_bias=bias)

    def _inner(self, other: list[Atom], coefficient: AnyArray) -> tuple[AnyArray | None, AnyArray, set[Ref]] | str:
        """Return R, b' and the state of h R + b', which the reset gate multiplies."""
        if not other:  # the state is zero
            return (None, coefficient, set()) if coefficient.ndim == 1 else "the reset gate multiplies a number"
        if coefficient.ndim or coefficient != 1:
            return "the reset gate multiplies more than h R + b"
        form = self._values.at(other[0].ref)
        parts = None if form is None else self._split(form)
        if parts is None or isinstance(parts, str):
            return "the shape of h R + b is unknown" if parts is None else parts
        if parts.W or parts.products or len(parts.states) != 1:
            return "the reset gate multiplies more than h R + b"
        ((state, R),) = parts.states.items()
        return R, parts.bias, {state}

    def _gate(self, atom: Atom) -> tuple[Gate, set[Ref]] | str:
        """Return a gate and the states that it takes."""
        parts = self._parts(atom)
        if isinstance(parts, str):
            return parts
        if parts.products or len(parts.states) > 1:
            return "a gate has more than x W + h R + b"
        R = next(iter(parts.states.values()), None)
        return Gate(atom.function, atom.parameters, parts.W, R, parts.bias), set(parts.states)

    def _parts(self, atom: Atom) -> _Parts | str:
        form = self._values.at(atom.ref) if atom.function else None
        return "the shape of a gate is unknown" if form is None else self._split(form)

    def _split(self, form: Form) -> _Parts | str:
        parts = _Parts(bias=form.bias)
        for factors, coefficient in form.terms.items():
            if len(factors) > 1 or factors[0].function:
                parts.products[factors] = coefficient
            elif coefficient.ndim != 2:
                return "a gate has a term that is no matrix product"
            elif factors[0].ref.name in self._states:
                parts.states[factors[0].ref] = coefficient
            else:
                parts.W[factors[0].ref] = coefficient
        return parts

    def _cell(
        self,
        operator: CellName,
        gates: dict[str, Gate],
        states: set[Ref],
        ref: Ref,
        shape: Shape,
        *,
        c: Ref | None = None,
        new_c: Ref | None = None,
        reset_bias: AnyArray | None = None,
    ) -> Cell | str:
        functions = {name: (gate.function, gate.parameters) for name, gate in gates.items()}
        if any(functions[a] != functions[b] for a, b in _SAME[operator] if a in functions and b in functions):
            return f"the gates of the {operator} have different activations"
        h = next(iter(states), None)
        weighted = [gate for name, gate in gates.items() if name != "out"]
        why = _unfit(h, len(states), weighted, ref.width)
        if why:
            return why
        linear = reset_bias is not None
        return Cell(operator, gates, h, c, ref, new_c, shape, linear, reset_bias)


def _unfit(h: Ref | None, states: int, gates: Sequence[Gate], size: int) -> str:
    """Return why the gates are not those of one state with that size; "" if they are."""
    reasons = {
        "the gates take different states": states > 1,
        "the gates take a part of the state": h is not None and (h.width != size or h.start != 0),
        "the gates have other sizes than the state": any(gate.b.shape != (size,) for gate in gates),
        "the recurrent weights are not square": any(
            gate.R is not None and gate.R.shape != (size, size) for gate in gates
        ),
        "a gate does not take the state": h is not None and any(gate.R is None for gate in gates),
        "no gate takes an input": not any(gate.W for gate in gates),
    }
    return next((why for why, is_so in reasons.items() if is_so), "")
