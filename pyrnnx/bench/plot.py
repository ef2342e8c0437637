"""What was measured, as a picture. matplotlib is needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyrnnx.bench.measured import Measurement
from pyrnnx.bench.peers import Pyrnnx
from pyrnnx.bench.timing import milliseconds
from pyrnnx.comparison.views.plot import matplotlib_figures, saved_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"pyrnnx": "#c1272d", "ONNX Runtime": "#0072b2", "OpenVINO": "#6a3d9a", "PyTorch": "#e08214"}
_ROOM = 1.9  # of the axis beyond the longest bar, for its text


def plot_measurement(found: Measurement, path: str | os.PathLike[str] | None = None) -> Figure:
    """A bar for the median time of each library, a dot for each round, and each peer's ratio.

    Parameters
    ----------
    found : Measurement
    path : path, optional
        A file to write the picture to; its suffix says in which format.

    Raises
    ------
    PyrnnxError
        matplotlib is not installed; a path that cannot be written.
    """
    medians, ratios = found.medians, found.ratios
    figure = matplotlib_figures().Figure(figsize=(7.2, 1.3 + 0.55 * len(medians)), layout="constrained", dpi=130)
    axis = figure.subplots()
    names = list(medians)
    for place, name in enumerate(names):
        times = [1e3 * one for one in found.seconds[name]]
        axis.barh(place, 1e3 * medians[name], color=COLOURS[name], alpha=0.75, height=0.6)
        axis.plot(times, [place] * len(times), "|", color="black", markersize=9, alpha=0.6)
        ratio = "" if name == Pyrnnx.name else f", ratio {ratios[name]:.2f} (median of rounds)"
        end = max(1e3 * medians[name], *times) if len(times) > 1 else 1e3 * medians[name]
        axis.annotate(
            f"{milliseconds(medians[name])} ms{ratio}",
            (end, place),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xlim(0, _ROOM * max(1e3 * max(times) for times in found.seconds.values()))
    axis.set_xlabel("milliseconds a call: the median, and a line for each round; lower is better")
    threads = "one thread" if found.threads == 1 else f"{found.threads} threads"
    axis.set_title(f"{found.what}, {threads}", fontsize=11, parse_math=False)
    axis.spines[["top", "right"]].set_visible(False)
    return saved_figure(figure, path)
