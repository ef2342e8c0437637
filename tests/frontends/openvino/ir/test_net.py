"""IRs as data: layers, ports, edges, order, and all spellings of shapes and names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from lxml import etree
from openvino_nets import edges, layer, net, parameter, result
from peers import run_openvino
from rows import each_row

from pyrnnx import Interval, PyrnnxError, PyrnnxWarning
from pyrnnx.frontends.openvino import Net, NetPort, read_model, read_net
from pyrnnx.frontends.openvino.ir.layer import Output
from pyrnnx.frontends.openvino.ir.ports import parse_shape

XML, BIN = nets.lstm_net()


def test_net() -> None:
    read = read_net(XML)
    assert (read.name, read.version, len(read.layers)) == ("small", 11, 12)
    assert [one.name for one in read.parameters] == ["X", "H", "C", "lengths"]
    assert [one.name for one in read.results] == ["Y/sink_port_0", "Ho/sink_port_0", "Co/sink_port_0"]
    by_id = {one.id: one for one in read.layers}
    lstm = by_id["8"]
    assert (lstm.label, lstm.type, lstm.version, lstm.opset) == (
        "LSTMSequence 'lstm' (id 8)", "LSTMSequence", "opset5", 5,
    )  # fmt: skip
    assert lstm.data["activations"] == "sigmoid, tanh, tanh"
    assert [source.layer.id for source in lstm.sources] == ["7", "1", "2", "3", "4", "5", "6"]
    assert lstm.outputs[0] == NetPort(7, (None, 1, None, 6), "FP32", ("Y",))
    assert by_id["0"].outputs[0].shape == (None, None, 4)
    assert read.consumers(Output(lstm, 1)) == [(by_id["10"], 0)]
    assert read.consumers(Output(by_id["10"], 0)) == ()
    (only,) = read.recurrent
    assert only is lstm
    assert read.recurrent[lstm].op.cell == "LSTM"
    assert read.recurrent[lstm].inputs[0].shape == (None, None, 4)


def test_ports_count_in_the_order_of_the_document(tmp_path: Path) -> None:
    """Ids only say what an edge connects: descending ones change nothing, also in OpenVINO."""
    root = etree.fromstring(XML.encode())
    for port in root.iter("port"):
        port.set("id", str(20 - int(port.get("id", ""))))
    for edge in root.iter("edge"):
        for end in ("from-port", "to-port"):
            edge.set(end, str(20 - int(edge.get(end, ""))))
    (tmp_path / "x.xml").write_bytes(etree.tostring(root))
    (tmp_path / "x.bin").write_bytes(BIN)
    inputs = nets.lstm_inputs()
    inputs["lengths"][:] = nets.T  # OpenVINO does not set padding to 0
    expected = list(read_model(XML, BIN)(inputs).values())
    for outputs in (list(read_model(tmp_path / "x.xml")(inputs).values()), run_openvino(tmp_path / "x.xml", inputs)):
        for output, value in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(output, value, rtol=1e-5, atol=1e-6)


def test_order_follows_the_edges() -> None:
    """The text in reverse: each layer still comes after its sources, and inputs and outputs as the text has them."""
    root = etree.fromstring(XML.encode())
    section = root.find("layers")
    assert section is not None
    section[:] = list(reversed(section))
    read = read_net(root)
    place = {one: k for k, one in enumerate(read.order)}
    assert set(place) == set(read.layers)
    assert all(place[source.layer] < place[one] for one in read.order for source in one.sources)
    assert [one.name for one in read.parameters] == ["lengths", "C", "H", "X"]


def test_ports_of_more_dimensions_than_an_array() -> None:
    text = XML.replace("<dim>4</dim>", "<dim>1</dim>" * 70, 1)
    with pytest.raises(PyrnnxError, match=r"port 0 has \d+ dimensions; expected at most \d+"):
        read_net(text)


SHAPES: dict[str, Any] = {
    "": (), " ": (), "5": (5,), "2, 3": (2, 3), "2,3": (2, 3), "0,3": (0, 3), "?,4": (None, 4), "-1,4": (None, 4),
    "1..8,4": (Interval(1, 8), 4), "2..": (Interval(2, None),), "..7": (Interval(0, 7),), "3..3": (3,), "..": (None,),
    "...": None, "[1,2]": (1, 2),
}  # fmt: skip
BAD_SHAPES = ["a", "1,", ",1", "1;2", "1.5", "-2", "8..1", "1...8", "..., 3", "1..-1", "1 2", "9" * 30, f"{2**63}", "٣"]


@each_row(("text", "shape"), SHAPES.items(), ids=map(repr, SHAPES))
def test_spellings_of_shapes(text: str, shape: Any) -> None:
    assert parse_shape("label", text) == shape


@each_row("text", BAD_SHAPES)
def test_bad_shapes(text: str) -> None:
    with pytest.raises(PyrnnxError, match=r"Parameter 'x' \(id 0\): shape is '"):
        read_net(net([parameter(0, "x", text, ())], ""))


def chain(length: int) -> str:
    layers = [parameter(0, "x", "?,4", (-1, 4))]
    layers += [layer(k, f"relu_{k}", "ReLU", None, [("FP32", (-1, 4))], [("FP32", (-1, 4))]) for k in range(1, length)]
    layers.append(result(length, "r", (-1, 4)))
    return net(layers, edges("0.0 1.0", *(f"{k}.1 {k + 1}.0" for k in range(1, length))))


def test_long_chains_and_large_nets_are_read() -> None:
    """They are deeper than Python recurses."""
    text = chain(1_500)
    read: Net = read_net(text)
    assert len(read.order) == 1_501
    assert read.order == read.layers


def test_a_newer_one_is_read_with_a_warning() -> None:
    text, words = XML.replace('version="11"', 'version="12"', 1), "IR version is 12, newer than any known"
    with pytest.warns(PyrnnxWarning, match=f"{words}: it is read as version 11") as caught:
        model = read_model(text, BIN)
    assert [warning.filename for warning in caught] == [__file__]
    assert (model.net.version, len(model.layers)) == (12, 1)


@each_row("dims", [(3,), (3, 5, 1), (4, 5), (3, 9), (3, 0)])
def test_data_and_port_that_contradict_each_other(dims: tuple[int, ...]) -> None:
    with pytest.raises(PyrnnxError, match=r"Parameter 'x' \(id 0\): <data> has shape '3,1..8', output port 0"):
        read_net(net([parameter(0, "x", "3,1..8", dims)], ""))
