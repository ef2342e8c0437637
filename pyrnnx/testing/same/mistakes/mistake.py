"""A mistake as a computation of the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.comparison import oracle
from pyrnnx.comparison.oracle import Arguments
from pyrnnx.layers.layer import Layer

Outputs = Mapping[str, AnyArray]


class Mistake(NamedTuple):
    """Mistake: the oracle with changed arguments, or changed results of it."""

    words: str  # that follow "as if"
    changes: Arguments  # of the oracle's arguments
    results: Callable[[Outputs, Outputs], Outputs] | None = None  # from the changed results and the right ones

    def outputs(self, layer: Layer, given: Arguments, right: Outputs) -> Outputs:
        """Return the outputs of a layer with this mistake."""
        changed = oracle.outputs(layer, given | self.changes) if self.changes else right
        return changed if self.results is None else self.results(changed, right)
