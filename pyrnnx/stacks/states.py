"""States of a stack: one array, as in PyTorch, or one array per layer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CANONICAL, Convention
from pyrnnx.operator.op import RecurrentOp

# Arrays of a stack. Y has one axis for D and H, which is the X that the next layer reads.
STACKED = tuple(
    Convention(f"stack, {name}", axes={"X": axes, "state": "DNH", "sequence_lens": "N"}, length_dtypes=INTEGERS)
    for name, axes in (("seq_length first", "TNI"), ("batch_size first", "NTI"))
)
States = list[AnyArray | None]  # one [num_directions, batch_size, hidden_size] per layer; None: zero, or no such state


class StateForm:
    """Form in which a stack reads and returns initial_h and Y_h, or initial_c and Y_c."""

    def __init__(self, argument: str, ops: Sequence[RecurrentOp]) -> None:
        self.argument, self.ops = argument, tuple(ops)
        # length of the first axis for each layer: 0 for a layer without this state
        self.counts = tuple(
            [op.num_directions if op.has_cell_state or argument == "initial_h" else 0 for op in self.ops]
        )
        self.exists = any(self.counts)
        self.is_joined = len({op.hidden_size for op in ops}) == 1  # one array can contain the states of all layers

    def split(self, label: str, value: Any, N: int, dtypes: Sequence[np.dtype[Any]]) -> States:
        """Return an array of N rows per layer, None for zero; the first of the allowed dtypes is the stack's."""
        if value is None:
            return [None] * len(self.counts)
        if not self.exists:
            raise UnsupportedError(f"{label}: {self.argument} was given; no layer has a cell state")
        if isinstance(value, (list, tuple)):
            return self._check_list(label, value, N, dtypes)
        if not self.is_joined:
            raise ArgumentError(
                f"{label}: {self.argument} is one {type(value).__name__}, and the layers have hidden_sizes "
                f"{shown(tuple([op.hidden_size for op in self.ops]))}; expected a list of {len(self.counts)} arrays, "
                "one for each layer"
            )
        return self._parts(self._checked(label, value, sum(self.counts), N, self.ops[0].hidden_size, dtypes))

    def _check_list(self, label: str, values: Sequence[Any], N: int, dtypes: Sequence[np.dtype[Any]]) -> States:
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
                    f"{place}: {self.argument} was given; expected None, because {op.cell} has no cell state"
                )
            states.append(None if value is None else self._checked(place, value, D, N, op.hidden_size, dtypes))
        return states

    def _checked(self, label: str, value: Any, D: int, N: int, H: int, dtypes: Sequence[np.dtype[Any]]) -> AnyArray:
        array = check.same_shape(label, CANONICAL, self.argument, value, dtypes, {"D": D, "N": N, "H": H})
        return check.inner_contiguous(label, self.argument, array)

    def empty(self, N: int, dtype: np.dtype[Any]) -> tuple[Any, States]:
        """Return uninitialized states as `join` does, and views of them: an array per layer."""
        if not self.is_joined:
            sizes = zip(self.counts, self.ops, strict=True)
            states: States = [np.empty((D, N, op.hidden_size), dtype) if D else None for D, op in sizes]
            return states, states
        whole = np.empty((sum(self.counts), N, self.ops[0].hidden_size), dtype)
        return whole, self._parts(whole)

    def _parts(self, whole: AnyArray) -> States:
        ends = accumulate(self.counts)
        return [whole[end - D : end] if D else None for end, D in zip(ends, self.counts, strict=True)]

    def join(self, states: States) -> Any:
        """Return the states of all layers as one array, or as a list if their hidden sizes differ."""
        if not self.is_joined:
            return states
        return np.concatenate([state for state in states if state is not None])
