"""Every version of every translated operation; recurrent ones are written by hand."""

from __future__ import annotations

from typing import Any

import openvino_nets as nets
import pytest
from numpy.typing import NDArray
from openvino_elementwise import ELEMENTWISE, SHAPES
from openvino_indexing import INDEXING, REDUCTIONS
from openvino_layers import assert_same, function, make_arrays, write
from openvino_linear import IMAGES, LINEAR, POOLING, SPECTRA
from openvino_operations import build
from rows import each_row

from pyrnnx import UnsupportedError
from pyrnnx.frontends.openvino import OPERATIONS, read_layer, read_model, to_onnx
from pyrnnx.frontends.openvino.translation.operations import TRANSLATORS

Array = NDArray[Any]
NEWEST = 10**9


def recurrent_model(kind: str, **data: str) -> tuple[Any, list[Array]]:
    """Return a net of one layer, all of whose inputs are the model's, and arrays for it."""
    text = write(kind, data, precision="FP32", attributes='id="50" name="it"')
    declared = read_layer(text)
    arrays = make_arrays(declared)
    layers = [
        nets.parameter(
            k, port.name, ",".join(map(str, array.shape)), array.shape, "i32" if array.dtype.kind == "i" else "f32"
        )
        for k, (port, array) in enumerate(zip(declared.inputs, arrays, strict=True))
    ]
    layers += [
        text,
        *(nets.result(60 + k, f"y{k}", [size or 0 for size in port.shape]) for k, port in enumerate(declared.outputs)),
    ]
    ends = [f"{k}.0 50.{port.id}" for k, port in enumerate(declared.inputs)]
    ends += [f"50.{port.id} {60 + k}.0" for k, port in enumerate(declared.outputs)]
    return read_model(nets.net(layers, nets.edges(*ends)), b""), arrays


@each_row("kind", OPERATIONS)
def test_recurrent_versions(kind: str) -> None:
    """Weights, states and lengths computed at run time: the numbers of the function."""
    more: dict[str, Any] = {"direction": "bidirectional"} if "Sequence" in kind else {"clip": 0.5}
    more |= {"linear_before_reset": True} if kind.startswith("GRU") else {}
    rows: list[dict[str, Any]] = [{}, more]
    for attributes in rows:
        model, arrays = recurrent_model(kind, **{name: str(value) for name, value in attributes.items()})
        assert_same(tuple(model(*arrays).values()), function(kind, *arrays, **attributes))
    with pytest.raises(UnsupportedError, match=r"'it' \(id 50\): W \(input \d\) is computed by Parameter"):
        to_onnx(model)


@each_row("kind", ["LSTMSequence-1", "LSTMCell-1"])
def test_input_forget(kind: str) -> None:
    """P in the order f, i, o, and i = 1 - f."""
    for activations in (None, ["hardsigmoid", "tanh", "tanh"]):
        own = {} if activations is None else {"activations": activations}
        model, arrays = recurrent_model(
            kind, input_forget="true", **{key: ",".join(names) for key, names in own.items()}
        )
        assert_same(tuple(model(*arrays).values()), function(kind, *arrays, input_forget=True, **own))


def test_every_registered_version_has_a_row() -> None:
    """By type and the first opset that a translator is for."""
    run = {(row.type.lower(), row.first_opset) for row in OPERATIONS.values()}
    run |= {("tensoriterator", 1), ("loop", 5), ("if", 8), ("readvalue", 3), ("assign", 3)}  # test_bodies, test_states
    for case in ELEMENTWISE + SHAPES + INDEXING + REDUCTIONS + LINEAR + POOLING + IMAGES + SPECTRA:
        kinds = [node.get_type_info() for node in build(case)[0].get_ordered_ops()]
        # what is beside the operation that the case is of does not count
        own = [kind for kind in kinds if kind.name.lower() == case.type.lower()]
        assert own, case.name
        run |= {(kind.name.lower(), int(kind.version_id.removeprefix("opset"))) for kind in own}
    missing = []
    for kind, rows in TRANSLATORS.items():
        firsts = sorted(rows)
        for first, following in zip(firsts, [*firsts[1:], NEWEST], strict=True):
            if not any(name == kind and first <= opset < following for name, opset in run):
                missing.append((kind, first))
    assert missing == []
