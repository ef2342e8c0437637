"""What a recurrent operator is: frozen data, checked when it is made. No arrays, no formats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx import notebook
from pyrnnx._kernels import tables
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scalars import as_number, integer


class Direction(str, Enum):
    """In which order the time steps are taken."""

    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIRECTIONAL = "bidirectional"

    @classmethod
    def named(cls, label: str, value: Any) -> Direction:
        """The direction of that name; `label` is how the error names the operator or layer.

        Raises
        ------
        ArgumentError
            Another name.
        """
        if isinstance(value, str) and value in list(cls):
            return cls(value)
        allowed = ", ".join(one.value for one in cls)
        raise ArgumentError(f"{label}: direction is {shown(value)}; expected one of {allowed}")

    @property
    def reversed(self) -> tuple[bool, ...]:
        """For each of num_directions: whether it runs from the last time step to the first."""
        return _REVERSED[self.value]

    @property
    def num_directions(self) -> int:
        return len(_REVERSED[self.value])


_REVERSED = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class ActivationFunction:
    """A row of the table of activation functions.

    `alpha`, `beta`: the default of that parameter, NaN where the function takes it but has no default,
    None where the function does not take it. `formula`: as in the operator texts.
    """

    name: str
    formula: str
    alpha: float | None
    beta: float | None


# The rows stand in _kernels/tables.h.
ACTIVATIONS: Mapping[str, ActivationFunction] = MappingProxyType(
    {row[0]: ActivationFunction(*row) for row in tables.ACTIVATIONS}
)
KERNEL_NUMBERS: Mapping[str, int] = MappingProxyType({name: number for number, name in enumerate(ACTIVATIONS)})
_BY_LOWER_NAME = {row.name.lower(): row for row in ACTIVATIONS.values()}


def activation_function(name: str) -> ActivationFunction:
    """The row of the table with that name, in any case.

    Raises
    ------
    ArgumentError
        Unknown name.
    """
    try:
        return _BY_LOWER_NAME[name.lower()]
    except (KeyError, AttributeError):
        raise ArgumentError(f"activation {shown(name)} is unknown; expected one of {', '.join(ACTIVATIONS)}") from None


@dataclass(frozen=True)
class Activation:
    """An activation function with its parameters.

    Parameters
    ----------
    name : str
        A name of `ACTIVATIONS`, in any case.
    alpha, beta : float, optional
        The parameters that the function takes; the function's defaults where None.

    Raises
    ------
    ArgumentError
        Unknown name; a parameter that the function does not take, that is not finite, or that it needs and lacks.
    """

    name: str
    alpha: float | None = None
    beta: float | None = None

    def __post_init__(self) -> None:
        row = activation_function(self.name)
        object.__setattr__(self, "name", row.name)
        for parameter in ("alpha", "beta"):
            self._set_parameter(parameter, getattr(row, parameter))

    def _set_parameter(self, parameter: str, default: float | None) -> None:
        value = getattr(self, parameter)
        if default is None:
            if value is not None:
                raise ArgumentError(f"activation {self.name} takes no {parameter}; {shown(value)} was given")
            return
        if value is None:
            if math.isnan(default):
                raise ArgumentError(f"activation {self.name} needs {parameter}, which has no default value")
            value = default
        number = as_number(value)
        if number is None or not math.isfinite(number):
            raise ArgumentError(f"activation {self.name}: {parameter} is {shown(value)}; expected a finite number")
        object.__setattr__(self, parameter, number)

    def __repr__(self) -> str:
        parameters = [f", {p}={v!r}" for p, v in (("alpha", self.alpha), ("beta", self.beta)) if v is not None]
        return f"{type(self).__name__}({self.name!r}{''.join(parameters)})"

    def __str__(self) -> str:
        parameters = [f"{p}={v:g}" for p, v in (("alpha", self.alpha), ("beta", self.beta)) if v is not None]
        return self.name + (f"({', '.join(parameters)})" if parameters else "")


@dataclass(frozen=True)
class Cell:
    """A row of the table of cells: what an RNN, GRU or LSTM cell has.

    `gates`: in ONNX order. `activations`: the default ones of f, g, h.
    """

    name: str
    gates: str
    activations: tuple[str, ...]
    has_cell_state: bool
    kernel_number: int


# The rows stand in _kernels/tables.h.
CELLS: Mapping[str, Cell] = MappingProxyType({row[0]: Cell(*row, number) for number, row in enumerate(tables.CELLS)})


@cache
def _default_activations(cell: str) -> tuple[Activation, ...]:
    return tuple(Activation(name) for name in CELLS[cell].activations)


@dataclass(frozen=True)
class RecurrentOp:
    """One recurrent operator, whatever format it came in.

    Parameters
    ----------
    cell : str
        "RNN", "GRU" or "LSTM".
    hidden_size : int
        Number of hidden units, at least 1.
    direction : Direction or str
        "forward", "reverse" or "bidirectional".
    activations : tuple of tuples of Activation, optional
        For each direction the functions f (RNN), f and g (GRU), or f, g and h (LSTM). Default: those of the equations.
    clip : float, optional
        Bound of every gate pre-activation, positive and finite. Default None: no clipping.
    linear_before_reset : bool
        GRU: apply the recurrence weights before the reset gate.
    input_forget : bool
        LSTM: couple the forget gate to the input gate, f = 1 - i.
    label : str, optional
        How errors name the operator or its layer; not kept. Default: `cell`.

    Raises
    ------
    ArgumentError
        A value is not one of those above.

    Source: ONNX operators RNN, GRU, LSTM; OpenVINO RNNSequence-5, GRUSequence-5, LSTMSequence-5 and their cells.
    """

    cell: str
    hidden_size: int
    direction: Direction = Direction.FORWARD
    activations: tuple[tuple[Activation, ...], ...] = ()
    clip: float | None = None
    linear_before_reset: bool = False
    input_forget: bool = False
    label: InitVar[str | None] = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # what is taken is wider than what is kept

        def __init__(
            self,
            cell: str,
            hidden_size: int,
            direction: Direction | str = Direction.FORWARD,
            activations: tuple[tuple[Activation, ...], ...] = (),
            clip: float | None = None,
            linear_before_reset: bool = False,
            input_forget: bool = False,
            *,
            label: str | None = None,
        ) -> None: ...

    def __post_init__(self, label: str | None) -> None:
        if label is not None and not isinstance(label, str):
            raise ArgumentError(f"RecurrentOp: label is {shown(label)}; expected a string, or None")
        if not isinstance(self.cell, str) or self.cell not in CELLS:
            where = f"{label}: " if label else ""
            raise ArgumentError(f"{where}cell is {shown(self.cell)}; expected one of {', '.join(CELLS)}")
        object.__setattr__(self, "cell", str(self.cell))
        label = label or self.cell
        size = integer(label, "hidden_size", self.hidden_size, 1, expected="a positive integer")
        object.__setattr__(self, "hidden_size", size)
        object.__setattr__(self, "direction", Direction.named(label, self.direction))
        self._check_clip(label)
        self._check_flags(label)
        self._check_activations(label)

    def _check_clip(self, label: str) -> None:
        if self.clip is None:
            return
        clip = as_number(self.clip)
        if clip is None or not 0 < clip < math.inf:
            raise ArgumentError(f"{label}: clip is {shown(self.clip)}; expected a positive finite number, or no clip")
        object.__setattr__(self, "clip", clip)

    def _check_flags(self, label: str) -> None:
        for flag, cell in (("linear_before_reset", "GRU"), ("input_forget", "LSTM")):
            value = getattr(self, flag)
            if not isinstance(value, (bool, np.bool_)):
                raise ArgumentError(f"{label}: {flag} is {shown(value)}; expected a bool")
            object.__setattr__(self, flag, bool(value))
            if value and self.cell != cell:
                raise ArgumentError(f"{label}: {flag} is True; only {cell} has it")

    def _check_activations(self, label: str) -> None:
        defaults = CELLS[self.cell].activations
        if self.activations is None or (isinstance(self.activations, (tuple, list)) and not self.activations):
            object.__setattr__(self, "activations", (_default_activations(self.cell),) * self.num_directions)
            return
        try:
            activations = tuple(() if isinstance(one, str) else tuple(one) for one in self.activations)
        except TypeError:
            activations = ()
        each = [function for given in activations for function in given or (None,)]
        if not each or not all(isinstance(function, Activation) for function in each):
            raise ArgumentError(
                f"{label}: activations is {shown(self.activations)}; expected a tuple of Activation for each direction"
            )
        object.__setattr__(self, "activations", activations)
        if len(self.activations) != self.num_directions or any(len(one) != len(defaults) for one in self.activations):
            counts = tuple(len(one) for one in self.activations)
            expected = (len(defaults),) * self.num_directions
            raise ArgumentError(f"{label}: activations per direction: {counts} were given; expected {expected}")

    def __repr__(self) -> str:
        """What makes it again, without what is at its default."""
        given = [f", direction={self.direction.value!r}"] if self.direction is not Direction.FORWARD else []
        if any(one != _default_activations(self.cell) for one in self.activations):
            given.append(f", activations={self.activations!r}")
        given += [f", clip={self.clip!r}"] if self.clip is not None else []
        given += [f", {flag}=True" for flag in ("linear_before_reset", "input_forget") if getattr(self, flag)]
        return f"{type(self).__name__}({self.cell!r}, hidden_size={self.hidden_size}{''.join(given)})"

    def facts(self) -> dict[str, str]:
        """What it is, in words: by the names of its fields, without flags that are not set."""
        sets = list(dict.fromkeys(", ".join(map(str, one)) for one in self.activations))
        found = {
            "cell": self.cell,
            "direction": self.direction.value,
            "hidden_size": str(self.hidden_size),
            "activations": "; reverse: ".join(sets),
        }
        found |= {} if self.clip is None else {"clip": f"{self.clip:g}"}
        return found | {flag: "yes" for flag in ("linear_before_reset", "input_forget") if getattr(self, flag)}

    def _repr_html_(self) -> str:
        return notebook.whole(notebook.facts(type(self).__name__, self.facts()))

    @property
    def num_directions(self) -> int:
        return len(_REVERSED[self.direction.value])

    @property
    def gates(self) -> str:
        """The gates in ONNX order: "i", "zrh" or "iofc"."""
        return CELLS[self.cell].gates

    @property
    def has_cell_state(self) -> bool:
        return CELLS[self.cell].has_cell_state
