"""Comparisons as plots; matplotlib is required, its global state is not touched."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.extras import needs
from pyrnnx._internal.files import is_path
from pyrnnx._internal.writing import write_files
from pyrnnx.comparison.distances import LONG_TOLERANCES
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.steps import Profile
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shortened, shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TOLERANCE = LONG_TOLERANCES["float32"]  # the default of most outputs
_MOST_NAMES = 40  # values whose names fit on the axis
_DECADES = 6  # range of the colours below the largest difference


def plot_layers(comparison: Comparison, path: Any) -> Figure:
    """Draw a row per direction and a column per output; 0 is gray, not finite is cyan."""
    figures = matplotlib_figures()
    profiles = {name: profile for name, profile in comparison.profiles.items() if profile.image.size}
    if not profiles:
        raise PyrnnxError(
            f"plot: {comparison.a} and {comparison.b} have no numbers to draw{_why(comparison.not_compared)}"
        )
    directions = next(iter(profiles.values())).image.shape[0]
    steps = max(len(profile.by_step) for profile in profiles.values())
    widths = [1.0 if len(profile.by_step) == 1 and steps > 1 else 6.0 for profile in profiles.values()]
    figure = figures.Figure(figsize=(2.5 + sum(widths), 1.2 + 2.8 * directions), layout="constrained")
    axes = figure.subplots(directions, len(profiles), squeeze=False, width_ratios=widths, sharey=True)
    scale = _scale(profiles)
    names = list(dict.fromkeys(block.direction for block in comparison.weights))
    for d in range(directions):
        for column, (name, profile) in enumerate(profiles.items()):
            _image(axes[d][column], name, profile, d, scale)
        axes[d][0].set_ylabel(f"{names[d]}\nhidden unit")
    colours = "gray: exactly 0"  # without numbers there is no colour scale
    if any((profile.image > 0).any() for profile in profiles.values()):
        colours = "gray: less, or 0; cyan: not finite"
        figure.colorbar(axes[0][0].images[0], ax=axes, label="largest abs(a - b) of all rows", extend="both")
    figure.suptitle(
        f"a: {_name(comparison.a)}\nb: {_name(comparison.b)}\n{colours}", fontsize="medium", parse_math=False
    )
    return saved_figure(figure, path)


def plot_models(comparison: ModelComparison, path: Any) -> Figure:
    """Draw the largest difference of each value in order, or of the outputs."""
    figures = matplotlib_figures()
    values = comparison.values or comparison.deviations
    heights = {name: deviation.largest for name, deviation in values.items() if not math.isnan(deviation.largest)}
    if not heights:
        raise PyrnnxError(
            f"plot: {comparison.a} and {comparison.b} have no numbers to draw{_why(comparison.not_compared)}"
        )
    numbers = np.array(list(heights.values()))
    figure = figures.Figure(figsize=(min(4 + 0.25 * len(heights), 14), 4.5), layout="constrained")
    axis = figure.subplots()
    above = numbers[np.isfinite(numbers) & (numbers > 0)]
    low = min(above.min(initial=_TOLERANCE), _TOLERANCE) / 10  # below it the axis is linear down to 0
    high = max(above.max(initial=_TOLERANCE), _TOLERANCE) * 10
    places, infinite, zero = np.arange(len(numbers)), np.isinf(numbers), numbers == 0
    tops = np.where(infinite, high * 2, numbers)
    axis.vlines(places, 0, tops, color="tab:gray", alpha=0.6)
    apart = np.array([not values[name].within() for name in heights])
    for chosen, style in (
        (~apart & ~zero, {"color": "tab:blue", "label": "agree"}),
        (apart & ~infinite, {"color": "tab:red", "label": "apart"}),
        (zero, {"color": "tab:blue", "fillstyle": "none", "label": "exactly 0"}),
    ):
        if chosen.any():
            axis.plot(places[chosen], numbers[chosen], "o", clip_on=False, **style)
    if infinite.any():  # on the upper edge, whatever the axis shows
        label = "infinite, or of other shapes"
        axis.plot(places[infinite], tops[infinite], "^", color="tab:red", clip_on=False, label=label)
    axis.axhline(_TOLERANCE, color="tab:gray", linestyle="--", linewidth=1, label=f"tolerance {_TOLERANCE:g}")
    axis.set_yscale("symlog", linthresh=low)
    axis.set(ylim=(0, high * 2), ylabel="largest abs(a - b)")
    axis.set_xlabel("shared values, in the order of a" if comparison.values else "outputs")
    if len(heights) <= _MOST_NAMES:
        axis.set_xticks(range(len(heights)), [_name(name, 30) for name in heights], rotation=90, parse_math=False)
    axis.legend()
    axis.set_title(f"a: {_name(comparison.a)}\nb: {_name(comparison.b)}", fontsize="medium", parse_math=False)
    return saved_figure(figure, path)


def matplotlib_figures() -> Any:
    """Import and return the module matplotlib.figure.

    Raises
    ------
    PyrnnxError
        It is not installed.
    """
    try:
        from matplotlib import figure
    except ImportError:
        raise PyrnnxError(needs("plot: a picture", "matplotlib", "plot")) from None
    return figure


def _scale(profiles: Mapping[str, Profile]) -> Any:
    """Return the colour scale, from the largest number down."""
    from matplotlib.colors import LogNorm

    numbers = np.concatenate([profile.image.ravel() for profile in profiles.values()])
    above = numbers[np.isfinite(numbers) & (numbers > 0)]
    if not above.size:
        return LogNorm(_TOLERANCE, 1)
    high = float(above.max())
    low = max(high / 10**_DECADES, float(above.min()))
    return LogNorm(low if low < high else high / 10, high)


def _image(axis: Any, name: str, profile: Profile, d: int, scale: Any) -> None:
    from matplotlib import colormaps

    steps, units = len(profile.by_step), profile.units
    colours = colormaps["magma"].with_extremes(bad="white", under="lightgray", over="cyan")
    numbers = np.where(np.isinf(profile.image[d]), np.finfo(np.float64).max, profile.image[d])
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
    if profile.over_time:
        axis.set_xlabel("time step")
    else:
        axis.set_xticks([])
        axis.set_xlabel("last")


def picture_path(path: str | os.PathLike[str]) -> Path:
    """Return the path that a picture is written to: a name without a suffix gets .png, as in matplotlib."""
    target = Path(os.fsdecode(path))
    return target if target.suffix or not target.name else target.with_name(f"{target.name}.png")


def saved_figure(figure: Any, path: Any) -> Figure:
    """Write the figure to a path, if that is not None, and return it.

    Raises
    ------
    PyrnnxError
        A path that cannot be written.
    """
    if path is not None:
        if not is_path(path):
            raise ArgumentError(f"plot: path is {shown(path)}; expected a path, or None")
        target = picture_path(path)
        write_files("plot", {target: lambda file: figure.savefig(file, format=target.suffix[1:])})
    return figure  # type: ignore[no-any-return]


def _why(text: str) -> str:
    return f": {printable(text)}" if text else ""


def _name(text: str, most: int = 100) -> str:
    text = printable(shortened(text))
    return text if len(text) <= most else f"{text[: most - 1]}…"
