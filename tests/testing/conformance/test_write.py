"""Faults as folders: read by ONNX's and OpenVINO's tools, and the text of the report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import planted
import pytest
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

import pyrnnx
from pyrnnx.errors import ArgumentError
from pyrnnx.frontends.onnx import backend
from pyrnnx.testing.cases import NAMED, OUTPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.conformance import Fault, Verdict, run_suite, write_faults
from pyrnnx.testing.conformance.faults import needed_features
from pyrnnx.testing.conformance.judge import rounded
from pyrnnx.testing.conformance.snippets import snippet
from pyrnnx.testing.numbers import tolerance_of
from pyrnnx.testing.onnx_models import write_backend_test
from pyrnnx.testing.runtimes import RUNTIMES, CommandRuntime, FunctionRuntime, Runtime

PLACE = {"pyrnnx": "1.2", "NumPy": "2.4.6"}
FAKE = FunctionRuntime(planted.right, "fake <1>")


def fault(case: Case, status: str = "wrong", runtime: Runtime = FAKE) -> Fault:
    outputs = {name: one * np.nan for name, one in zip(OUTPUTS[case.operator], right(case), strict=True)}
    first = OUTPUTS[case.operator][0]
    verdict = Verdict(case, status, f"{first}: nan at [0, 0, 0, 0], expected 1", first, None, outputs)
    return Fault(runtime.name, verdict, needed_features(case), (case.name, "another"), True)


def right(case: Case) -> list[Any]:
    return [rounded(output, case.dtype) for output in expected_outputs(case, make_arrays(case))]


ONNX = (
    Case("a", "LSTM", {"clip": 0.25, "hidden_size": 2}, ("B", "initial_h"), T=3, N=1, I=1, H=2),
    Case("b", "LSTM", {"hidden_size": 2}, ("P",), H=2),
    Case("c", "GRU", {"direction": "reverse", "hidden_size": 5, "layout": 1}, (), (4, 1, 2), dtype="float16"),
    Case("d", "RNN", {"hidden_size": 5}, ("B",), dtype="bfloat16"),
    Case("e", "GRU", {"hidden_size": 5}, ("B",), N=0),
    Case("f", "RNN", {"hidden_size": 5, "activations": ["Affine"]}, opset=1, dtype="float64"),
)
OPENVINO = (
    Case("g", "LSTMSequence-5", {"hidden_size": 5, "clip": 0.25, "direction": "reverse"}, (), (4, 1, 2), opset=5),
    Case("h", "GRUCell-3", {"hidden_size": 5, "linear_before_reset": True}, T=1, opset=3, dtype="bfloat16"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Faults of all these cases."""
    path = tmp_path_factory.mktemp("faults")
    write_faults([fault(case) for case in (*ONNX, *OPENVINO)], [FAKE], path, versions=PLACE)
    return path


def test_names_tell_what_it_is(folder: Path) -> None:
    assert sorted(str(path.relative_to(folder)) for path in folder.glob("*/*")) == [
        "onnx/test_fake_1_wrong_gru_b_empty_batch",
        "onnx/test_fake_1_wrong_gru_sequence_lens_sequence_lens_with_reverse_reverse_layout_1_float16",
        "onnx/test_fake_1_wrong_lstm_b_initial_h_clip",
        "onnx/test_fake_1_wrong_lstm_p",
        "onnx/test_fake_1_wrong_rnn_activations_default_activation_parameters_opset_1_to_6_float64",
        "onnx/test_fake_1_wrong_rnn_b_bfloat16",
        "openvino/test_fake_1_wrong_grucell_3_linear_before_reset_bfloat16",
        "openvino/test_fake_1_wrong_lstmsequence_5_sequence_lens_sequence_lens_with_reverse_reverse_clip",
    ]


def comparable(arrays: Sequence[Any]) -> list[Any]:
    """Return the arrays with bfloat16 widened, which the isclose of NumPy 1 does not accept."""
    return [array.astype(np.float32) if array.dtype.name == "bfloat16" else array for array in arrays]


def test_onnx_loads_the_tests_and_pyrnnx_passes_them(folder: Path) -> None:
    tests = load_model_tests(str(folder), "onnx")
    assert len(tests) == len(ONNX)
    for test in tests:
        assert test.model_dir is not None
        model = onnx.load(Path(test.model_dir, "model.onnx"))
        onnx.checker.check_model(model)
        data = Path(test.model_dir, "test_data_set_0")
        inputs = [onnx.numpy_helper.to_array(onnx.load_tensor(path)) for path in sorted(data.glob("input_*.pb"))]
        outputs = [onnx.numpy_helper.to_array(onnx.load_tensor(path)) for path in sorted(data.glob("output_*.pb"))]
        assert len(inputs) == len(model.graph.input)
        assert len(outputs) == len(model.graph.output)
        given = backend.run_model(model, inputs)
        Runner.assert_similar_outputs(comparable(outputs), comparable(given), rtol=test.rtol, atol=test.atol)
        wrong = [output + output.dtype.type(0.5) for output in given]
        if outputs[0].size:
            with pytest.raises(AssertionError):
                Runner.assert_similar_outputs(comparable(outputs), comparable(wrong), rtol=test.rtol, atol=test.atol)


def test_irs_of_onnx_cases_compute_the_same(folder: Path) -> None:
    for case, path in zip(
        ONNX, write_faults([fault(one) for one in ONNX], [FAKE], folder, versions=PLACE), strict=True
    ):
        report = (path / "README.md").read_text()
        if case.name == "b":
            assert not (path / "model.xml").exists()
            assert "no IR (" in report
            continue
        assert "no IR" not in report
        if case.dtype == "bfloat16":  # ONNX Runtime has no kernels for the operators beside the layer
            continue
        model, arrays = pyrnnx.load(path / "model.xml"), make_arrays(case)
        results = model({name: arrays[name] for name in (info.name for info in model.inputs)})
        for given, wanted in zip(results.values(), right(case), strict=True):
            close(given, wanted, case.dtype)


def close(given: Any, wanted: Any, dtype: str) -> None:
    assert given.dtype == wanted.dtype
    tolerance = 2 * tolerance_of(dtype)  # both are rounded
    np.testing.assert_allclose(given.astype("f8"), wanted.astype("f8"), rtol=tolerance, atol=tolerance)


def test_cases_of_openvino_are_irs_with_arrays(folder: Path) -> None:
    paths = write_faults([fault(case) for case in OPENVINO], [FAKE], folder, versions=PLACE)
    for case, path in zip(OPENVINO, paths, strict=True):
        inputs, outputs = dict(np.load(path / "inputs.npz")), dict(np.load(path / "outputs.npz"))
        assert tuple(inputs) == case.given
        assert tuple(outputs) == OUTPUTS[case.operator]
        assert {array.dtype.name for array in outputs.values()} == {"float32"}
        results = pyrnnx.load(path / "model.xml")(make_arrays(case))
        for name, given in results.items():
            np.testing.assert_allclose(
                given.astype("f4"), outputs[name], rtol=2e-2, atol=2e-2 if case.dtype != "float32" else 1e-5
            )


def test_the_report_can_be_pasted(folder: Path) -> None:
    path = folder / "onnx/test_fake_1_wrong_lstm_b_initial_h_clip/README.md"
    report = path.read_text()
    assert report.startswith("# fake <1> returns a wrong result: LSTM: B, initial_h, clip\n")
    assert (
        "LSTM, opset 22, T=3 N=1 I=1 H=2, clip=0.25, hidden_size=2, with B, initial_h. Reduced from the case `a`."
        in report
    )
    assert "Wrong: Y: nan at [0, 0, 0, 0], expected 1." in report
    assert f"{right(ONNX[0])[0].ravel()[0]:.7f}"[:6] in report.partition("Y returned")[0].partition("Y expected")[2]
    assert "nan nan" in report.partition("Y returned")[2]
    # the operator's text, as onnx has it
    clip = onnx.defs.get_schema("LSTM", 22).attributes["clip"].description
    assert f"> LSTM-22, attribute clip: {clip}" in report
    assert "> LSTM-22, input initial_h: Optional initial value of the hidden." in report
    assert "input B:" in report
    assert "sequence_lens" not in report
    assert "- fake <1>\n- pyrnnx 1.2\n- NumPy 2.4.6" in report
    made: Any = eval(re.search(r"`pyrnnx.testing.cases.(Case\(.*\))`", report)[1], {"Case": Case})  # type: ignore[index]
    assert make_arrays(made)["X"].tobytes() == make_arrays(ONNX[0])["X"].tobytes()


def test_folders(tmp_path: Path) -> None:
    first, second = write_faults([fault(ONNX[0]), fault(ONNX[0])], [FAKE], tmp_path)
    assert second.name == f"{first.name}_2"
    (tmp_path / "file").write_text("")
    with pytest.raises(ArgumentError, match="file' cannot be written"):
        write_faults([fault(ONNX[0])], [FAKE], tmp_path / "file")


SHOWN = [NAMED[name] for name in ("LSTM-only-P", "GRU-only-sequence_lens", "RNN-defaults")]
TORCH = {"linear_before_reset": 1, "layout": 1, "hidden_size": 5, "direction": "bidirectional"}
SHOWN += [Case("torch", "GRU", TORCH, ("B",), (3, 1, 4))]
SHOWN += [Case("torch, too", "LSTM", {"hidden_size": 5}, ("B", "initial_h", "initial_c"))]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.torch if name == "torch" else pytest.mark.slow)
        for name in RUNTIMES
        if name != "tract"
    ],
)
def test_snippets_show_what_the_runtimes_did(name: str, tmp_path: Path) -> None:
    """The snippet prints a large difference if the runtime was found wrong, and a small one if it was right."""
    runtime = RUNTIMES[name]
    if not runtime.installed():
        pytest.skip(f"{runtime.name} is not installed")
    suite = run_suite([runtime], [one for one in SHOWN if runtime.supports(one)])
    ran = [one for one in suite.verdicts[runtime.name] if one.status in ("right", "wrong")]
    assert ran
    scripts = {}
    for verdict in ran:
        write_backend_test(verdict.case, folder := tmp_path / verdict.case.name)
        scripts[folder] = snippet(runtime, verdict.case)
    printed = iter(re.findall(r"(\S+) apart at most", run_snippets(scripts)))
    for verdict in ran:
        apart = max(float(next(printed)) for _ in OUTPUTS[verdict.case.operator])
        assert (apart < 1e-5) == (verdict.status == "right")
    assert next(printed, None) is None


def test_snippets_of_functions_and_commands(tmp_path: Path) -> None:
    write_backend_test(ONNX[0], tmp_path)
    printed = run_snippets({tmp_path: snippet(FunctionRuntime(planted.four_wide), ONNX[0])})
    assert "array(" in printed
    command = CommandRuntime([sys.executable, "-c", "import sys; print(sys.argv[1:])", "in={folder}"])
    text = snippet(command, ONNX[0]).removeprefix("```bash\n").removesuffix("```")
    assert subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout == "['in=.']\n"


def run_snippets(texts: dict[Path, str]) -> str:
    """Return the output of each snippet, run in its folder; one process, because imports take long."""
    scripts = {str(folder): text.removeprefix("```python\n").removesuffix("```") for folder, text in texts.items()}
    program = f"import os\nfor path, text in {scripts!r}.items():\n    os.chdir(path)\n    exec(text, {{}})"
    path = os.pathsep.join([str(Path(planted.__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
