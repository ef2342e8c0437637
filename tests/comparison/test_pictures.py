"""Comparisons as pictures."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparisons import COMPARISONS, H, T, models, pair
from rows import each_row

from pyrnnx import ModelComparison, PyrnnxError
from pyrnnx.comparison.distances import Deviation


def pixels(figure: Any) -> Any:
    from matplotlib.backends import backend_agg

    figure.set_layout_engine("none")  # places were computed when the figure was saved
    canvas: Any = backend_agg.FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def test_picture_of_layers(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    comparison = pair()
    figure: Any = comparison.plot(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    images = [axis for axis in figure.axes if axis.images]
    assert [axis.get_title() for axis in images] == ["Y", "Y_h", "Y_c"] * 2
    assert [axis.get_ylabel() for axis in (images[0], images[3])] == ["forward\nhidden unit", "reverse\nhidden unit"]
    assert images[0].get_xlabel() == "time step"
    shown = images[3].images[0].get_array()
    expected = comparison.profiles["Y"].image[1].T
    np.testing.assert_array_equal(np.where(expected == 0, np.finfo(float).tiny, expected), shown)
    assert images[0].images[0].norm.vmax == comparison.largest_difference
    assert tuple(images[0].images[0].get_extent()) == (-0.5, T - 0.5, -0.5, H - 0.5)
    everything = pixels(figure)
    forward, reverse = (pixels_of(everything, images[k]) for k in (0, 3))
    assert len(np.unique(forward.reshape(-1, 4), axis=0)) == 1  # nothing is apart: one colour
    assert len(np.unique(reverse.reshape(-1, 4), axis=0)) > 10
    assert "script" in figure.get_suptitle()


def pixels_of(everything: Any, axis: Any) -> Any:
    """Return the pixels of a figure that are inside an axis."""
    box = axis.get_window_extent()
    height = everything.shape[0]
    return everything[int(height - box.y1) + 3 : int(height - box.y0) - 3, int(box.x0) + 3 : int(box.x1) - 3]


PICTURES = [
    pytest.param("the same", ".pdf", marks=pytest.mark.slow),
    pytest.param("not finite", ".png", marks=pytest.mark.slow),
    ("models", ".svg"),
    pytest.param("models, with a strange name", ".png", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "suffix"), PICTURES)
def test_pictures_of_all_kinds(name: str, suffix: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    comparison: Any = COMPARISONS[name]()
    path = tmp_path / f"picture{suffix}"
    figure = comparison.plot(str(path))
    assert path.stat().st_size > 3_000
    assert pixels(figure).shape[:2] == tuple((figure.get_size_inches()[::-1] * figure.dpi).astype(int))
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_picture_of_models() -> None:
    pytest.importorskip("matplotlib")
    figure: Any = models().plot()
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["scaled", "all", "last", "y"]
    assert axis.get_yscale() == "symlog"
    assert series(axis) == {"apart": [0, 1, 2, 3]}


def series(axis: Any) -> dict[str, list[int]]:
    """Return the places of the values in each series of a picture of models."""
    lines = {line.get_label(): line.get_xdata() for line in axis.lines}
    return {label: list(map(int, places)) for label, places in lines.items() if not label.startswith("tolerance")}


def test_a_difference_of_exactly_0_is_drawn_at_0() -> None:
    """No axis of logarithms has a 0: this one is linear below its smallest number."""
    pytest.importorskip("matplotlib")
    differences = {"a": 0.0, "b": 2e-7, "c": 1e-3, "d": 0.0, "e": math.inf}
    deviations = {
        name: Deviation(value, np.array([[1.0], [value]]), apart=value > 1e-4) for name, value in differences.items()
    }
    figure: Any = ModelComparison("a", "b", {}, (), (), deviations).plot()
    (axis,) = figure.axes
    assert series(axis) == {"agree": [1], "apart": [2], "exactly 0": [0, 3], "infinite, or of other shapes": [4]}
    assert axis.get_ylim()[0] == 0
    assert 0 in axis.get_yticks()
    exact = next(line for line in axis.lines if line.get_label() == "exactly 0")
    assert list(exact.get_ydata()) == [0, 0]
    place = axis.transData.transform
    assert place((0, 2e-8))[1] > place((0, 0))[1] + 5  # pixels

    same: Any = COMPARISONS["the same"]().plot()
    assert same.get_suptitle().endswith("gray: exactly 0")
    assert all(axis.images for axis in same.axes)  # no bar of colours


PICTURE_ERRORS: list[tuple[str, Any, str]] = [
    ("not compared", None, r"plot: a and b have no numbers to draw: P \(peepholes\)"),
    ("models without numbers", None, "have no numbers to draw: two conventions"),
    ("models without numbers", None, "have no numbers to draw"),
    ("layers", "missing/picture.png", "plot: 'missing/picture.png' cannot be written"),
    ("layers", "picture.xyz", "plot: 'picture.xyz' cannot be written"),
    ("models", 3, "plot: path is 3; expected a path, or None"),
]


@each_row(("which", "path", "words"), PICTURE_ERRORS, ids=[row[-1] for row in PICTURE_ERRORS])
def test_picture_errors(which: str, path: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    comparison: Any = COMPARISONS[which]()
    with pytest.raises(PyrnnxError, match=words):
        comparison.plot(path)


@pytest.mark.parametrize("name", ["layers", "models"])
def test_without_matplotlib(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison: Any = COMPARISONS[name]()
    for module in [one for one in sys.modules if one.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PyrnnxError, match="plot: a picture needs the package matplotlib"):
        comparison.plot()
