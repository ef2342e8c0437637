"""A command line as a runtime."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from rows import each_row

from pyrnnx import ArgumentError
from pyrnnx.testing.cases import NAMED, make_arrays
from pyrnnx.testing.conformance import judge
from pyrnnx.testing.runtimes import CommandRuntime, Execution, execute

CASE = NAMED["LSTM-input_forget=0-bidirectional-layout0-lens"]
CASES = (CASE, NAMED["GRU-float16"], NAMED["RNN-bfloat16"], NAMED["RNN-N=0"])
# Runs any model of one recurrent node by the oracle.
PROGRAM = """
import sys
from pathlib import Path
import onnx
from onnx import numpy_helper
from pyrnnx import reference
folder = Path(sys.argv[1])
model = onnx.load(folder / "model.onnx")
onnx.checker.check_model(model)
(node,) = model.graph.node
inputs = {}
for k, info in enumerate(model.graph.input):
    tensor = onnx.TensorProto.FromString((folder / "test_data_set_0" / f"input_{k}.pb").read_bytes())
    assert tensor.name == info.name
    inputs[info.name] = numpy_helper.to_array(tensor)
assert not (folder / "test_data_set_0" / "output_0.pb").exists()
attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
for name, value in attributes.items():
    if isinstance(value, bytes):
        attributes[name] = value.decode()
    elif name == "activations":
        attributes[name] = [one.decode() for one in value]
for k, array in enumerate(reference.run(node.op_type, **inputs, **attributes)):
    tensor = numpy_helper.from_array(array.astype(inputs["X"].dtype))
    (folder / "test_data_set_0" / f"output_{k}.pb").write_bytes(tensor.SerializeToString())
print("noise")
"""


def run_one(runtime: CommandRuntime, timeout: float = 60.0) -> Execution:
    (execution,) = execute(runtime, [CASE], timeout=timeout)
    return execution


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "my program.py"
    path.write_text(PROGRAM)
    return path


@pytest.mark.e2e
def test_runs_models(program: Path) -> None:
    for execution in execute(CommandRuntime([sys.executable, str(program), "{folder}"]), CASES):
        assert judge(execution).status == "right", execution.case.name


# Shell commands with the folder as $0; the outcome of the case, and its message.
ENDS = {
    "writes nothing": ("true", "ran", ""),
    "fails": ("echo first >&2; echo no such operator >&2; exit 3", "refused", "exit status 3: no such operator"),
    "fails in silence": ("exit 3", "refused", "exit status 3"),
    "is killed": ("kill -SEGV $$", "crashed", "killed by SIGSEGV"),
    "runs what is killed": ("(echo oh >&2; kill -ABRT $BASHPID); exit $?", "crashed", "killed by SIGABRT: "),
    "writes no tensor": ("echo x > $0/test_data_set_0/output_0.pb", "refused", "its output_0.pb is no TensorProto: "),
    "hangs": ("sleep 1000", "timed out", "no result within 1 s"),
    "writes without end": ("yes", "timed out", "no result within 1 s"),
}


@pytest.mark.e2e
@each_row("name", ENDS)
def test_ends(name: str) -> None:
    script, status, detail = ENDS[name]
    timeout = 1.0 if status == "timed out" else 60.0
    execution = run_one(CommandRuntime(["bash", "-c", script]), timeout=timeout)
    assert execution.status == status
    if detail.endswith(": "):  # in words of onnx, or of the shell, which speaks of what was killed
        assert execution.detail.startswith(detail)
    else:
        assert execution.detail == detail
    assert execution.outputs == ((None, None, None) if status == "ran" else ())


def test_one_output_of_three() -> None:
    runtime = CommandRuntime(["bash", "-c", "cp $0/test_data_set_0/input_0.pb $0/test_data_set_0/output_1.pb"])
    first, second, third = run_one(runtime).outputs
    assert first is None
    assert third is None
    np.testing.assert_array_equal(second, make_arrays(CASE)["X"])


def test_a_program_that_is_not_installed() -> None:
    execution = run_one(CommandRuntime(["/no/such/program"]))
    assert (execution.status, execution.detail) == ("refused", "program is not installed")


@each_row("command", ["", [], ["run", 5], 5, "run 'it"])
def test_what_is_no_command(command: object) -> None:
    with pytest.raises(ArgumentError, match=r"^CommandRuntime: command is "):
        CommandRuntime(command)  # type: ignore[arg-type]
