"""Faults as folders with a test for ONNX's or OpenVINO's tools, and a bug report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shown
from pyrnnx.testing.cases import OUTPUTS, Case, make_arrays
from pyrnnx.testing.conformance.environment import environment
from pyrnnx.testing.conformance.faults import Fault
from pyrnnx.testing.conformance.judge import expectation, rounded
from pyrnnx.testing.conformance.plain import case_to_dict, describe
from pyrnnx.testing.conformance.snippets import snippet
from pyrnnx.testing.conformance.text import named
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes import Runtime

_HAPPENED = {
    "wrong": "returns a wrong result",
    "refused": "refuses a valid model",
    "crashed": "ends the process",
    "timed out": "does not finish",
}
_SHOWN = 64  # numbers of an output that are printed
_WEIGHTS = ("W", "R", "B", "P")


def write_faults(
    faults: Sequence[Fault],
    runtimes: Sequence[Runtime],
    folder: str | Path,
    *,
    versions: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write a folder for each fault, below `folder`.

    Parameters
    ----------
    faults : sequence of Fault
        Shrunk ones make the shortest reports.
    runtimes : sequence of Runtime
        Runtimes that have the faults.
    folder : str or path
        Created if missing. Folders of the same faults are replaced, others are unchanged.
    versions : mapping of str to str, optional
        Versions in the report; default: `environment()`.

    Returns
    -------
    list of Path
        A case of ONNX is in onnx/test_RUNTIME_STATUS_OPERATOR_FEATURES: model.onnx and test_data_set_0, which
        ``onnx.backend.test`` loads (its `data_dir` is `folder`, its `kind` "onnx"), and the same as IR in model.xml and
        model.bin if OpenVINO can express it. A case of OpenVINO is in openvino/, with inputs.npz and outputs.npz.
        README.md in each folder is the report.

    Raises
    ------
    ArgumentError
        A folder that cannot be written.
    """
    by_name = {runtime.name: runtime for runtime in runtimes}
    versions = dict(environment() if versions is None else versions)
    try:
        return [_write(fault, by_name[fault.runtime], path, versions) for path, fault in _paths(faults, Path(folder))]
    except OSError as error:
        raise ArgumentError(f"conformance: {shown(str(folder))} cannot be written ({error})") from None


def write_cases(cases: Iterable[Case], folder: str | Path) -> list[Path]:
    """Write cases as onnx's own backend tests are stored, with the oracle's results.

    Parameters
    ----------
    cases : iterable of Case
        Cases of ONNX's operators with unique names; those of OpenVINO are left out, because they are no ONNX models.
    folder : str or path
        Created if missing. Folders of the same cases are replaced, others are unchanged.

    Returns
    -------
    list of Path
        The folders onnx/test_NAME with model.onnx, test_data_set_0, and the tolerances in data.json, which
        ``onnx.backend.test.loader.load_model_tests(folder, "onnx")`` loads.

    Raises
    ------
    ArgumentError
        A folder that cannot be written.
    """
    from pyrnnx.testing.onnx_models import write_backend_test

    paths = []
    try:
        for case in cases:
            if case.family == "ONNX":
                path = Path(folder, "onnx", _folder_name("test", case.name))
                write_backend_test(case, path, outputs=[rounded(array, case.dtype) for array in expectation(case)])
                paths.append(path)
    except OSError as error:
        raise ArgumentError(f"conformance: {shown(str(folder))} cannot be written ({error})") from None
    return paths


def _folder_name(*words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", "_".join(words).lower()).strip("_")[:120]


def _paths(faults: Sequence[Fault], folder: Path) -> Iterator[tuple[Path, Fault]]:
    """Yield a folder for each fault; names describe the fault and sort by runtime."""
    taken: set[Path] = set()
    for fault in faults:
        name = _folder_name("test", fault.runtime, fault.status, fault.case.operator, *fault.features)
        path, number = folder / fault.case.family.lower() / name, 1
        while path in taken:
            number += 1
            path = path.with_name(f"{name}_{number}")
        taken.add(path)
        yield path, fault


def _write(fault: Fault, runtime: Runtime, path: Path, versions: Mapping[str, str]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    case = fault.case
    arrays, right = make_arrays(case), expectation(case)
    outputs = dict(zip(OUTPUTS[case.operator], (rounded(array, case.dtype) for array in right), strict=True))
    if case.family == "ONNX":
        from pyrnnx.testing.onnx_models import write_backend_test

        write_backend_test(case, path, arrays, list(outputs.values()))
        ir = _write_ir(case, arrays, path / "model.xml")
    else:
        from pyrnnx.testing.ir_models import make_ir

        (path / "model.xml").write_text(make_ir(case, arrays), encoding="utf-8")
        (path / "model.bin").write_bytes(b"")  # every array is an input
        for file, named_arrays in (("inputs.npz", arrays), ("outputs.npz", outputs)):
            plain: dict[str, Any] = {name: _plain(array) for name, array in named_arrays.items()}
            np.savez(path / file, **plain)
        ir = ""
    text = "\n\n".join(_report(fault, runtime, outputs, versions, ir))
    (path / "README.md").write_text(f"{text}\n", encoding="utf-8")
    return path


def _write_ir(case: Case, arrays: Mapping[str, Array], path: Path) -> str:
    """Write an ONNX case as IR with constant weights; return "" or the reason if impossible."""
    import onnx

    from pyrnnx.frontends.openvino import write_model
    from pyrnnx.testing.onnx_models import make_model

    model = make_model(case, arrays)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(arrays[name], name) for name in _WEIGHTS if name in arrays
    )
    inputs = [info for info in model.graph.input if info.name not in _WEIGHTS]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    try:
        write_model(model, path)
    except PyrnnxError as error:
        return str(error)
    return ""


def _plain(array: Array) -> Array:
    """Convert bfloat16 to float32, because NumPy has no bfloat16."""
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _report(
    fault: Fault, runtime: Runtime, right: Mapping[str, Array], versions: Mapping[str, str], ir: str
) -> Iterator[str]:
    case = fault.case
    yield f"# {printable(named(runtime.name, runtime.version()))} {_HAPPENED[fault.status]}: {fault.title}"
    yield f"{describe(case)}.{_origin(fault)}"
    yield "## Expected and actual results"
    yield from _results(fault, right)
    quoted = "\n".join(f"> {line}" for line in _text_of_operator(fault))
    if quoted:
        yield f"The text of the operator:\n\n{quoted}"
    files = "`model.onnx` and `test_data_set_0`, in the layout of ONNX's backend tests"
    files += (
        f"; no IR ({printable(ir)})" if ir else "; `model.xml` and `model.bin`, the same model with constant weights"
    )
    files = files if case.family == "ONNX" else "`model.xml` with `model.bin`; `inputs.npz` and `outputs.npz`"
    yield f"## To reproduce\n\nIn this folder ({files}):"
    yield snippet(runtime, case)
    yield "## Versions"
    yield "\n".join(f"- {printable(named(*pair))}" for pair in {runtime.name: runtime.version(), **versions}.items())
    yield f"The case in Python: `pyrnnx.testing.cases.Case(**{case_to_dict(case)})`"


def _origin(fault: Fault) -> str:
    sentences = []
    if fault.shrunk:
        sentences.append(f"Reduced from the case `{fault.found[0]}`.")
    if fault.case.tells:
        where = f" ({fault.case.source})" if fault.case.source else ""
        sentences.append(f"{fault.case.tells.removesuffix('.')}{where}.")
    return "".join(f" {sentence}" for sentence in sentences)


def _results(fault: Fault, right: Mapping[str, Array]) -> Iterator[str]:
    verdict = fault.verdict
    yield f"{fault.status[:1].upper()}{fault.status[1:]}{f': {verdict.detail}' if verdict.detail else ''}."
    name = verdict.output or next(iter(right))
    expected = right[name]
    if 0 < expected.size <= _SHOWN:
        returned = [array for array in [verdict.outputs.get(name)] if array is not None]
        blocks = [("expected", expected), *(("returned", array) for array in returned)]
        yield "\n".join(
            [
                "```",
                *(f"{name} {word}, {array.dtype} {array.shape}:\n{_printed(array)}" for word, array in blocks),
                "```",
            ]
        )


def _printed(array: Array) -> str:
    return np.array2string(array.astype(np.float64), precision=7, max_line_width=100)


def _text_of_operator(fault: Fault) -> list[str]:
    """Return ONNX's documentation of each attribute and optional input of the case."""
    case = fault.case
    if case.family != "ONNX":
        return []
    import onnx

    schema: Any = onnx.defs.get_schema(case.operator, min(case.opset, onnx.defs.onnx_opset_version()))
    version = f"{case.operator}-{schema.since_version}"
    names = [name for name in case.attributes if name != "hidden_size"]
    if "default activation parameters" in fault.features:  # one of the two is missing
        names += [name for name in ("activation_alpha", "activation_beta") if name not in names]
    lines = [f"{version}, attribute {name}: {schema.attributes[name].description}" for name in names]
    present = {*case.inputs, *(["sequence_lens"] if case.lens is not None else [])}
    lines += [
        f"{version}, input {argument.name}: {argument.description}"
        for argument in schema.inputs
        if argument.name in present
    ]
    return [" ".join(line.split()) for line in lines]
