"""docs/conformance.md has the current cases; the counts of other runtimes are as recorded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rows import each_row

from pyrnnx.testing.cases import CASES, FEATURES, NAMED, OPENVINO_CASES, Case, random_cases
from pyrnnx.testing.runtimes import RUNTIMES

PATH = Path(__file__).parents[3] / "docs" / "conformance.md"
pytestmark = pytest.mark.skipif(not PATH.exists(), reason="the tests stand without the documents")
PAGE = PATH.read_text(encoding="utf-8").replace("\\", "") if PATH.exists() else ""
SUITES: dict[str, tuple[Case, ...]] = {
    "named cases of ONNX's operators": CASES,
    "named cases of OpenVINO's operations": OPENVINO_CASES,
    "random cases of ONNX's operators (seed 0)": tuple(random_cases(0, 400)),
}
AGAIN = "docs/conformance.md is of other cases; write it again with the commands at its beginning"


def test_it_begins_with_its_template_the_command_and_versions() -> None:
    import tables

    head = PAGE.partition("\n## ")[0]
    for part in re.split(r"\{\w+\}", tables.CONFORMANCE):
        assert part.replace("\\", "") in PAGE, AGAIN
    runtimes = [name for name in RUNTIMES if name != "pyrnnx.load"]
    assert f"python -m pyrnnx conformance {' '.join(runtimes)} --cases named" in head
    for name in (*(RUNTIMES[name].name for name in runtimes), "Python", "NumPy"):
        assert re.search(rf"{re.escape(name)} v?\d", head)


@each_row("kind", [*SUITES][:2])
def test_its_tables_have_the_features_of_the_cases(kind: str) -> None:
    cases, title = SUITES[kind], f"## {len(SUITES[kind])} {kind}\n"
    assert title in PAGE, AGAIN
    section = re.split("^## ", PAGE.partition(title)[2], maxsplit=1, flags=re.MULTILINE)[0]
    header, *table = [line[2:-2].split(" | ") for line in section.splitlines() if line.startswith("| ")]
    counts = {name: sum(name == case.feature for case in cases) for name in FEATURES}
    used = [name for name, count in counts.items() if count]
    assert [row[0] for row in table] == [f"{name}: {FEATURES[name]}" for name in used], AGAIN
    for feature, row in zip(used, table, strict=True):
        assert row[header.index("pyrnnx")] == str(counts[feature]), AGAIN
        for cell in row[1:]:
            assert sum(map(int, re.findall(r"\d+(?= |$|,)", cell))) == counts[feature], AGAIN


def test_its_faults_are_of_cases_that_there_are() -> None:
    known = {**NAMED, **{case.name: case for case in SUITES["random cases of ONNX's operators (seed 0)"]}}
    lines = re.findall(r"^- (?:wrong|crashed|timed out), [^`]+: (`.*`)(.*)$", PAGE, re.MULTILINE)
    assert len(lines) > 20
    for names, reasons in lines:
        for name in re.findall("`(.+?)`", names):
            assert known[name].tells in reasons, AGAIN
