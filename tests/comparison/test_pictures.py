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
    assert "script" in figure.get_suptitle()


@each_row("name", ["the same", "not finite", "models, with a strange name"])
def test_pictures_of_all_kinds(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "picture.svg"
    COMPARISONS[name]().plot(path)
    assert path.stat().st_size > 3_000
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
    return {stems.get_label(): list(map(int, stems.markerline.get_xdata())) for stems in axis.containers}


def test_a_difference_of_exactly_0_is_drawn_at_0() -> None:
    """No axis of logarithms has a 0: this one is linear below its smallest number."""
    pytest.importorskip("matplotlib")
    differences = {"a": 0.0, "b": 2e-7, "c": 1e-3, "d": 0.0, "e": math.inf}
    deviations = {
        name: Deviation(value, np.array([[1.0], [value]]), apart=value > 1e-4) for name, value in differences.items()
    }
    figure: Any = ModelComparison("a", "b", {}, (), (), deviations).plot()
    (axis,) = figure.axes
    assert series(axis) == {"agree": [0, 1, 3], "apart": [2, 4]}
    assert axis.get_ylim()[0] == 0
    assert 0 in axis.get_yticks()
    place = axis.transData.transform
    assert place((0, 2e-8))[1] > place((0, 0))[1] + 5  # pixels


PICTURE_ERRORS: list[tuple[str, Any, str]] = [
    ("not compared", None, r"plot: a and b have no numbers to draw: P \(peepholes\)"),
    ("models without numbers", None, "have no numbers to draw: two conventions"),
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
