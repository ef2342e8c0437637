"""docs/stateful_irs.md: its code runs, family by family, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("openvino")
pytest.importorskip("onnxruntime")
PAGE = (Path(__file__).parents[3] / "docs" / "stateful_irs.md").read_text()
PARTS = re.split(r"^## (.*)$", PAGE, flags=re.MULTILINE)
BLOCK = re.compile(r"^```python( torch)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FAMILIES = {title: BLOCK.search(text) for title, text in zip(PARTS[1::2], PARTS[2::2], strict=True)}
PREFACE = BLOCK.search(PARTS[0])
# Part of the page -> pattern of what it prints, if it prints.
PRINTED = {
    "Scan and Loop of ONNX": r"\[\('.*', 'GRU'\)\]",
    "LowLatency2": r"\{'.*': array\(",
    "MakeStateful": r"\['hhn', 'ccn'\] \['X'\]",
    "TensorIterators of old converters": r"\[\('RNNSequence', 'forward'\), \('RNNSequence', 'reverse'\)\]",
}
CODE = {title: found for title, found in FAMILIES.items() if found is not None}
assert set(PRINTED) < set(CODE)


@pytest.mark.parametrize(
    "title",
    [pytest.param(title, marks=pytest.mark.torch if code[1] else pytest.mark.e2e) for title, code in CODE.items()],
)
def test_code_of_the_page(title: str, tmp_path: Path) -> None:
    """The code runs from a file, because TorchScript reads the source."""
    if CODE[title][1]:
        pytest.importorskip("torch")
    assert PREFACE is not None
    path = tmp_path / "family.py"
    path.write_text(PREFACE[2] + CODE[title][2])
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(PRINTED.get(title, ""), done.stdout), done.stdout
