"""Comparisons as JSON, as HTML and as pictures."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from layers import random_inputs, random_layer, random_weights
from lxml import etree, html
from onnx import helper
from onnx_models import simple_model

from pyrnnx import Comparison, Layer, ModelComparison, PyrnnxError, RecurrentOp, compare
from pyrnnx.comparison.numbers import Deviation, Verdict
from pyrnnx.comparison.steps import MOST_PIXELS
from pyrnnx.frontends.onnx import read_model

T, N, I, H = 7, 3, 4, 6
BOTH = RecurrentOp("LSTM", H, "bidirectional")
BAD_NAME = "<script>alert(1)</script> & 'x' \x1b[31m"


def pair(**changes: Any) -> Comparison:
    """Two LSTMs, of which the first has other weights of f, in reverse; `changes`: of its inputs."""
    weights: dict[str, Any] = random_weights(BOTH, I)
    changed = {**weights, "W": weights["W"].copy()}
    changed["W"][1, 2 * H + 3] += 0.5
    inputs = random_inputs(BOTH, (T, N, I), lens=[T, 5, 0]) | changes
    return compare(Layer(BOTH, **changed, name=BAD_NAME), Layer(BOTH, **weights), inputs)


def relu(value: float) -> Layer:
    return Layer(RecurrentOp("RNN", 1), np.array([[[value]]]), np.zeros((1, 1, 1)))


def model(factor: float, name: str = "scaled") -> onnx.ModelProto:
    weights = random_weights(RecurrentOp("GRU", H), I)
    nodes = [
        helper.make_node("Mul", ["X", "factor"], [name]),
        helper.make_node("GRU", [name, "W", "R", "B"], ["all", "last"], "<b>gru</b>", hidden_size=H),
        helper.make_node("Neg", ["last"], ["y"]),
    ]
    constants = {**weights, "factor": np.array(factor, np.float32)}
    return simple_model(nodes, {"X": np.zeros((T, N, I), np.float32)}, ["y"], constants)


def models(name: str = "scaled") -> ModelComparison:
    inputs = {"X": random_inputs(RecurrentOp("GRU", H), (T, N, I))["X"]}
    a, b = (read_model(model(factor, name)) for factor in (2, 1))
    return compare(a, b, inputs)


def nothing() -> Comparison:
    return Comparison("a", "b", (), (), {}, not_compared="P (peepholes)")


COMPARISONS: dict[str, Callable[[], Verdict]] = {
    "layers": pair,
    "the same": lambda: compare(random_layer(BOTH, I), random_layer(BOTH, I)),
    "not finite": lambda: compare(relu(math.nan), relu(1.0), {"X": np.ones((2, 1, 1)), "sequence_lens": [2]}),
    "no rows": lambda: compare(relu(1.0), relu(2.0), {"X": np.ones((2, 0, 1))}),
    "not compared": nothing,
    "models": models,
    "models, with a strange name": lambda: models(BAD_NAME),
    "models without numbers": lambda: ModelComparison("a", "b", {"l": nothing()}, ("GRU",), (), {}, "two conventions"),
}
each_comparison = pytest.mark.parametrize("name", COMPARISONS)


# In one line


@each_comparison
def test_repr_is_one_short_line(name: str) -> None:
    comparison = COMPARISONS[name]()
    text = repr(comparison)
    assert text.startswith(f"<{type(comparison).__name__} of ")
    assert text.isprintable()
    assert len(text) < 200


def test_what_reprs_say() -> None:
    assert repr(models()).startswith("<ModelComparison of 'ONNX model' and 'ONNX model': 1 pair of layers, largest di")
    assert repr(models()).endswith(f" difference {models().largest_difference:.3g}>")
    assert repr(nothing()) == "<Comparison of a and b, nothing was compared>"


# JSON


@each_comparison
def test_all_of_it_is_json(name: str) -> None:
    comparison = COMPARISONS[name]()
    plain = comparison.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["equal"] is comparison.equal()


def test_what_the_dict_of_layers_has() -> None:
    comparison = pair()
    plain = comparison.to_dict()
    assert plain["outputs"]["Y"]["largest"] == comparison.numbers["Y"]
    assert plain["outputs"]["Y"]["largest_relative"] == comparison.relative_numbers["Y"]
    np.testing.assert_array_equal(plain["outputs"]["Y"]["by_step"], comparison.profiles["Y"].by_step)
    first = comparison.first_difference
    assert first is not None
    assert plain["outputs"]["Y"]["first"] == vars(first)
    assert (first.name, first.direction, first.row) == ("Y", "reverse", 0)
    apart = [one for one in plain["weights"] if one["largest"] > 0]
    assert [(one["name"], one["direction"], one["gate"]) for one in apart] == [("W", "reverse", "f")]
    assert plain["first_gate"]["name"] == "f_in"
    assert list(plain["gates"]) == list(comparison.gates)
    bad = COMPARISONS["not finite"]().to_dict()
    assert bad["largest_difference"] == bad["outputs"]["Y"]["largest_relative"] == "inf"
    assert bad["outputs"]["Y"]["first"]["a"] == "nan"
    assert COMPARISONS["no rows"]().to_dict()["largest_difference"] == "nan"


def test_what_the_dict_of_models_has() -> None:
    comparison = models()
    plain = comparison.to_dict()
    assert list(plain["values"]) == ["scaled", "all", "last", "y"]
    assert plain["first_difference"] == "scaled"
    assert plain["input_shapes"] == {"X": [T, N, I]}
    assert plain["layers"].keys() == comparison.layers.keys()


def test_relative_numbers() -> None:
    def found(*pairs: tuple[float, float]) -> float:
        size, distance = np.array([[abs(b), abs(a - b)] for a, b in pairs]).T
        return Deviation(distance.max(), np.stack([size, distance])).largest_relative

    assert found((1.5, 1.0), (11, 10)) == 0.5
    assert found((1.0, 0.0), (11, 10)) == math.inf
    assert found((0.0, 1e-300)) == 1
    assert Deviation(0.0).largest_relative == 0
    assert math.isnan(Deviation(math.nan).largest_relative)
    assert Deviation(math.inf).largest_relative == math.inf
    comparison = pair()
    for name, relative in comparison.relative_numbers.items():  # the least rtol that is enough
        assert comparison.deviations[name].within(0, relative * (1 + 1e-12))
        assert not comparison.deviations[name].within(0, relative * (1 - 1e-12))
        assert f"largest difference of {name}: {comparison.numbers[name]:.3g} (relative {relative:.3g})" in str(
            comparison
        )


# HTML


@each_comparison
def test_html_is_well_formed_and_needs_nothing_else(name: str) -> None:
    text = COMPARISONS[name]()._repr_html_()  # type: ignore[attr-defined]
    tree = html.fragment_fromstring(text)  # recovering: old versions of libxml2 do not know <details>
    assert etree.fromstring(text) is not None
    assert {one.tag for one in tree.iter()} <= {"div", "table", "tr", "th", "td", "details", "summary"}
    assert not any(word in text for word in ("http", "script>", "src=", "\x1b"))
    assert "background" not in text  # it is read on light pages and on dark ones
    assert len(text) < 30_000


def test_html_says_what_the_text_says() -> None:
    comparison = pair()
    tree = html.fragment_fromstring(comparison._repr_html_())
    assert "<script>alert(1)</script> & 'x'" in comparison.a
    assert comparison.a.replace("\x1b", "\\x1b") in tree.text_content()
    rows = [[cell.text for cell in row] for row in tree.iter("tr")]
    (block,) = [one for one in comparison.weights if one.largest]
    assert ["W reverse", "f", f"{block.largest:.3g}", f"{block.largest_relative:.3g}"] in rows
    assert f"first apart: {comparison.first_difference}" in tree.text_content()
    assert "first gate apart: f_in" in tree.text_content()
    bold = {row[0].text for row in tree.iter("tr") if "bold" in (row[0].get("style") or "")}
    assert bold == {"Y", "Y_h", "Y_c"}
    assert "weights: the same" in COMPARISONS["the same"]()._repr_html_()  # type: ignore[attr-defined]


def test_html_says_what_is_absent() -> None:
    weights: dict[str, Any] = random_weights(BOTH, I)
    with_bias, without = Layer(BOTH, **weights), Layer(BOTH, weights["W"], weights["R"])
    assert "Wb forward (absent in b)" in compare(with_bias, without)._repr_html_()


def test_html_of_models() -> None:
    tree = html.fragment_fromstring(models()._repr_html_())
    summaries = [one.text for one in tree.iter("summary")]
    assert summaries == ["<b>gru</b>: the same numbers", "values that both have: 4"]
    assert "first value apart: 'scaled'" in tree.text_content()


def test_gates_are_of_the_first_layers_that_part() -> None:
    """They have to be computed; of the others it is said where they are."""
    rng = np.random.default_rng(0)
    layers = {}
    for name, size in (("first", 3), ("second", 4)):
        shapes = {"W": (1, 16, size), "R": (1, 16, 4), "B": (1, 32)}
        layers[name] = {key: rng.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}

    def stacked(change: float) -> Any:
        constants = {f"{name} {key}": one for name, own in layers.items() for key, one in own.items()}
        for name in layers:
            constants[f"{name} W"] = constants[f"{name} W"] + np.float32(change)
        nodes = [
            helper.make_node("LSTM", ["X", *(f"first {key}" for key in "WRB")], ["Y"], "first", hidden_size=4),
            helper.make_node("Squeeze", ["Y", "axis"], ["Z"]),
            helper.make_node("LSTM", ["Z", *(f"second {key}" for key in "WRB")], ["", "y"], "second", hidden_size=4),
        ]
        X = np.zeros((5, 2, 3), np.float32)
        return read_model(simple_model(nodes, {"X": X}, ["y"], {**constants, "axis": np.array([1])}))

    for text in (str(compare(stacked(0), stacked(0.25))), compare(stacked(0), stacked(0.25))._repr_html_()):
        assert text.count("by gate: i_in ") == 1
        assert text.count("by gate: shown for the first layers that part") == 1
        assert text.index("by gate: i_in ") < text.index("by gate: shown for the first layers that part")


# Pictures


def pixels(figure: Any) -> Any:
    from matplotlib.backends import backend_agg

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
    forward, reverse = (pixels_of(figure, images[k]) for k in (0, 3))
    assert len(np.unique(forward.reshape(-1, 4), axis=0)) == 1  # nothing is apart: one colour
    assert len(np.unique(reverse.reshape(-1, 4), axis=0)) > 10
    assert "script" in figure.get_suptitle()


def pixels_of(figure: Any, axis: Any) -> Any:
    """Those inside an axis."""
    everything = pixels(figure)
    box = axis.get_window_extent()
    height = everything.shape[0]
    return everything[int(height - box.y1) + 3 : int(height - box.y0) - 3, int(box.x0) + 3 : int(box.x1) - 3]


def test_pictures_are_bounded() -> None:
    pytest.importorskip("matplotlib")
    op = RecurrentOp("RNN", 3)
    steps = 2 * MOST_PIXELS + 1
    X = {"X": np.random.default_rng(0).normal(size=(steps, 1, I)), "sequence_lens": [steps]}
    figure: Any = compare(random_layer(op, I), random_layer(op, I, seed=1), X).plot()
    (image,) = [axis.images[0] for axis in figure.axes if axis.images and axis.get_title() == "Y"]
    assert image.get_array().shape == (3, MOST_PIXELS)
    assert image.get_extent()[1] == steps - 0.5


PICTURES = [("the same", ".pdf"), ("not finite", ".png"), ("models", ".svg"), ("models, with a strange name", ".png")]


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
    assert [one.get_text() for one in axis.get_xticklabels()] == ["scaled", "all", "last", "y"]
    assert axis.get_yscale() == "log"
    agree, apart = (line.get_xdata().tolist() for line in axis.lines[:2])
    assert (agree, apart) == ([], [0, 1, 2, 3])


PICTURE_ERRORS: dict[str, tuple[str, Any, str]] = {
    "nothing to be shown": ("not compared", None, r"plot: a and b have no numbers to be shown: P \(peepholes\)"),
    "models without numbers": ("models without numbers", None, "have no numbers to be shown: two conventions"),
    "no rows": ("models without numbers", None, "have no numbers to be shown"),
    "a folder that is not there": ("layers", "missing/picture.png", "plot: 'missing/picture.png' cannot be written"),
    "no format of pictures": ("layers", "picture.xyz", "plot: 'picture.xyz' cannot be written"),
    "no path": ("models", 3, "plot: path is 3; expected a path, or None"),
}


@pytest.mark.parametrize("name", PICTURE_ERRORS)
def test_picture_errors(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    which, path, words = PICTURE_ERRORS[name]
    comparison: Any = COMPARISONS[which]()
    with pytest.raises(PyrnnxError, match=words):
        comparison.plot(path)


@pytest.mark.parametrize("name", ["layers", "models"])
def test_without_matplotlib(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison: Any = COMPARISONS[name]()
    for module in [one for one in sys.modules if one.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PyrnnxError, match=r"plot: it needs matplotlib, pip install pyrnnx\[plot\]"):
        comparison.plot()
