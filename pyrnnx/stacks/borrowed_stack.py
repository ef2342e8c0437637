"""Stacks whose weights belong to somebody else, who may change them between calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._kernels.digest import digest
from pyrnnx.errors import PyrnnxError, shortened
from pyrnnx.layers.prepare import prepare
from pyrnnx.operator.conventions import TORCH, Convention
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.stacks.chain import Chain, States


class BorrowedStack(Chain):
    """Layers of one hidden_size and direction in the convention TORCH, packed from arrays of somebody else.

    It contains no other copy of the weights, and does not check its arguments. `sources` are the owner's arrays,
    C-contiguous; W, R and optionally B of `layers` are in `convention`: TORCH, or TORCH_CELL for `step`.
    """

    def __init__(
        self,
        label: str,
        sources: tuple[AnyArray, ...],
        layers: Iterable[tuple[RecurrentOp, Mapping[str, AnyArray]]],
        convention: Convention,
    ) -> None:
        self._sources, self._digest = sources, digest(sources)  # before the copies: a later change is always seen
        try:
            rows = [(op, TORCH, prepare(op, weights, convention, None)) for op, weights in layers]
        except (MemoryError, OverflowError, ValueError) as error:  # sizes beyond memory, an address or a C int
            raise PyrnnxError(f"{label}: the weights cannot be packed ({shortened(str(error))})") from error
        super().__init__(np.dtype(sources[0].dtype.type), rows)
        self.num_directions, self.has_cell_state = rows[0][0].num_directions, rows[0][0].has_cell_state

    def is_current(self) -> bool:
        """Return whether the owner's arrays still have the bytes that were packed, by a digest of all of them."""
        return digest(self._sources) == self._digest

    def run_joined(
        self,
        threads: int,
        X: AnyArray,
        lengths: AnyArray | None,
        initial: tuple[AnyArray | None, ...],
        Y: AnyArray,
        last: tuple[AnyArray, ...],
    ) -> bool:
        """Call `run` with h and, for an LSTM, c as arrays [number of layers * D, N, H], or None for zero."""
        return self.run(threads, X, lengths, self._by_layer(initial), Y, self._by_layer(last))

    def _by_layer(self, states: tuple[AnyArray | None, ...]) -> tuple[States, States]:
        D, count = self.num_directions, len(self.packed)
        h, c = states if self.has_cell_state else (states[0], None)
        if count == 1:
            return [h], [c]
        ends = [slice(k * D, (k + 1) * D) for k in range(count)]
        return [h if h is None else h[end] for end in ends], [c if c is None else c[end] for end in ends]

    def step(self, threads: int, X: AnyArray, initial: tuple[AnyArray | None, ...], out: tuple[AnyArray, ...]) -> bool:
        """Run one step of a cell on X [N, I] and states [N, H]; return whether the kernels could use the arrays."""
        c = initial[1] if self.has_cell_state else None
        return self.packed[0].run(threads, X, None, initial[0], c, False, (None, *out)) is not None
