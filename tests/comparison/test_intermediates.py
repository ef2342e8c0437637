"""Values inside two models: shared values in order, the first that differs, and the cost of running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import verdicts
from layers import random_weights
from onnx import helper, numpy_helper
from rows import few_rows

from pyrnnx import ArgumentError, Model, PyrnnxError, RecurrentOp, compare, load
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import read_model as read_ir

T, N, I, H = 5, 3, 4, 6
X = {"X": np.random.default_rng(0).normal(size=(T, N, I)).astype(np.float32)}


def chain(planted: str = "", *, names: tuple[str, ...] = ("half", "last")) -> onnx.ModelProto:
    """X -> scaled -> GRU -> squeezed -> half -> softened -> y, with a fault in the node that gives `planted`."""
    weights = random_weights(RecurrentOp("GRU", H), I)
    if planted == "both":
        weights["R"][0, 0, 0] += 1
    half, last = names
    return verdicts.model(
        f"""(float[{T},{N},{I}] X) => (float[{T},{N},{H}] y) {{
            scaled = Mul(X, two)
            both, "{last}" = GRU<hidden_size = {H}>(scaled, W, R, B)
            squeezed = Squeeze(both, axis)
            {half} = {"Sub" if planted == "half" else "Div"}(squeezed, two)
            softened = {"Sigmoid" if planted == "softened" else "Tanh"}({half})
            y = Add(softened, two)
        }}""",
        **weights,
        axis=np.array([1]),
        two=2,
    )


@pytest.mark.parametrize("planted", ["both", "half", "softened"])
def test_the_first_value_that_parts(planted: str) -> None:
    a, b = read_model(chain()), read_model(chain(planted))
    result = compare(a, b, X)
    order = ["scaled", "both", "last", "squeezed", "half", "softened", "y"]
    assert list(result.values) == order
    assert result.first_difference == planted
    for name in order[: order.index(planted)]:
        if (planted, name) != ("both", "last"):
            assert result.values[name].largest == 0
    words = f"first value apart: {planted!r}, largest difference "
    assert words in str(result)
    assert f"; the {order.index(planted)} before it agree, of 7 shared values" in str(result)
    expected = a(X, outputs=[planted])[planted], b(X, outputs=[planted])[planted]
    assert result.values[planted].largest == np.abs(expected[0].astype(float) - expected[1]).max()


def test_they_are_compared_if_outputs_differ_or_on_request() -> None:
    a, b = read_model(chain()), read_model(chain())
    assert not compare(a, b, X).values
    assert "value" not in str(compare(a, b, X))
    result = compare(a, b, X, intermediates=True)
    assert result.first_difference is None
    assert "shared values: 7, all agree" in str(result)
    assert not compare(a, read_model(chain("half")), X, intermediates=False).values
    with pytest.raises(ArgumentError, match=r"compare: intermediates is .*; expected a bool, or None"):
        compare(a, b, X, intermediates=1)  # type: ignore[call-overload]


def test_names_that_only_one_has() -> None:
    """But those of paired layers belong together, whatever their names are."""
    result = compare(read_model(chain()), read_model(chain("half", names=("other", "other last"))), X)
    assert list(result.values) == ["scaled", "both", "last, other last", "squeezed", "softened", "y"]
    assert result.first_difference == "softened"


def saved(proto: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return path


@few_rows("planted", ["softened"], ["both", "half"])
def test_an_onnx_model_and_what_openvino_makes_of_it(planted: str, tmp_path: Path) -> None:
    """Tensors keep their names; the outputs of the layers lie in other axes, and are brought to the canonical ones."""
    openvino: Any = pytest.importorskip("openvino")
    converted = openvino.convert_model(saved(chain(planted), tmp_path))
    openvino.save_model(converted, tmp_path / "ir.xml", compress_to_fp16=False)
    onnx_model, net = read_model(chain()), load(tmp_path / "ir.xml")
    assert isinstance(net, Model)
    for a, b in ((onnx_model, net), (net, onnx_model)):
        result = compare(a, b, X)
        assert {"scaled", "squeezed", "half", "softened", "y"} <= result.values.keys()
        if planted == "both":
            (layer,) = net._layer_values().values()
            assert result.first_difference is not None
            assert set(result.first_difference.split(", ")) <= {"both", *layer["Y"].names}
        else:
            assert result.first_difference == planted
        names = list(result.values)
        before = names[: names.index(result.first_difference)]
        assert all(result.values[name].largest < 1e-6 for name in before)


def ranked(axis: Any, factor: float = 2) -> onnx.ModelProto:
    """X -> its first size, of shape () or (1,) as the axis that is gathered says -> y; and numbers of no input."""
    proto = verdicts.model(
        f"""(float[{T},{N},{I}] X) => (y) {{
            negated = Neg(axis)
            sizes = Shape(X)
            size = Gather(sizes, axis)
            cast = Cast<to = 1>(size)
            scaled = Mul(X, factor)
            y = Add(scaled, cast)
        }}""",
        factor=factor,
    )
    constant = helper.make_node("Constant", [], ["axis"], value=numpy_helper.from_array(np.asarray(axis)))
    proto.graph.node.insert(0, constant)
    return proto


def test_ranks_alone_are_no_difference() -> None:
    """A scalar, and an array of that number: as ONNX and OpenVINO may have a size."""
    a, b = read_model(ranked(0)), read_model(ranked([0], 3))
    assert [np.shape(one(X, outputs=["size"])["size"]) for one in (a, b)] == [(), (1,)]
    for result in (compare(a, b, X), compare(b, a, X)):
        assert result.values["size"].largest == result.values["cast"].largest == 0
        assert result.first_difference == "scaled"
    assert "inf" not in str(result)


def test_shapes_that_differ_are_no_largest_difference() -> None:
    a, b = read_model(ranked(0)), read_model(ranked([0, 1, 2, 0]))
    result = compare(a, b, X, intermediates=True)
    assert list(result.values) == ["sizes", "size", "cast", "scaled", "y"]  # not those of constants
    assert result.first_difference == "size"
    assert "first value apart: 'size', shapes () and (4,); the 1 before it agree" in str(result)
    assert result.to_dict()["values"]["size"]["unlike"] == "shapes () and (4,)"


def long(count: int) -> onnx.ModelProto:
    nodes = " ".join(f"v{k} = Neg({f'v{k - 1}' if k else 'X'})" for k in range(count))
    return verdicts.model(f"(float[{T},{N},{I}] X) => (v{count - 1}) {{ {nodes} }}")


def test_values_that_cannot_be_computed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are computed in groups; a group that fails is divided."""
    a, b = read_model(long(40)), read_model(long(40))
    run = b._run_once

    def fails(inputs: Any, outputs: tuple[str, ...]) -> Any:
        if "v20" in outputs:
            raise PyrnnxError("this one cannot be computed")
        return run(inputs, outputs)

    assert len(compare(a, b, X, intermediates=True).values) == 40
    monkeypatch.setattr(b, "_run_once", fails)
    result = compare(a, b, X, intermediates=True)
    assert (list(result.values), result.values_skipped) == ([f"v{k}" for k in range(40) if k != 20], 1)
    assert "shared values: 39, all agree; 1 could not be computed" in str(result)


def test_variables_stay_as_they_are(tmp_path: Path) -> None:
    """An IR with a state, which every run changes."""
    net = read_ir(STATEFUL)
    other = read_ir(STATEFUL.replace('"Add"', '"Subtract"', 1))
    before = dict(net.state)
    result = compare(net, other, {"x": np.ones((1, 2), np.float32)}, intermediates=True)
    assert result.numbers["sum"] == result.values["sum"].largest == 2  # 0 + 1 and 0 - 1, in each of the runs
    assert dict(net.state).keys() == before.keys()
    again = compare(net, other, {"x": np.ones((1, 2), np.float32)}, intermediates=True)
    assert again.numbers == result.numbers


STATEFUL = """<net name="sums" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,2" element_type="f32"/>
<output><port id="0" precision="FP32" names="x"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="1" name="read" type="ReadValue" version="opset6"><data variable_id="v"
variable_type="f32" variable_shape="1,2"/><output>
<port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="2" name="sum" type="Add" version="opset1"><input><port id="0"><dim>1</dim><dim>2</dim></port>
<port id="1"><dim>1</dim><dim>2</dim></port></input>
<output><port id="2" precision="FP32" names="sum"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="3" name="assign" type="Assign" version="opset6"><data variable_id="v"/>
<input><port id="0"><dim>1</dim><dim>2</dim></port></input>
<output><port id="1" precision="FP32"><dim>1</dim><dim>2</dim></port></output></layer>
<layer id="4" name="out" type="Result" version="opset1">
<input><port id="0"><dim>1</dim><dim>2</dim></port></input></layer>
</layers><edges><edge from-layer="1" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="2" to-layer="4" to-port="0"/></edges></net>"""


# Sizes that both models run on


def convolution(least: int) -> onnx.ModelProto:
    """A model of audio [batch, samples] that needs a minimum of samples."""
    text = "(float[N,samples] audio) => (y) { channels = Unsqueeze(audio, one) y = Conv(channels, kernel) }"
    return verdicts.model(text, kernel=np.ones((1, 1, least), "f4"), one=np.array([1]))


@pytest.mark.parametrize(("least", "shape"), [(3, (3, 3)), (5, (1, 64)), (300, (1, 512))])
def test_open_sizes_with_which_both_run(least: int, shape: tuple[int, ...]) -> None:
    model = read_model(convolution(least))
    result = compare(model, model)
    assert result.input_shapes == {"audio": shape}
    assert f"run on 'audio' {shape}" in str(result)
    assert result.equal(0, 0)
    with pytest.raises(PyrnnxError, match="do not both run on random inputs of the sizes that they declare"):
        compare(read_model(convolution(600)), read_model(convolution(600)))
