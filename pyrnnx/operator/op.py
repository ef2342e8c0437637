"""Recurrent operators as immutable, checked data, independent of arrays and formats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from pyrnnx._internal.scalars import as_number, integer
from pyrnnx._kernels import engines
from pyrnnx.errors import ArgumentError, shown

CellName: TypeAlias = Literal["RNN", "GRU", "LSTM"]
DirectionName: TypeAlias = Literal["forward", "reverse", "bidirectional"]


class Direction(str, Enum):
    """Order of the time steps."""

    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIRECTIONAL = "bidirectional"

    @classmethod
    def named(cls, label: str, value: Any) -> Direction:
        """Return the direction with this name; `label` names the operator or layer in the error.

        Raises
        ------
        ArgumentError
            The name is unknown.
        """
        if isinstance(value, str) and value in list(cls):
            return cls(value)
        allowed = ", ".join(direction.value for direction in cls)
        raise ArgumentError(f"{label}: direction is {shown(value)}; expected one of {allowed}")

    @property
    def reversed(self) -> tuple[bool, ...]:
        """For each direction, whether it runs from the last time step to the first."""
        return _REVERSED[self.value]

    @property
    def num_directions(self) -> int:
        return len(_REVERSED[self.value])


_REVERSED = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True)
class ActivationFunction:
    """A row of the table of activation functions.

    `alpha` and `beta` are default values: NaN if the function has the parameter without a default, None if it does not
    have the parameter. `formula` is the text of the operator's specification.
    """

    name: str
    formula: str
    alpha: float | None
    beta: float | None


# The rows are defined in _kernels/tables.h.
ACTIVATIONS: Mapping[str, ActivationFunction] = MappingProxyType(
    {row[0]: ActivationFunction(*row) for row in engines.ACTIVATIONS}
)
KERNEL_NUMBERS: Mapping[str, int] = MappingProxyType({name: number for number, name in enumerate(ACTIVATIONS)})
_BY_LOWER_NAME = {row.name.lower(): row for row in ACTIVATIONS.values()}


def activation_function(name: str) -> ActivationFunction:
    """Return the row of the table with this name, ignoring case."""
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
        A name of `ACTIVATIONS`; case is ignored.
    alpha, beta : float, optional
        Parameters of the function. Default: the function's defaults.

    Raises
    ------
    ArgumentError
        The name is unknown, or a parameter is missing, not finite, or not one of the function's.
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
    """A row of the table of cells: RNN, GRU or LSTM.

    `gates` are in ONNX order. `activations` are the defaults of f, g and h.
    """

    name: CellName
    gates: str
    activations: tuple[str, ...]
    has_cell_state: bool
    kernel_number: int


# The rows are defined in _kernels/tables.h.
CELLS: Mapping[str, Cell] = MappingProxyType({row[0]: Cell(*row, number) for number, row in enumerate(engines.CELLS)})


@cache
def _default_activations(cell: CellName) -> tuple[Activation, ...]:
    return tuple(Activation(name) for name in CELLS[cell].activations)


def _entries(value: Any) -> tuple[Any, ...]:
    """Return the elements of an iterable; of a string or another value, nothing."""
    try:
        return () if isinstance(value, str) else tuple(value)
    except TypeError:
        return ()


def _functions(label: str, entry: Any) -> Activation | tuple[Activation, ...] | None:
    """Return a function, or the functions of a direction; None for anything else."""
    if isinstance(entry, Activation):
        return entry
    if isinstance(entry, str):
        try:
            return Activation(entry)
        except ArgumentError as error:
            raise ArgumentError(f"{label}: activations: {error}") from None
    functions: list[Activation] = []
    for function in _entries(entry):
        read = _functions(label, function) if isinstance(function, (Activation, str)) else None
        if not isinstance(read, Activation):
            return None
        functions.append(read)
    return tuple(functions) or None


@dataclass(frozen=True)
class RecurrentOp:
    """A recurrent operator, independent of its format.

    Parameters
    ----------
    cell : str
        "RNN", "GRU" or "LSTM".
    hidden_size : int
        Number of hidden units, at least 1.
    direction : Direction or str
        "forward", "reverse" or "bidirectional".
    activations : sequence, optional
        The functions f (RNN), f and g (GRU), or f, g and h (LSTM): `Activation`, or names of `ACTIVATIONS` with their
        default parameters. One sequence per direction or, as in ONNX, one sequence for all directions. Default: those
        of the equations.
    clip : float, optional
        Bound of every gate pre-activation, positive and finite. Default None: no clipping.
    linear_before_reset : bool
        GRU: apply the recurrence weights before the reset gate.
    input_forget : bool
        LSTM: couple the forget gate to the input gate, f = 1 - i.
    label : str, optional
        Name of the operator or its layer in errors; not stored. Default: `cell`.

    Raises
    ------
    ArgumentError
        A value is not one of those above.

    Source: ONNX operators RNN, GRU, LSTM; OpenVINO RNNSequence-5, GRUSequence-5, LSTMSequence-5 and their cells.
    """

    cell: CellName
    hidden_size: int
    direction: Direction = Direction.FORWARD
    activations: tuple[tuple[Activation, ...], ...] = ()
    clip: float | None = None
    linear_before_reset: bool = False
    input_forget: bool = False
    label: InitVar[str | None] = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # the arguments have wider types than the fields

        def __init__(
            self,
            cell: CellName,
            hidden_size: int,
            direction: Direction | DirectionName = Direction.FORWARD,
            activations: Sequence[Activation | str] | Sequence[Sequence[Activation | str]] = (),
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
            where = label or type(self).__name__
            raise ArgumentError(f"{where}: cell is {shown(self.cell)}; expected one of {', '.join(CELLS)}")
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
                raise ArgumentError(f"{label}: {flag} is {shown(value)}; expected True or False")
            object.__setattr__(self, flag, bool(value))
            if value and self.cell != cell:
                raise ArgumentError(f"{label}: {flag} is True; only {cell} has it")

    def _check_activations(self, label: str) -> None:
        defaults = CELLS[self.cell].activations
        if self.activations is None or (isinstance(self.activations, (tuple, list)) and not self.activations):
            object.__setattr__(self, "activations", (_default_activations(self.cell),) * self.num_directions)
            return
        count = len(defaults)
        functions: list[Any] = [_functions(label, entry) for entry in _entries(self.activations)]
        if all(isinstance(entry, Activation) for entry in functions):  # one sequence for all directions
            functions = [tuple(functions[k : k + count]) for k in range(0, len(functions), count)]
        if not functions or not all(isinstance(entry, tuple) for entry in functions):
            raise ArgumentError(
                f"{label}: activations is {shown(self.activations)}; expected Activations or names of functions, "
                "in one sequence per direction or in one sequence for all"
            )
        object.__setattr__(self, "activations", tuple(functions))
        if len(self.activations) != self.num_directions or any(len(own) != count for own in self.activations):
            counts, needed = [len(own) for own in self.activations], count * self.num_directions
            has = " and ".join(map(str, counts)) if sum(counts) == needed else str(sum(counts))
            expected = f"{needed}, {count} for each direction" if self.num_directions > 1 else str(count)
            raise ArgumentError(f"{label}: activations has {has} functions; expected {expected}")

    def __repr__(self) -> str:
        """Return the expression that builds this operator, without defaults."""
        arguments = [f", direction={self.direction.value!r}"] if self.direction is not Direction.FORWARD else []
        arguments += [] if self.has_default_activations else [f", activations={self.activations!r}"]
        arguments += [f", clip={self.clip!r}"] if self.clip is not None else []
        arguments += [f", {flag}=True" for flag in ("linear_before_reset", "input_forget") if getattr(self, flag)]
        return f"{type(self).__name__}({self.cell!r}, hidden_size={self.hidden_size}{''.join(arguments)})"

    @property
    def has_default_activations(self) -> bool:
        return all(functions == _default_activations(self.cell) for functions in self.activations)

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
