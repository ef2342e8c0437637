"""The recurrent layers of a model: by name or by place, each prepared when it is first asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import numpy as np

from pyrnnx import notebook
from pyrnnx.errors import MissingLayerError, PyrnnxError, shortened, shown

Source = TypeVar("Source")


class Layers(Mapping[str, Any]):
    """Layers by their names, in the model's order; an integer is a place in it, -1 the last.

    Parameters
    ----------
    label : str
        The model, as errors name it.
    sources : mapping
        What each layer is made of, by name.
    make : callable
        A source to its layer, when that is first asked for.
    why_none : callable, optional
        Of a model without layers, why it has none; "" where that is not known.
    """

    def __init__(
        self,
        label: str,
        sources: Mapping[str, Source],
        make: Callable[[Source], Any],
        why_none: Callable[[], str] = lambda: "",
    ) -> None:
        self._label, self._sources, self._make, self._why_none = label, sources, make, why_none
        self._made: dict[str, Any] = {}

    def __getitem__(self, key: str | int | np.integer[Any]) -> Any:
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
        """Why a model in which one would expect recurrent layers has none; "" if it has some, or that is not known."""
        return "" if self._sources else self._why_none()

    def __repr__(self) -> str:
        if not self._sources:
            return f"<no layers{self._reason()}>"
        return f"<layers {shortened(', '.join(map(repr, self._sources)))}>"

    def _repr_html_(self) -> str:
        if not self._sources:
            return notebook.whole(notebook.lines([repr(self).strip("<>")]))
        return notebook.whole(*(notebook.folded(f"layer {name}", self._layer_html(name)) for name in self))

    def _layer_html(self, name: str) -> str:
        try:
            return self[name]._repr_html_()  # type: ignore[no-any-return]
        except PyrnnxError as error:  # weights that do not fit, which are read now
            return notebook.lines([str(error)])

    def _name(self, key: Any) -> str:
        names = list(self._sources)
        if isinstance(key, str) and key in self._sources:
            return key
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool) and -len(names) <= key < len(names):
            return names[int(key)]
        if not names:
            raise MissingLayerError(f"{self._label}: layers has no {shown(key)}, and no layer at all{self._reason()}")
        near = get_close_matches(key, names, n=1) if isinstance(key, str) else []
        hint = f"; did you mean {shown(near[0])}?" if near else ""
        raise MissingLayerError(
            f"{self._label}: layers has no {shown(key)}; expected one of {shortened(', '.join(map(repr, names)))}, or "
            f"a place from 0 to {len(names) - 1}{hint}"
        )

    def _reason(self) -> str:
        return f": {self.why_none}" if self.why_none else ""


def why_none(weights: Iterable[Hashable], loops: Iterable[str]) -> str:
    """Why a model in which one would expect recurrent layers has none.

    Parameters
    ----------
    weights : iterable
        The constant factor of each matrix product, for products that share it the same.
    loops : iterable of str
        The types of its operators that run a body again and again.
    """
    shared = max(Counter(weights).values(), default=0)
    if shared > 1:
        return (
            f"{shared} matrix products share one weight, as where an exporter unrolled a recurrent layer into its time "
            "steps (torch.onnx.export does so with nn.RNN; with dynamo=False it does not)"
        )
    kinds = Counter(loops)
    if kinds:
        counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        return f"what is recurrent stands in the bodies of {counted}, as operators that are no RNN, GRU or LSTM"
    return ""
