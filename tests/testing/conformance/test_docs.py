"""docs/conformance.md has the current cases and texts; the counts of other runtimes are as recorded."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from rows import few_rows

from pyrnnx.testing.cases import CASES, FEATURES, NAMED, OPENVINO_CASES, Case, random_cases
from pyrnnx.testing.conformance.markdown import escaped
from pyrnnx.testing.conformance.plain import describe
from pyrnnx.testing.runtimes import RUNTIMES

PATH = Path(__file__).parents[3] / "docs" / "conformance.md"
pytestmark = pytest.mark.skipif(not PATH.exists(), reason="the tests stand without the documents")
PAGE = PATH.read_text(encoding="utf-8") if PATH.exists() else ""
SUITES: dict[str, tuple[Case, ...]] = {
    "named cases of ONNX's operators": CASES,
    "named cases of OpenVINO's operations": OPENVINO_CASES,
    "random cases of ONNX's operators (seed 0)": tuple(random_cases(0, 400)),
}
AGAIN = "docs/conformance.md is of other cases; make it again with the command at its beginning"


def section(kind: str) -> str:
    title = f"## {len(SUITES[kind])} {kind}\n"
    assert title in PAGE, AGAIN
    return re.split("^## ", PAGE.partition(title)[2], maxsplit=1, flags=re.MULTILINE)[0]


def rows(kind: str) -> list[list[str]]:
    return [line[2:-2].split(" | ") for line in section(kind).splitlines() if line.startswith("| ")]


def test_it_begins_with_the_command_and_versions() -> None:
    head = PAGE.partition("\n## ")[0]
    (line,) = re.findall(r"```bash\n(.*)\n```", head)
    words = shlex.split(line)
    assert words[:4] == ["python", "-m", "pyrnnx", "conformance"]
    runtimes = [word for word in words[4:] if word in RUNTIMES]
    assert [*runtimes, "--cases", "named", "--cases", "random:0:400", "--markdown", "docs/conformance.md"] == words[4:]
    for name in (*(RUNTIMES[name].name for name in runtimes), "pyrnnx", "Python", "NumPy"):
        assert re.search(rf"{re.escape(escaped(name))} v?\d", head)


@few_rows("kind", [*SUITES][:2], [*SUITES][2:])
def test_its_tables_have_the_features_of_the_cases(kind: str) -> None:
    header, _, *table = rows(kind)
    cases = SUITES[kind]
    used = [one for one in FEATURES if any(one in case.features for case in cases)]
    assert [row[0] for row in table] == [f"{escaped(one)}: {escaped(FEATURES[one].meaning)}" for one in used], AGAIN
    place = header.index("pyrnnx")
    for feature, row in zip(used, table, strict=True):
        assert row[place] == str(sum(feature in case.features for case in cases)), AGAIN
        for cell in (cell for cell in row[1:] if not cell.startswith("- ")):
            counts = [int(number) for number in re.findall(r"\d+(?= |$|,)", cell)]
            assert sum(counts) == sum(feature in case.features for case in cases)


def test_its_cases_are_those_that_there_are() -> None:
    cases = {
        escaped(case.name): case for case in (*NAMED.values(), *SUITES["random cases of ONNX's operators (seed 0)"])
    }
    shown = re.findall(r'^<a id="([^"]+)"></a>\*\*(.+?)\*\*: (.+)\.\n(.*)$', PAGE, re.MULTILINE)
    assert len(shown) > 20
    for _, name, description, told in shown:
        assert name in cases, AGAIN
        case = cases[name]
        if case.feature:
            assert description == escaped(describe(case)), AGAIN
            assert told == f"{escaped(case.tells)} Source: {escaped(case.source)}.", AGAIN
    assert len({anchor for anchor, *_ in shown}) == len(shown)
    assert {anchor for anchor, *_ in shown} == set(re.findall(r"\]\(#([^)]+)\)", PAGE))
