"""Stacks whose weights belong to somebody else, who may change them between calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._kernels.digest import digest
from pyrnnx._kernels.pipeline import run_pipeline, turn_steps
from pyrnnx.errors import PyrnnxError, shortened
from pyrnnx.layers.prepare import prepare
from pyrnnx.operator.conventions import Convention
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.stacks.stacked_layer import Arguments


class BorrowedStack:
    """Layers in sequence with packed weights, and the arrays that they were packed from.

    It contains no other copy of the weights, and does not check its arguments.

    Parameters
    ----------
    label : str
        Name in error messages.
    sources : tuple of ndarray
        The owner's arrays, C-contiguous. They stay views of the owner's memory.
    layers : iterable of (RecurrentOp, mapping)
        Operators, all of one hidden_size and direction, with W, R and optionally B in `convention`.
    convention : Convention
        TORCH or TORCH_CELL: the arrangement of weights and calls.
    """

    def __init__(
        self,
        label: str,
        sources: tuple[AnyArray, ...],
        layers: Iterable[tuple[RecurrentOp, Mapping[str, AnyArray]]],
        convention: Convention,
    ) -> None:
        self._sources, self._digest = sources, digest(sources)  # before the copies: a later change is always seen
        self.dtype: np.dtype[np.generic] = np.dtype(sources[0].dtype.type)
        try:
            rows = [(op, prepare(op, weights, convention, None)) for op, weights in layers]
        except (MemoryError, OverflowError, ValueError) as error:  # sizes beyond memory, an address or a C int
            raise PyrnnxError(f"{label}: the weights cannot be packed ({shortened(str(error))})") from error
        self._packed = tuple(packed for _, packed in rows)
        self.num_directions, self.has_cell_state = rows[0][0].num_directions, rows[0][0].has_cell_state

    def is_current(self) -> bool:
        """Return whether the owner's arrays still have the bytes that were packed, by a digest of all of them."""
        return digest(self._sources) == self._digest

    def run(
        self,
        threads: int,
        X: AnyArray,
        lengths: AnyArray | None,
        initial: tuple[AnyArray | None, ...],
        Y: AnyArray,
        last: tuple[AnyArray, ...],
    ) -> bool:
        """Run over sequences, and return whether the kernels could use the arrays in place.

        Parameters
        ----------
        threads : int
            Maximum number of threads.
        X : ndarray
            Input [T, N, I].
        lengths : ndarray of int, or None
            Length of each row; None: T.
        initial : tuple
            h and, for an LSTM, c, each [number of layers * D, N, H], or None for zero.
        Y : ndarray
            Array [T, N, D, H] for the last layer's Y.
        last : tuple of ndarray
            Arrays for the last states, in the form of `initial`.
        """
        D, end = self.num_directions, len(self._packed) - 1
        T, N, _ = X.shape
        steps = turn_steps(self._packed, threads, T, N)
        arguments: list[Arguments] = []
        for k, packed in enumerate(self._packed):
            out = Y if k == end else np.empty((T, N, *Y.shape[2:]), self.dtype)
            own, own_last = initial, last
            if end:
                rows = slice(k * D, (k + 1) * D)
                own = tuple([None if state is None else state[rows] for state in initial])
                own_last = tuple([state[rows] for state in last])
            c = own[1] if self.has_cell_state else None
            own_arguments = X, lengths, own[0], c, False, (out, *own_last)
            if steps:
                arguments.append(own_arguments)
            elif packed.run(threads, *own_arguments) is None:
                return False
            if k < end:
                X = out.reshape(T, N, -1)
        return not steps or run_pipeline(self._packed, threads, steps, arguments) is not None

    def step(self, threads: int, X: AnyArray, initial: tuple[AnyArray | None, ...], out: tuple[AnyArray, ...]) -> bool:
        """Run one step of a cell on X [N, I] and states [N, H]; return whether the kernels could use the arrays."""
        c = initial[1] if self.has_cell_state else None
        return self._packed[0].run(threads, X, None, initial[0], c, False, (None, *out)) is not None
