"""The states of a stack: in one array, as PyTorch has them, or one array for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrnnx import check
from pyrnnx.conventions import CANONICAL
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.op import RecurrentOp

States = list[AnyArray | None]  # of each layer [num_directions, batch_size, hidden_size], None where it has none


class StateForm:
    """How a stack is given states of one kind, and returns them.

    Attributes
    ----------
    argument : str
        "initial_h" or "initial_c".
    ops : tuple of RecurrentOp
        Of its layers.
    counts : tuple of int
        How many rows of the first axis each layer has in one array of all: 0 of a layer without such states.
    exists : bool
        Whether any layer has such states.
    is_joined : bool
        Whether one array can hold them: all layers are of one hidden_size.
    """

    def __init__(self, argument: str, ops: Sequence[RecurrentOp]) -> None:
        self.argument, self.ops = argument, tuple(ops)
        held = [op.has_cell_state or argument == "initial_h" for op in ops]
        self.counts = tuple([op.num_directions if has else 0 for op, has in zip(ops, held, strict=True)])
        self.exists, self.is_joined = any(held), len({op.hidden_size for op in ops}) == 1

    def apart(self, label: str, value: Any, N: int, dtypes: Sequence[np.dtype[Any]]) -> States:
        """What was given, as an array for each layer, None for zero.

        Parameters
        ----------
        label : str
            How errors name the stack.
        value : array_like, or list of array_like, or None
        N : int
            batch_size.
        dtypes : sequence of numpy.dtype
            Those that the arrays may have, that of the stack first.

        Raises
        ------
        PyrnnxError
            Arrays that do not fit; states of layers that have none.
        """
        if value is None:
            return [None] * len(self.counts)
        if not self.exists:
            raise UnsupportedError(f"{label}: {self.argument} was given; no layer has a cell state")
        if isinstance(value, (list, tuple)):
            return self._of_each(label, value, N, dtypes)
        if not self.is_joined:
            raise ArgumentError(
                f"{label}: {self.argument} is one {type(value).__name__}, and the layers have hidden_sizes "
                f"{shown(tuple([op.hidden_size for op in self.ops]))}; expected a list of {len(self.counts)} arrays, "
                "one for each layer"
            )
        state = self._checked(label, value, sum(self.counts), N, self.ops[0].hidden_size, dtypes)
        ends = np.cumsum(self.counts)
        return [state[end - D : end] if D else None for end, D in zip(ends, self.counts, strict=True)]

    def _of_each(self, label: str, values: Sequence[Any], N: int, dtypes: Sequence[np.dtype[Any]]) -> States:
        if len(values) != len(self.counts):
            raise ArgumentError(
                f"{label}: {self.argument} is a {type(values).__name__} of {len(values)}; expected an array, or a list "
                f"of {len(self.counts)} arrays, one for each layer"
            )
        states = States()
        for k, (value, D, op) in enumerate(zip(values, self.counts, self.ops, strict=True)):
            place = f"{label}: layers[{k}]"
            if value is not None and not D:
                raise UnsupportedError(
                    f"{place}: {self.argument} was given; expected None, for {op.cell} has no cell state"
                )
            states.append(None if value is None else self._checked(place, value, D, N, op.hidden_size, dtypes))
        return states

    def _checked(self, label: str, value: Any, D: int, N: int, H: int, dtypes: Sequence[np.dtype[Any]]) -> AnyArray:
        array = check.same_shape(label, CANONICAL, self.argument, value, dtypes, {"D": D, "N": N, "H": H})
        return check.inner_contiguous(label, self.argument, array)

    def empty(self, N: int, dtype: np.dtype[Any]) -> States:
        """Arrays for the states of each layer, None where it has none."""
        return [
            np.empty((D, N, op.hidden_size), dtype) if D else None for D, op in zip(self.counts, self.ops, strict=True)
        ]

    def together(self, states: States) -> Any:
        """States of each layer as they are returned: one array, or a list."""
        if not self.is_joined:
            return states
        return np.concatenate([state for state in states if state is not None])
