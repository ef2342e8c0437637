"""If, Loop and Scan with their bodies, and sequences, written as IR and run five times beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from peers import compile_openvino
from rows import few_rows
from whole_models import check_each, onnxruntime_witness, varied
from written_bodies import GRAPHS, floats

from pyrnnx import PyrnnxError
from pyrnnx.frontends.openvino import read_model, write_model

# float32 on all sides: sums of up to 20 terms through up to 6 iterations
TOLERANCE = 1e-5


# Their nodes are written like those of another row.
ALIKE = ["squeezed if of size 1, by nodes Constant", "counted by an input", "without a limit", "rows alone", "parts"]


@few_rows("name", [name for name in GRAPHS if name not in ALIKE], ALIKE)
def test_equals_onnxruntime(name: str, tmp_path: Path) -> None:
    row = GRAPHS[name]
    proto, path = row.model(), tmp_path / "model.xml"
    write_model(proto, path)
    for kind in row.absent:
        assert f'type="{kind}"' not in path.read_text()
    calls = [*varied(row.inputs), *({**row.inputs, **other} for other in row.others)]
    witness, here, there = onnxruntime_witness(proto), read_model(path), compile_openvino(path)
    empty = [{**row.inputs, **other} for other in row.empty]
    check_each(here, witness, [*calls, *empty], atol=TOLERANCE, label=name)
    check_each(lambda inputs: list(there(inputs).to_tuple()), witness, calls, atol=TOLERANCE, label=f"{name}, OpenVINO")


def test_squeeze_of_another_size_fails(tmp_path: Path) -> None:
    row = GRAPHS["squeezed if of size 1"]
    write_model(row.model(), tmp_path / "model.xml")
    inputs = {"x": floats(3, 2, 2)}
    with pytest.raises(PyrnnxError, match=r"(?i)reshape"):
        read_model(tmp_path / "model.xml")(inputs)
    # Two threads, because with one the plugin reports no error and returns an empty array.
    with pytest.raises(RuntimeError, match="reshape"):
        compile_openvino(tmp_path / "model.xml", INFERENCE_NUM_THREADS=2)(inputs)
