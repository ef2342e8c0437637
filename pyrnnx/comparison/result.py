"""Base class of all comparison results."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from pyrnnx.comparison.agreement import read_tolerance, tolerance_of
from pyrnnx.comparison.distances import Deviation
from pyrnnx.errors import ArgumentError

Verdict: TypeAlias = Literal["same", "different", "not decided"]


class Views(NamedTuple):
    """Functions that show one kind of result."""

    lines: Callable[[Any], list[str]]
    to_dict: Callable[[Any], dict[str, Any]]


class Result(ABC):
    """The result of a comparison.

    A result is neither true nor false: `bool(comparison)` is an error, because it could mean "there is one" or "they
    are equal".
    """

    _views: ClassVar[Views]  # set by the package `views`: views know results, and results no view
    deviations: Mapping[str, Deviation]
    not_decided: tuple[str, ...]
    calls: tuple[str, ...]

    @property
    def numbers(self) -> dict[str, float]:
        """The largest absolute difference of each compared output, by name (see `Deviation.largest`)."""
        return {name: deviation.largest for name, deviation in self.deviations.items()}

    @property
    @abstractmethod
    def largest_difference(self) -> float:
        """The largest absolute difference; NaN if nothing was compared."""

    @abstractmethod
    def _complete(self) -> bool:
        """Return whether everything that has numbers was compared."""

    @abstractmethod
    def _deviations(self) -> Iterable[Deviation]:
        """Return the deviations of all that was compared."""

    def undecided(self, atol: float | None = None, rtol: float | None = None) -> list[str]:
        """Return why equal outputs do not show that the two are the same within this tolerance, in words."""
        return list(self.not_decided)

    def _different(self) -> bool:
        """Return whether outputs differ for any tolerance."""
        return False

    def equal(self, atol: float | None = None, rtol: float | None = None) -> bool:
        """Return whether the verdict is "same" (see `verdict`)."""
        return self.verdict(atol, rtol) == "same"

    def verdict(self, atol: float | None = None, rtol: float | None = None) -> Verdict:
        """Return "same", "different" or "not decided".

        "same": everything was compared, and abs(a - b) <= atol + rtol * abs(b) for all numbers. "different": some
        numbers are apart by more, or outputs have other shapes or kinds. "not decided": nothing is apart, but not all
        was compared, or the inputs could not have shown a difference; `undecided` says why.

        Only numbers count: conventions always differ between formats, operators may differ without an effect, and a
        layer of a model may have no counterpart in a model that computes the same. NaN agrees with NaN, and an infinity
        with the same one.

        Parameters
        ----------
        atol, rtol : float, optional
            Tolerances, finite, 0 or above; if only one is set, the other is 1e-5. Default: for both, of layers
            `pyrnnx.testing.numbers.TOLERANCES`, of outputs of models `LONG_TOLERANCES` of the coarser of the two
            dtypes. No rtol applies to integers.

        Raises
        ------
        ArgumentError
            A tolerance that is no such number.
        """
        tolerance = tolerance_of(
            None if atol is None else read_tolerance("equal", "atol", atol),
            None if rtol is None else read_tolerance("equal", "rtol", rtol),
        )
        if self._different() or not all(deviation.within(*tolerance) for deviation in self._deviations()):
            return "different"
        is_empty = not self.deviations or any(math.isnan(deviation.largest) for deviation in self._deviations())
        return "not decided" if is_empty or self.undecided(*tolerance) or not self._complete() else "same"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dicts, lists, strings and numbers for ``json.dumps(..., allow_nan=False)``.

        NaN and the infinities are the strings "nan", "inf" and "-inf". "equal" is the result of `equal` with default
        tolerances. In a comparison of models, only the first pair of layers that differs has "gates".
        """
        return self._views.to_dict(self)

    def __str__(self) -> str:
        return "\n".join(self._views.lines(self))

    def _repr(self, what: str) -> str:
        """Return one line; `print` shows the whole text."""
        largest = self.largest_difference
        words = "nothing was compared" if math.isnan(largest) else f"largest difference {largest:.3g}"
        return f"<{type(self).__name__} of {what}, {words}>"

    def __bool__(self) -> bool:
        raise ArgumentError(f"{type(self).__name__}: it is neither true nor false; call equal(atol, rtol)")
