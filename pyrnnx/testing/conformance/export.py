"""Cases as folders that onnx's backend tests read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases import Case


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
                name = re.sub(r"[^a-z0-9]+", "_", case.name.lower()).strip("_")
                paths.append(Path(folder, "onnx", f"test_{name}"))
                write_backend_test(case, paths[-1])
    except OSError as error:
        raise ArgumentError(f"conformance: {shown(str(folder))} cannot be written ({error})") from None
    return paths
