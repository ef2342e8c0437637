"""Comparisons as plots; matplotlib is required, its global state is not touched."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
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
        raise _nothing(comparison)
    names = list(dict.fromkeys(block.direction for block in comparison.weights))
    steps = max(len(profile.by_step) for profile in profiles.values())
    widths = [1.0 if len(profile.by_step) == 1 and steps > 1 else 6.0 for profile in profiles.values()]
    figure = figures.Figure(figsize=(2.5 + sum(widths), 1.2 + 2.8 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), len(profiles), squeeze=False, width_ratios=widths, sharey=True)
    numbers = np.concatenate([profile.image.ravel() for profile in profiles.values()])
    above = numbers[np.isfinite(numbers) & (numbers > 0)]
    for d, direction in enumerate(names):
        for axis, (name, profile) in zip(axes[d], profiles.items(), strict=True):
            _image(axis, name, profile, d, above)
        axes[d][0].set_ylabel(f"{direction}\nhidden unit")
    colours = "gray: exactly 0"  # without numbers there is no colour scale
    if above.size:
        colours = "gray: less, or 0; cyan: not finite"
        figure.colorbar(axes[0][0].images[0], ax=axes, label="largest abs(a - b) of all rows", extend="both")
    figure.suptitle(f"{_title(comparison)}\n{colours}", fontsize="medium", parse_math=False)
    return saved_figure(figure, path)


def _image(axis: Any, name: str, profile: Profile, d: int, above: AnyArray) -> None:
    """Draw a direction; the colours reach from the largest of the finite numbers `above` 0 some decades down."""
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm

    high = float(above.max(initial=0)) or 1.0
    low = max(high / 10**_DECADES, float(above.min(initial=high)))
    steps, units = len(profile.by_step), profile.units
    numbers = np.where(np.isinf(profile.image[d]), np.finfo(np.float64).max, profile.image[d])
    axis.imshow(
        np.where(numbers == 0, np.finfo(np.float64).tiny, numbers).T,
        aspect="auto",
        interpolation="nearest",
        norm=LogNorm(low if low < high else high / 10, high),
        cmap=colormaps["magma"].with_extremes(bad="white", under="lightgray", over="cyan"),
        origin="lower",
        extent=(-0.5, steps - 0.5, -0.5, units - 0.5),
    )
    axis.set_title(name)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.set_xlabel("time step" if profile.over_time else "last")
    if not profile.over_time:
        axis.set_xticks([])


def plot_models(comparison: ModelComparison, path: Any) -> Figure:
    """Draw the largest difference of each value in order, or of the outputs; infinity is on the upper edge."""
    figures = matplotlib_figures()
    values = comparison.values or comparison.deviations
    values = {name: deviation for name, deviation in values.items() if not math.isnan(deviation.largest)}
    if not values:
        raise _nothing(comparison)
    numbers = np.array([deviation.largest for deviation in values.values()])
    above = numbers[np.isfinite(numbers) & (numbers > 0)]
    low = min(above.min(initial=_TOLERANCE), _TOLERANCE) / 10  # below it the axis is linear down to 0
    high = max(above.max(initial=_TOLERANCE), _TOLERANCE) * 20
    figure = figures.Figure(figsize=(min(4 + 0.25 * len(values), 14), 4.5), layout="constrained")
    axis = figure.subplots()
    kinds = ["agree" if deviation.within() else "apart" for deviation in values.values()]
    for kind, colour in (("agree", "tab:blue"), ("apart", "tab:red")):
        places = [place for place, other in enumerate(kinds) if other == kind]
        if places:
            heights = np.minimum(numbers[places], high)
            axis.stem(places, heights, linefmt="tab:gray", markerfmt=colour, basefmt=" ", label=kind)
    axis.axhline(_TOLERANCE, color="tab:gray", linestyle="--", linewidth=1, label=f"tolerance {_TOLERANCE:g}")
    axis.set_yscale("symlog", linthresh=low)
    axis.set(ylim=(0, high), ylabel="largest abs(a - b)")
    axis.set_xlabel("shared values, in the order of a" if comparison.values else "outputs")
    if len(values) <= _MOST_NAMES:
        axis.set_xticks(range(len(values)), [_name(name, 30) for name in values], rotation=90, parse_math=False)
    axis.legend()
    axis.set_title(_title(comparison), fontsize="medium", parse_math=False)
    return saved_figure(figure, path)


def _nothing(comparison: Comparison | ModelComparison) -> PyrnnxError:
    why = f": {printable(comparison.not_compared)}" if comparison.not_compared else ""
    return PyrnnxError(f"plot: {comparison.a} and {comparison.b} have no numbers to draw{why}")


def _title(comparison: Comparison | ModelComparison) -> str:
    return f"a: {_name(comparison.a)}\nb: {_name(comparison.b)}"


def _name(text: str, most: int = 100) -> str:
    text = printable(shortened(text))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def matplotlib_figures() -> Any:
    """Import and return the module matplotlib.figure."""
    try:
        from matplotlib import figure
    except ImportError:
        raise PyrnnxError(needs("plot: a picture", "matplotlib", "plot")) from None
    return figure


def picture_path(path: str | os.PathLike[str]) -> Path:
    """Return the path that a picture is written to: a name without a suffix gets .png, as in matplotlib."""
    target = Path(os.fsdecode(path))
    return target if target.suffix or not target.name else target.with_name(f"{target.name}.png")


def saved_figure(figure: Any, path: Any) -> Figure:
    """Write the figure to a path, if that is not None, and return it."""
    if path is not None:
        if not is_path(path):
            raise ArgumentError(f"plot: path is {shown(path)}; expected a path, or None")
        target = picture_path(path)
        write_files("plot", {target: lambda file: figure.savefig(file, format=target.suffix[1:])})
    return figure  # type: ignore[no-any-return]
