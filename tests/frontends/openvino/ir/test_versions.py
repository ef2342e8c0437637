"""Versions of the format that are older or newer than those that are known."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from openvino_loops import looped
from openvino_nets import lstm_inputs, lstm_net

from pyrnnx import PyrnnxWarning, UnsupportedError
from pyrnnx.frontends.openvino import read_model, read_net

XML, BIN = lstm_net()
NEWER = "IR version is 12, newer than any known"


def of_version(version: int, text: str = XML) -> str:
    return re.sub(r'(<net name="\w+" version)="\d+"', rf'\1="{version}"', text, count=1)


@pytest.mark.parametrize("version", range(2, 10))
def test_old_ones_say_how_to_convert(version: int) -> None:
    message = f"IR version is '{version}'; expected 10 or 11. Only OpenVINO 2020.4 and earlier run it: convert"
    with pytest.raises(UnsupportedError, match=message):
        read_net(of_version(version))


def test_10_and_11_are_read_alike() -> None:
    inputs: dict[str, Any] = {**lstm_inputs()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = [read_model(of_version(version), BIN) for version in (10, 11)]
    for one, other in zip(*(model(**inputs).values() for model in models), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("loop", [False, True])
def test_a_newer_one_is_read_with_a_warning(loop: bool) -> None:
    text, data, arrays = looped("LSTM") if loop else (XML, BIN, list(lstm_inputs().values()))
    with pytest.warns(PyrnnxWarning, match=f"{NEWER}: it is read as version 11") as caught:
        model = read_model(of_version(12, text), data)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.net.version == 12
    for one, other in zip(model(*arrays).values(), read_model(text, data)(*arrays).values(), strict=True):
        np.testing.assert_array_equal(one, other)


ODD = {
    "an attribute of the net": ("<net ", '<net mode="a" ', "its <net> has attribute 'mode'"),
    "an element of the net": ("<edges>", "<sections/><edges>", "its <net> has <'sections'>"),
    "an attribute of a layer": ('id="8"', 'id="8" device="CPU"', "its <layer> has attribute 'device'"),
    "an element of a layer": ("</layer>", "<quantization/></layer>", "its <layer> has <'quantization'>"),
    "an attribute of a port": ("<port ", '<port scale="1" ', "its <port> has attribute 'scale'"),
    "an attribute of an edge": ("<edge ", '<edge order="1" ', "its <edge> has attribute 'order'"),
    "an element in a dimension": ("<dim>", "<dim><symbol/>", "its <dim> has <'symbol'>"),
}


@pytest.mark.parametrize(("old", "new", "words"), ODD.values(), ids=ODD)
def test_a_newer_one_that_holds_more_is_an_error(old: str, new: str, words: str) -> None:
    text = of_version(12).replace(old, new, 1)
    assert text != of_version(12)
    with pytest.raises(UnsupportedError, match=f"{NEWER}, and {words}; expected what version 11 has"):
        read_model(text, BIN)


@pytest.mark.parametrize("tag", ["port_map", "input", "body", "back_edges"])
def test_a_newer_one_with_more_in_a_loop(tag: str) -> None:
    text = of_version(12, looped("GRU")[0])
    begin = "input external_port_id" if tag == "input" else tag
    odd = text.replace(f"<{begin}", "<" + begin.replace(tag, f'{tag} odd="1"'), 1)
    assert odd != text
    with pytest.raises(UnsupportedError, match=f"its <{tag}> has attribute 'odd'"):
        read_net(odd)
