"""Arguments of `compare`: layers, models, paths, inputs and a seed; and the inputs that it generates."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from layers import random_inputs, random_layer
from onnx import TensorProto, helper
from onnx_streams import stepwise
from rows import each_row

from pyrnnx import (
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    ArgumentError,
    Comparison,
    Layer,
    ModelComparison,
    PyrnnxError,
    RecurrentOp,
    compare,
    load,
)
from pyrnnx.frontends.onnx import Model, read_model
from pyrnnx.operator.op import CELLS, CellName

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX, XML = EXAMPLES / "small_rnn.onnx", EXAMPLES / "small_rnn.xml"
T, N, I, H = 5, 3, 4, 6
RNN = RecurrentOp("RNN", H)


def layer(dtype: Any = np.float32) -> Layer:
    return random_layer(RNN, I, dtype)


def sequence(dtype: Any = np.float32) -> Layer:
    return random_layer(RNN, I, dtype, convention=OPENVINO_SEQUENCE)


def cell() -> Layer:
    return random_layer(RNN, I, convention=OPENVINO_CELL)


# Comparisons


def test_sources() -> None:
    for a, b, kind in (
        (ONNX, ONNX, ModelComparison),
        (str(ONNX), str(XML), Comparison),
        (load(ONNX), XML, Comparison),
        (ONNX, load(XML), Comparison),
    ):
        result: Any = compare(a, b)
        assert type(result) is kind
        assert result.equal(0, 0)


@each_row("source", [None, 3, b"abc", Layer, {}, [ONNX], np.ones(3)], ids=range(7))
def test_what_cannot_be_compared(source: Any) -> None:
    for arguments, name in (((source, layer()), "a"), ((layer(), source), "b")):
        words = f"^compare: {name} is .*; expected a layer, a stack, a model, or the path of a file$"
        with pytest.raises(PyrnnxError, match=words):
            compare(*arguments)


@each_row("path", ["missing.onnx", "missing.xml", "", "x\0.onnx", str(EXAMPLES), "x" * 10**6])
def test_paths_that_cannot_be_read(path: str) -> None:
    with pytest.raises(PyrnnxError) as caught:
        compare(path, ONNX)
    assert len(str(caught.value)) < 5_000


def test_seeds() -> None:
    seeds: tuple[Any, ...] = (-1, 1.5, True, None, "1", 10**5000 * -1)
    for bad in seeds:
        with pytest.raises(ArgumentError, match=r"^compare: seed is .*; expected an integer, 0 or above$"):
            compare(layer(), layer(), seed=bad)
    other = Layer(RNN, 2 * layer().weights["W"], layer().weights["R"])
    first = compare(layer(), other).numbers
    assert first == compare(layer(), other, seed=0).numbers
    assert first != compare(layer(), other, seed=2**200).numbers


# Inputs of layers

X = np.ones((T, N, I), np.float32)
STATE, LENGTHS = np.zeros((1, N, H)), "sequence_lens"
BAD_INPUTS: list[tuple[Any, str]] = [
    ([X], "compare: inputs is .*; expected a mapping of arrays by name"),
    ({"x" * 10**6: X}, r"compare: inputs has 'x+\.\.\..*expected names"),
    ({"x": 1}, "inputs has 'x'; expected names out of X, sequence_lens, initial_h, initial_c"),
    ({"initial_c": STATE}, "inputs has 'initial_c'"),
    ({"H": STATE}, "inputs has 'H'"),  # of another convention
    ({"X": X.astype(complex)}, "X has dtype complex128; expected real numbers"),
    ({"X": [[1], [1, 2]]}, "X cannot be converted to an array"),
    ({"X": np.ma.masked_array(X)}, "X is a masked array"),
    ({"X": 1.0}, r"X has shape \(\); expected \(seq_length=5, batch_size=3, input_size=4\)"),
    ({"X": np.full(X.shape, 1e300)}, r"X has numbers beyond float32, the dtype of RNN"),
    ({"X": X, LENGTHS: [-1] * N}, r"sequence_lens\[0\] is -1"),
    ({"X": X, LENGTHS: [T + 1] * N}, r"sequence_lens\[0\] is 6"),
    ({"X": X, LENGTHS: [0.5] * N}, "sequence_lens has dtype float64"),
    ({"X": X, "initial_h": np.zeros((1, N + 1, H), np.float32)}, "initial_h has shape"),
]


@each_row(("inputs", "words"), BAD_INPUTS, ids=[words for _, words in BAD_INPUTS])
@each_row("other", [layer, sequence], ids=["ONNX", "OpenVINO"])
def test_bad_inputs(inputs: Any, words: str, other: Callable[[], Layer]) -> None:
    with pytest.raises(ArgumentError, match=words) as caught:
        compare(layer(), other(), inputs)
    assert str(caught.value).startswith("compare: inputs")
    assert len(str(caught.value)) < 1_000
    assert str(caught.value).isprintable()


GOOD_INPUTS: dict[str, dict[str, Any]] = {
    "None is as missing": {"X": None, "initial_h": None, "sequence_lens": None},
    "numbers of Python": {"X": X.tolist()},
    "integers": {"X": X.astype(int)},
    "float64 for float32 layers": {"X": X.astype(np.float64) / 3},
    "another byte order": {"X": X.astype(">f4")},
    "infinity and NaN": {"X": np.where(X.cumsum().reshape(X.shape) % 7 < 1, np.inf, np.nan)},
    "lengths of another type": {"X": X, "sequence_lens": np.array([1, 5, 0], np.uint8)},
}


@each_row("name", GOOD_INPUTS)
def test_good_inputs(name: str) -> None:
    assert compare(layer(), sequence(), GOOD_INPUTS[name]).equal(0, 0)


def test_no_rows_and_no_steps_are_nothing_to_compare() -> None:
    result = compare(layer(), sequence(), {"X": X[:, :0]})
    assert np.isnan(result.largest_difference)
    assert result.verdict() == "not decided"
    result = compare(layer(), sequence(), {"X": X[:0]})
    assert result.largest_difference == 0  # of the last states, which are zero
    assert result.verdict() == "not decided"


def test_cell_and_sequence() -> None:
    """Both are run on one step, the whole of it."""
    result = compare(layer(), cell())
    assert result.equal(0, 0)
    assert compare(layer(), cell(), {"X": X[:1], "sequence_lens": [1] * N}).equal(0, 0)
    with pytest.raises(ArgumentError, match=r"X has shape \(5, 3, 4\); expected \(seq_length=1, "):
        compare(cell(), layer(), {"X": X})
    with pytest.raises(ArgumentError, match=r"sequence_lens is \[1, 0, 1\]; expected 1 for each row: RNN runs one"):
        compare(cell(), layer(), {"X": X[:1], "sequence_lens": [1, 0, 1]})


def test_dtypes_that_differ() -> None:
    """Random inputs are numbers of both dtypes, so that the layers alone make the difference, and it is named."""
    result = compare(sequence(np.float64), layer(np.float16))
    assert [(one.a, one.b) for one in result.conventions if one.aspect == "dtype"] == [("float64", "float16")]
    assert 0 < result.largest_difference < 4e-3  # the result, up to 1, and weights, up to 0.5, rounded to 2^-12
    assert result.equal(4e-3)
    assert not result.equal(1e-4)
    assert result.equal()  # by the coarser of the two


# Inputs of models


def identity(shape: Any, dtype: int = TensorProto.FLOAT, name: str = "X") -> Model:
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], ["Y"])],
        "identity",
        [helper.make_tensor_value_info(name, dtype, shape)],
        [onnx.ValueInfoProto(name="Y")],
    )
    return read_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def test_shapes_of_made_inputs() -> None:
    for shape in ((2**40, 4), (2**62, 2**62), (0, 2**62), (10**9,), ("N",) * 33):
        words = r"compare: input 'X' has shape .*; expected at most 32 axes and 67108864 el"
        with pytest.raises(ArgumentError, match=words):
            compare(identity(shape), identity(shape))
    for open_shape in ((-1, 4), ("N", "N"), (), None, (0, 3)):
        assert compare(identity(open_shape), identity(open_shape)).equal(0, 0) is (open_shape != (0, 3))


def test_values_that_are_no_floats() -> None:
    arrays: dict[int, Any] = {
        TensorProto.STRING: np.array(["a", "b"], object),
        TensorProto.UINT64: np.array([2**64 - 1, 0], np.uint64),
    }
    for dtype, array in arrays.items():
        model = identity((2,), dtype)
        assert compare(model, model, {"X": array}).equal(0, 0)
        if dtype == TensorProto.STRING:
            with pytest.raises(ArgumentError, match=r"input 'X' has type \w+; pass it as inputs=\.\.\."):
                compare(model, model)


def test_inputs_are_matched_by_order_where_names_differ() -> None:
    a, b = identity((2,)), identity((2,), name="Z")
    assert compare(a, b, {"X": np.ones(2, np.float32)}).equal(0, 0)
    assert compare(a, b).equal(0, 0)
    with pytest.raises(ArgumentError, match="compare: inputs has 'Z'; expected names out of X"):
        compare(a, b, {"Z": np.ones(2, np.float32)})
    with pytest.raises(ArgumentError, match="compare: inputs is int 3; expected a mapping"):
        compare(a, b, 3)  # type: ignore[call-overload]


# Arrays of layers


@pytest.mark.parametrize("cell", CELLS)
def test_given_inputs_are_used(cell: CellName) -> None:
    op = RecurrentOp(cell, H)
    inputs = random_inputs(op, (T, N, I))
    first, second = random_layer(op, I), random_layer(op, I, seed=1)
    before = copy.deepcopy(inputs)
    result = compare(first, second, inputs)
    for key, array in inputs.items():
        np.testing.assert_array_equal(array, before[key])
    outputs = ([a.astype(np.float64) for a in layer(**inputs)] for layer in (first, second))
    differences = [float(np.abs(a - b).max()) for a, b in zip(*outputs, strict=True)]
    assert list(result.numbers.values()) == differences
    assert result.largest_difference == max(differences)


# Sizes


def test_sizes_of_symbols() -> None:
    model = read_model(stepwise())
    sizes: dict[str, Any] = {"N": np.int64(7)}
    found = compare(model, model, dims=sizes)
    assert found.input_shapes == {"x": (3, 7, I), "h": (1, 7, 5), "c": (1, 7, 5)}
    layer = model.layers[0]
    alone = compare(layer, layer, dims={"seq_length": 4})
    assert len(alone.profiles["Y"].by_step) == 4


DIMS: list[tuple[Any, dict[str, Any], str]] = [
    ([3], {}, "compare: dims is list [3]; expected a mapping of sizes by name"),
    ({"N": 3}, {"inputs": {}}, "compare: dims is set and inputs is set"),
    ({"N": 2.5}, {}, "compare: dims: 'N' is 2.5"),
    ({"N": -1}, {}, "compare: dims: 'N' is -1"),
    ({"M": 3}, {}, "compare: dims has 'M'; expected symbolic dimensions of the inputs: N"),
    ({"N": 2**40}, {}, r"compare: input 'x' has shape (3, 1099511627776, 4); expected at most"),
]


@each_row(("dims", "more", "words"), DIMS, ids=[row[-1] for row in DIMS])
def test_rejected_sizes(dims: Any, more: dict[str, Any], words: str) -> None:
    model = read_model(stepwise())
    with pytest.raises(ArgumentError) as caught:
        compare(model, model, dims=dims, **more)
    assert words in str(caught.value)


def test_rejected_sizes_of_layers() -> None:
    with pytest.raises(ArgumentError, match="compare: dims has 'N'; expected, for layers, seq_length, batch_size"):
        compare(layer(), layer(), dims={"N": 3})
    with pytest.raises(ArgumentError, match=r"compare: dims has seq_length 2; expected 1: .* runs one step"):
        compare(cell(), cell(), dims={"seq_length": 2})
