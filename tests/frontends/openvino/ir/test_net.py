"""IRs as data: layers, ports, edges, order, and the shapes and names in all their spellings."""

from __future__ import annotations

import re
import warnings
from typing import Any

import openvino_nets as nets
import pytest
from lxml import etree
from openvino_nets import edges, layer, net, parameter, result

from pyrnnx import Interval, PyrnnxError, PyrnnxWarning
from pyrnnx.frontends.openvino import Net, NetPort, read_net
from pyrnnx.frontends.openvino.ir.element_types import ELEMENT_TYPES, by_name, by_precision
from pyrnnx.frontends.openvino.ir.layer import Output
from pyrnnx.frontends.openvino.ir.ports import split_names
from pyrnnx.frontends.openvino.ir.shapes import parse_shape

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


def test_order_is_the_texts_where_edges_leave_it_open() -> None:
    read = read_net(XML)
    assert read.order == read.layers


def test_ports_need_not_be_numbered_from_0() -> None:
    text = XML
    for old, new in ((9, 109), (8, 58), (7, 17), (6, 16)):  # of layer 8
        text = re.sub(rf'(to-layer="8" to-port)="{old}"', rf'\1="{new}"', text)
        text = re.sub(rf'(from-layer="8" from-port)="{old}"', rf'\1="{new}"', text)
        start = text.index('<layer id="8"')
        end = text.index("</layer>", start)
        text = text[:start] + text[start:end].replace(f'port id="{old}"', f'port id="{new}"') + text[end:]
    read = read_net(text)
    lstm = next(iter(read.recurrent))
    assert [one.id for one in lstm.inputs] == [0, 1, 2, 3, 4, 5, 16]
    assert [one.id for one in lstm.outputs] == [17, 58, 109]


@pytest.mark.parametrize("version", ["10", "11"])
def test_versions(version: str) -> None:
    assert read_net(XML.replace('version="11"', f'version="{version}"')).version == int(version)


def test_layers_of_unknown_types_are_read() -> None:
    unknown = layer(1, "what", "Whatever", {"a": "b"}, ["FP32"], ["F8E4M3", "NEW"], "extension")
    read = read_net(net([parameter(0, "x", "", ()), unknown], edges("0.0 1.0")))
    assert (read.layers[1].type, read.layers[1].opset) == ("Whatever", 0)
    assert read.layers[1].outputs == (NetPort(1, None, "F8E4M3"), NetPort(2, None, "NEW"))
    assert not read.recurrent


def test_extensions_named_as_a_recurrent_operation_are_not_taken_for_one() -> None:
    text = XML.replace('version="opset5"', 'version="custom"')
    assert not read_net(text).recurrent


def test_bodies_of_loops_are_no_layers_of_the_net() -> None:
    loop = layer(1, "loop", "TensorIterator", None, ["FP32"], ["FP32"])
    body = f"<body>{XML[XML.index('<layers>') : XML.index('<rt_info')]}</body></layer>"
    read = read_net(net([parameter(0, "x", "", ()), loop.replace("</layer>", body)], edges("0.0 1.0")))
    assert [one.type for one in read.layers] == ["Parameter", "TensorIterator"]
    assert not read.recurrent


def test_warns_once_for_each_layer() -> None:
    text = XML.replace("<data direction", '<data alpha="1" direction')
    with pytest.warns(PyrnnxWarning, match=r"LSTMSequence 'lstm' \(id 8\): attribute 'alpha' is unknown") as caught:
        read_net(text)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_net(XML)


def test_ports_of_more_dimensions_than_an_array() -> None:
    text = XML.replace("<dim>4</dim>", "<dim>1</dim>" * 70, 1)
    with pytest.raises(PyrnnxError, match=r"port 0 has \d+ dimensions; expected at most \d+"):
        read_net(text)


def test_types_in_another_case() -> None:
    text = XML
    for kind in ("LSTMSequence", "Parameter", "Const", "Result"):
        text = text.replace(f'type="{kind}"', f'type="{kind.lower()}"')
    read = read_net(text)
    assert (len(read.recurrent), len(read.parameters), len(read.results)) == (1, 4, 3)
    assert [one.type for one in read.layers] == [
        "lstmsequence" if one.type == "LSTMSequence" else one.type for one in read_net(XML).layers
    ]


# Shapes


SHAPES: dict[str, Any] = {
    "": (),
    " ": (),
    "5": (5,),
    "2, 3": (2, 3),
    "2,3": (2, 3),
    "0,3": (0, 3),
    "?,4": (None, 4),
    "-1,4": (None, 4),
    "1..8,4": (Interval(1, 8), 4),
    "2..": (Interval(2, None),),
    "..7": (Interval(0, 7),),
    "3..3": (3,),
    "..": (None,),
    "...": None,
    "[1,2]": (1, 2),
}
BAD_SHAPES = ["a", "1,", ",1", "1;2", "1.5", "-2", "8..1", "1...8", "..., 3", "1..-1", "1 2", "9" * 30, f"{2**63}", "٣"]


@pytest.mark.parametrize(("text", "shape"), SHAPES.items(), ids=map(repr, SHAPES))
def test_spellings_of_shapes(text: str, shape: Any) -> None:
    assert parse_shape("label", text) == shape


@pytest.mark.parametrize("text", BAD_SHAPES)
def test_bad_shapes(text: str) -> None:
    with pytest.raises(PyrnnxError, match=r"Parameter 'x' \(id 0\): shape is '"):
        read_net(net([parameter(0, "x", text, ())], ""))


def test_shape_of_ports_without_dimensions() -> None:
    """A scalar where `<data>` says so, else of any rank: what the XML does not tell is not guessed."""
    relu = layer(2, "relu", "ReLU", None, ["FP32"], ["FP32"])
    read = read_net(net([parameter(0, "x", "", ()), parameter(1, "y", "...", ()), relu], edges("0.0 2.0")))
    assert [one.outputs[0].shape for one in read.layers] == [(), None, None]


def test_data_and_port_may_say_the_same_differently() -> None:
    read = read_net(net([parameter(0, "x", "?,1..8,3", (-1, 5, -1))], ""))
    assert read.layers[0].outputs[0].shape == (None, 5, 3)


@pytest.mark.parametrize("dims", [(3,), (3, 5, 1), (4, 5), (3, 9), (3, 0)])
def test_data_and_port_that_contradict_each_other(dims: tuple[int, ...]) -> None:
    with pytest.raises(PyrnnxError, match=r"Parameter 'x' \(id 0\): <data> has shape '3,1..8', output port 0"):
        read_net(net([parameter(0, "x", "3,1..8", dims)], ""))


# Names and element types


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), ("a", ("a",)), ("a,b", ("a", "b")), (r"a\,c,b", ("a,c", "b")), ("a,,b", ("a", "b")), ("a b", ("a b",))],
)
def test_tensor_names(text: str, names: tuple[str, ...]) -> None:
    assert split_names(text) == names


def test_element_types_have_one_row_each() -> None:
    assert len({row.precision for row in ELEMENT_TYPES.values()}) == len(ELEMENT_TYPES)
    for row in ELEMENT_TYPES.values():
        assert by_name("label", row.name) is row
        assert by_precision("label", row.precision) is row
        if row.dtype is None:
            with pytest.raises(PyrnnxError, match=f"label: values of element type '{row.name}' are not read"):
                row.numpy_dtype("label")
        elif not row.packed and row.dtype != "bfloat16":
            assert row.numpy_dtype("label").itemsize * 8 == row.bits


@pytest.mark.parametrize("name", [row.name for row in ELEMENT_TYPES.values() if row.bits is not None])
def test_element_types_are_openvinos(name: str, tmp_path: Any) -> None:
    """The name, the precision and the size of an element, as OpenVINO writes them."""
    openvino = pytest.importorskip("openvino")
    operations = pytest.importorskip("openvino.opset13")
    constant = operations.constant([0] * 16, dtype=getattr(openvino.Type, name))
    model = openvino.Model([operations.result(constant)], [], "one")
    openvino.save_model(model, tmp_path / "one.xml", compress_to_fp16=False)
    (written,) = (one for one in read_net(tmp_path / "one.xml").layers if one.type == "Const")
    assert written.data["element_type"] == name
    assert written.outputs[0].precision == ELEMENT_TYPES[name].precision
    assert int(written.data["size"]) * 8 == 16 * (ELEMENT_TYPES[name].bits or 0)


# Size


def chain(length: int) -> str:
    layers = [parameter(0, "x", "?,4", (-1, 4))]
    layers += [layer(k, f"relu_{k}", "ReLU", None, [("FP32", (-1, 4))], [("FP32", (-1, 4))]) for k in range(1, length)]
    layers.append(result(length, "r", (-1, 4)))
    return net(layers, edges("0.0 1.0", *(f"{k}.1 {k + 1}.0" for k in range(1, length))))


def test_long_chains_and_large_nets_are_read() -> None:
    """Far deeper than Python recurses, and with more layers than XML limits on names or depth would ever allow."""
    text = chain(5_000)
    read: Net = read_net(text)
    assert len(read.order) == 5_001
    assert read.order == read.layers


def test_cycles_in_large_nets_are_found() -> None:
    text = chain(3_000).replace(
        'from-layer="0" from-port="0" to-layer="1"', 'from-layer="2999" from-port="1" to-layer="1"'
    )
    with pytest.raises(
        PyrnnxError, match=r"cycle: ReLU 'relu_2' \(id 2\) -> ReLU 'relu_3' \(id 3\) -> .* -> \.\.\. -> ReLU"
    ):
        read_net(text)
