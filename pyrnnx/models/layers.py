"""Recurrent layers of a model, by name or index, each prepared when it is first accessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import MissingLayerError, shortened, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import Convention
from pyrnnx.operator.op import RecurrentOp


@runtime_checkable
class UnboundLayer(Protocol):
    """A layer whose weights are inputs, such as one read from a `<layer>` element.

    `op` is None if the layer does not declare its hidden_size.
    """

    @property
    def op(self) -> RecurrentOp | None: ...
    @property
    def convention(self) -> Convention: ...
    @property
    def label(self) -> str: ...
    @property
    def dtype(self) -> str | None: ...
    @property
    def sizes(self) -> Mapping[str, int]: ...
    def bind(self, W: Any, R: Any, B: Any) -> Layer: ...
    def __call__(self, *arrays: Any, **named: Any) -> tuple[AnyArray, ...]: ...


AnyLayer: TypeAlias = Layer | UnboundLayer
Source = TypeVar("Source")
LayerType_co = TypeVar("LayerType_co", bound=AnyLayer, covariant=True)


class Layers(Mapping[str, LayerType_co]):
    """Layers by name, in the model's order; an integer is an index in that order, -1 the last.

    Type checkers know the classes of the layers: ``Layers[NodeLayer | UnboundNode]`` for ONNX, ``Layers[Layer |
    IRLayer]`` for an IR, and ``Layers[Layer | UnboundLayer]`` for a `Model` of either format.

    Parameters
    ----------
    label : str
        Name of the model in error messages.
    sources : mapping
        Sources of the layers by name.
    make : callable
        Function that builds a layer from its source, when it is first accessed.
    why_none : callable, optional
        Function that returns why a model has no layers, or no more layers; "" if the reason is unknown.
    """

    def __init__(
        self,
        label: str,
        sources: Mapping[str, Source],
        make: Callable[[Source], LayerType_co],
        why_none: Callable[[], str] = lambda: "",
    ) -> None:
        self._label, self._sources, self._why_none = label, sources, why_none
        self._make: Callable[[Any], LayerType_co] = make
        self._made: dict[str, LayerType_co] = {}

    def __getitem__(self, key: str | int | np.integer[Any]) -> LayerType_co:
        name = self._name(key)
        if name not in self._made:
            self._made.setdefault(name, self._make(self._sources[name]))
        return self._made[name]

    def __contains__(self, key: object) -> bool:
        return key in self._sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def why_none(self) -> str:
        """Why a model has no recurrent layers, or why other parts of it are not recognised as layers; "" if unknown."""
        return self._why_none()

    def __repr__(self) -> str:
        if not self._sources:
            return f"<no layers{self._reason()}>"
        return f"<layers {shortened(', '.join(map(repr, self._sources)))}>"

    def _name(self, key: Any) -> str:
        names = list(self._sources)
        if isinstance(key, str) and key in self._sources:
            return key
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and -len(names) <= key < len(names):
            return names[int(key)]
        if not names:
            raise MissingLayerError(
                f"{self._label}: layers has no {shown(key)}, and no layer at all{self._reason()}", argument="layer"
            )
        near = get_close_matches(key, names, n=1) if isinstance(key, str) else []
        hint = f"; did you mean {shown(near[0])}?" if near else ""
        raise MissingLayerError(
            f"{self._label}: layers has no {shown(key)}; expected one of {shortened(', '.join(map(repr, names)))}, or "
            f"an index from 0 to {len(names) - 1}{hint}",
            argument="layer",
        )

    def _reason(self) -> str:
        return f": {self.why_none}" if self.why_none else ""


def why_none(weights: Iterable[Hashable], loops: Iterable[str]) -> str:
    """Return the likely reason why a model has no recurrent layers, or "".

    `weights` has a key for the constant factor of each matrix product; `loops` are operators that repeat a body.
    """
    shared = max(Counter(weights).values(), default=0)
    if shared > 1:
        return (
            f"{shared} matrix products share one weight, as if an exporter unrolled a recurrent layer into its time "
            "steps; another exporter, or another version of it, may write recurrent nodes"
        )
    kinds = Counter(loops)
    if kinds:
        counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return f"the bodies of {counted} contain the recurrence, as operators other than RNN, GRU and LSTM"
    return ""
