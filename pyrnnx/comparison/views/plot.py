"""Comparisons as pictures. matplotlib is needed, its state of the process is not touched."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.comparison.numbers import TOLERANCE
from pyrnnx.comparison.steps import Profile
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shortened, shown
from pyrnnx.files import write_files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pyrnnx.comparison.layers import Comparison
    from pyrnnx.comparison.models import ModelComparison

_MOST_NAMES = 40  # of values that have room beside each other
_DECADES = 6  # below the largest difference, that colours tell apart


def plot_layers(one: Comparison, path: Any) -> Figure:
    """Of two layers: for each direction a row, for each output a column. 0 is gray, what is not finite cyan."""
    figures = matplotlib_figures()
    profiles = {name: each for name, each in one.profiles.items() if each.image.size}
    if not profiles:
        raise PyrnnxError(f"plot: {one.a} and {one.b} have no numbers to be shown{_why(one.not_compared)}")
    directions = next(iter(profiles.values())).image.shape[0]
    steps = max(len(each.by_step) for each in profiles.values())
    widths = [1.0 if len(each.by_step) == 1 and steps > 1 else 6.0 for each in profiles.values()]
    figure = figures.Figure(figsize=(2.5 + sum(widths), 1.2 + 2.8 * directions), layout="constrained")
    axes = figure.subplots(directions, len(profiles), squeeze=False, width_ratios=widths, sharey=True)
    scale = _scale(profiles)
    names = list(dict.fromkeys(block.direction for block in one.weights))
    for d in range(directions):
        for column, (name, each) in enumerate(profiles.items()):
            _image(axes[d][column], name, each, d, scale)
        axes[d][0].set_ylabel(f"{names[d]}\nhidden unit")
    figure.colorbar(axes[0][0].images[0], ax=axes, label="largest abs(a - b) of all rows", extend="both")
    figure.suptitle(
        f"a: {_name(one.a)}\nb: {_name(one.b)}\ngray: less, or 0; cyan: not finite", fontsize="medium", parse_math=False
    )
    return saved_figure(figure, path)


def plot_models(one: ModelComparison, path: Any) -> Figure:
    """Of two models: the largest difference of each value in order, or of the outputs."""
    figures = matplotlib_figures()
    values = one.values or one.deviations
    heights = {name: each.largest for name, each in values.items() if not math.isnan(each.largest)}
    if not heights:
        raise PyrnnxError(f"plot: {one.a} and {one.b} have no numbers to be shown{_why(one.not_compared)}")
    numbers = np.array(list(heights.values()))
    figure = figures.Figure(figsize=(min(4 + 0.25 * len(heights), 14), 4.5), layout="constrained")
    axis = figure.subplots()
    above = numbers[np.isfinite(numbers) & (numbers > 0)]
    low = min(above.min(initial=TOLERANCE), TOLERANCE) / 10
    high = max(above.max(initial=TOLERANCE), TOLERANCE) * 10
    tops = np.where(np.isinf(numbers), high * 2, np.clip(numbers, low, high))
    axis.vlines(np.arange(len(numbers)), low, tops, color="tab:gray", alpha=0.6)
    apart = np.array([not values[name].within(TOLERANCE, TOLERANCE) for name in heights])
    infinite = np.isinf(numbers)
    for chosen, colour, label in ((~apart, "tab:blue", "agree"), (apart & ~infinite, "tab:red", "apart")):
        axis.plot(np.flatnonzero(chosen), np.clip(numbers[chosen], low, high), "o", color=colour, label=label)
    if infinite.any():  # on the upper edge, whatever the axis shows
        places, edge = np.flatnonzero(infinite), np.full(infinite.sum(), high * 2)
        axis.plot(places, edge, "^", color="tab:red", clip_on=False, label="infinite, or of other shapes")
    axis.axhline(TOLERANCE, color="tab:gray", linestyle="--", linewidth=1, label=f"tolerance {TOLERANCE:g}")
    axis.set(yscale="log", ylim=(low / 2, high * 2), ylabel="largest abs(a - b)")
    axis.set_xlabel("values that both have, in the order of a" if one.values else "outputs")
    if len(heights) <= _MOST_NAMES:
        axis.set_xticks(range(len(heights)), [_name(name, 30) for name in heights], rotation=90, parse_math=False)
    axis.legend()
    axis.set_title(f"a: {_name(one.a)}\nb: {_name(one.b)}", fontsize="medium", parse_math=False)
    return saved_figure(figure, path)


def matplotlib_figures() -> Any:
    """The module matplotlib.figure.

    Raises
    ------
    PyrnnxError
        It is not installed.
    """
    try:
        from matplotlib import figure
    except ImportError:
        raise PyrnnxError("plot: it needs matplotlib, pip install pyrnnx[plot]") from None
    return figure


def _scale(profiles: Mapping[str, Profile]) -> Any:
    """The colours of numbers, from the largest down."""
    from matplotlib.colors import LogNorm

    numbers = np.concatenate([each.image.ravel() for each in profiles.values()])
    above = numbers[np.isfinite(numbers) & (numbers > 0)]
    if not above.size:
        return LogNorm(TOLERANCE, 1)
    high = float(above.max())
    low = max(high / 10**_DECADES, float(above.min()))
    return LogNorm(low if low < high else high / 10, high)


def _image(axis: Any, name: str, one: Profile, d: int, scale: Any) -> None:
    from matplotlib import colormaps

    steps, units = len(one.by_step), one.units
    colours = colormaps["magma"].with_extremes(bad="white", under="lightgray", over="cyan")
    numbers = np.where(np.isinf(one.image[d]), np.finfo(np.float64).max, one.image[d])
    axis.imshow(
        np.where(numbers == 0, np.finfo(np.float64).tiny, numbers).T,
        aspect="auto",
        interpolation="nearest",
        norm=scale,
        cmap=colours,
        origin="lower",
        extent=(-0.5, steps - 0.5, -0.5, units - 0.5),
    )
    axis.set_title(name)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.yaxis.get_major_locator().set_params(integer=True)
    if one.over_time:
        axis.set_xlabel("time step")
    else:
        axis.set_xticks([])
        axis.set_xlabel("last")


def saved_figure(figure: Any, path: Any) -> Figure:
    """The figure, written to a path if that is not None.

    Raises
    ------
    PyrnnxError
        A path that cannot be written.
    """
    if path is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentError(f"plot: path is {shown(path)}; expected a path, or None")
        target = Path(os.fsdecode(path))
        if not target.suffix:
            target = target.with_name(f"{target.name}.png")  # as matplotlib does
        write_files("plot", {target: lambda file: figure.savefig(file, format=target.suffix[1:])})
    return figure  # type: ignore[no-any-return]


def _why(text: str) -> str:
    return f": {printable(text)}" if text else ""


def _name(text: str, most: int = 100) -> str:
    text = printable(shortened(text))
    return text if len(text) <= most else f"{text[: most - 1]}…"
