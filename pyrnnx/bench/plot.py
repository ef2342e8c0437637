"""Pictures of measurements; they need matplotlib."""

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
_ROOM = 1.9  # length of the axis divided by the longest bar, to leave space for text


def plot_measurement(measurement: Measurement, path: str | os.PathLike[str] | None = None) -> Figure:
    """Plot a bar for the median time of each library, a line for each round, and each peer's ratio.

    Parameters
    ----------
    measurement : Measurement
    path : path, optional
        File to write the picture to, in the format of its suffix.

    Raises
    ------
    PyrnnxError
        matplotlib is not installed; the path cannot be written.
    """
    medians, ratios = measurement.medians, measurement.ratios
    figure = matplotlib_figures().Figure(figsize=(7.2, 1.3 + 0.55 * len(medians)), layout="constrained", dpi=130)
    axis = figure.subplots()
    names = list(medians)
    for i, name in enumerate(names):
        times = [1e3 * seconds for seconds in measurement.seconds[name]]
        axis.barh(i, 1e3 * medians[name], color=COLOURS[name], alpha=0.75, height=0.6)
        axis.plot(times, [i] * len(times), "|", color="black", markersize=9, alpha=0.6)
        ratio = "" if name == Pyrnnx.name else f", ratio {ratios[name]:.2f} (median of rounds)"
        end = max(1e3 * medians[name], *times) if len(times) > 1 else 1e3 * medians[name]
        axis.annotate(
            f"{milliseconds(medians[name])} ms{ratio}",
            (end, i),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.set_xlim(0, _ROOM * max(1e3 * max(times) for times in measurement.seconds.values()))
    axis.set_xlabel("milliseconds per call: the median, and a line for each round; lower is better")
    threads = "one thread" if measurement.threads == 1 else f"{measurement.threads} threads"
    axis.set_title(f"{measurement.what}, {threads}", fontsize=11, parse_math=False)
    axis.spines[["top", "right"]].set_visible(False)
    return saved_figure(figure, path)
