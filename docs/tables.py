"""Tables in the pages, from the tables of the code, of benchmarks/README.md and of a report of conformance.

`python docs/tables.py` writes them into the pages, between `<!-- table: NAME -->` and `<!-- end of table -->`.
`python docs/tables.py report.json` writes docs/conformance.md from what `pyrnnx conformance --json` wrote.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyrnnx import ACTIVATIONS
from pyrnnx.errors import printable
from pyrnnx.frontends.onnx import SCHEMAS, Schema
from pyrnnx.frontends.openvino import OPERATIONS
from pyrnnx.frontends.openvino.translation import operations as _read  # noqa: F401  # fills the table
from pyrnnx.frontends.openvino.translation.context import TRANSLATORS
from pyrnnx.frontends.openvino.writing import operations as _written  # noqa: F401
from pyrnnx.frontends.openvino.writing.context import WRITERS
from pyrnnx.testing.cases import FEATURES

Row = Mapping[str, str]

ROOT = Path(__file__).parents[1]
OPERATORS = ("RNN", "GRU", "LSTM")
FUNCTIONS = {"Sequence": "_sequence", "Cell": "_cell"}  # {suffix of a type: suffix of the function's name}


def _schemas(operators: Iterable[str]) -> list[Schema]:
    return [schema for operator in operators for schema in SCHEMAS[operator].values()]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], first: str = "") -> str:
    lines = [f"| {first + ' ' if first else ''}| " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def support_matrix(operators: Sequence[str]) -> str:
    """Return a table of the attributes and dtypes of each opset's operators."""
    columns = _schemas(operators)
    attributes = sorted({name for schema in columns for name in schema.attributes})
    dtypes = sorted({name for schema in columns for name in schema.dtypes})
    rows = (
        [name, *("yes" if name in (*schema.attributes, *schema.dtypes) else "" for schema in columns)]
        for name in (*attributes, *dtypes)
    )
    return _table([str(schema) for schema in columns], rows)


def openvino_table() -> str:
    """Return a table of OpenVINO's operations: function, inputs in port order, outputs, special attributes."""
    rows = []
    for row in OPERATIONS.values():
        kind = next(suffix for suffix in FUNCTIONS if row.type.endswith(suffix))
        required = len(row.inputs) - row.optional
        inputs = [name if k < required else f"({name})" for k, name in enumerate(row.input_names)]
        special = [name for name in row.attributes if name in ("linear_before_reset", "input_forget")]
        cells = (f"`{row.cell.lower()}{FUNCTIONS[kind]}`", ", ".join(inputs), ", ".join(row.output_names))
        rows.append([row.versioned_name, *cells, ", ".join(special)])
    return _table(["function", "inputs", "outputs", "has also"], rows, "operation")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def read_tables(path: Path) -> dict[str, list[list[Row]]]:
    """Return {heading: tables} of a Markdown file; a table is a list of rows {column: cell}."""
    result: dict[str, list[list[Row]]] = {}
    heading, columns = "", None
    table: list[Row] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            columns = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if columns is None:
            # A repeated name belongs to the column before it: the second "lowest" of figures.
            named = [name if name not in cells[:k] else f"{name}, {cells[k - 1]}" for k, name in enumerate(cells)]
            columns, table = named, []
            result.setdefault(heading, []).append(table)
        elif not set(cells[0]) <= set("-: "):
            table.append(dict(zip(columns, cells, strict=True)))
    return result


def markdown(rows: Sequence[Row]) -> str:
    """Return a table as Markdown, with numbers aligned to the right."""
    columns = list(rows[0])
    align = ["---", *("---:" for _ in columns[1:])]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (columns, align, *(row.values() for row in rows)))


def _recorded(heading: str) -> str:
    return markdown(read_tables(ROOT / "benchmarks" / "README.md")[heading][0])


TABLES: dict[str, Callable[[], str]] = {
    "RNN": lambda: support_matrix(["RNN"]),
    "GRU": lambda: support_matrix(["GRU"]),
    "LSTM": lambda: support_matrix(["LSTM"]),
    "activations": lambda: f"{', '.join(ACTIVATIONS)}.",
    "operations": openvino_table,
    "translated": lambda: f"{len(TRANSLATORS)} operations: {_listed(TRANSLATORS)}.",
    "written": lambda: f"{len(WRITERS)} operators: {_listed(WRITERS)}.",
    "ratios": lambda: _recorded("Figures"),
    "models": lambda: _recorded("Whole models"),
}
PAGES = (ROOT / "docs" / "support.md", ROOT / "docs" / "performance.md")


def with_tables(text: str) -> str:
    """Return a page with its tables as they are now."""

    def block(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n\n{TABLES[match[1]]().strip()}\n\n<!-- end of table -->"

    return re.sub(r"<!-- table: (\w+) -->.*?<!-- end of table -->", block, text, flags=re.DOTALL)


# {status: word in the page}; a number without a word counts the right results.
WORDS = {
    "wrong": "**wrong**",
    "refused": "refused",
    "crashed": "**crashed**",
    "timed out": "**timed out**",
    "not expressible": "not expr.",
}
UNSTEADY = ("ONNX Runtime", "OpenVINO")  # they read uninitialized memory
CONFORMANCE = """\
# Conformance of recurrent operators

This page counts the cases that each runtime computes correctly. A case is one call of a recurrent operator of ONNX or
OpenVINO: its attributes, optional inputs, sizes, dtype and opset. A named case tests one feature; random cases combine
them. `pyrnnx.testing.cases` has all of them, and makes their arrays. Each runtime, pyrnnx too, is called through its
public functions.

- **right**: within the tolerance of the dtype (`pyrnnx.testing.numbers`) from the float64 implementation
  `pyrnnx.reference`. In the tables, a number without a word counts these.
- **wrong**: no error, but a result beyond the tolerance.
- **refused**: an error, which is no failure. `--json` writes the reasons.
- **crashed**, **timed out**: no answer.
- **not expr.**: the runtime cannot express the case, which is no failure either.

ONNX Runtime and OpenVINO read uninitialized memory if T or I is 0: their counts differ by a few cases from run to run.
`help(pyrnnx.testing.runtimes)` says how to test a program or function of your own.

These commands write the page:

```bash
python -m pyrnnx conformance pyrnnx onnxruntime openvino onnx torch --cases named --cases random:0:400 \\
    --json report.json
python docs/tables.py report.json
```

Versions: {versions}.

{suites}
"""


def conformance_page(report: Mapping[str, Any]) -> str:
    """Return the page of a report: counts by runtime and feature, then what fails with the first case of each kind."""
    versions = report["environment"] | report["runtimes"]
    return CONFORMANCE.format(
        versions=_escaped(", ".join(f"{name} {version}" for name, version in versions.items())),
        suites="\n\n".join(part for suite in report["suites"] for part in _suite(suite, report["runtimes"])),
    )


def _suite(suite: Mapping[str, Any], versions: Mapping[str, str]) -> Iterable[str]:
    yield f"## {len(suite['verdicts'])} {_escaped(suite['cases'])}"
    able = [name for name, counts in suite["counts"].items() if counts["not expressible"] < len(suite["verdicts"])]
    lines = []
    for name in able:
        counts = {"right": suite["counts"][name]["right"], **suite["counts"][name]}
        parts = ", ".join(f"{count} {status}" for status, count in counts.items() if count or status == "right")
        lines.append(f"- {_escaped(f'{name} {versions[name]}')}: {'about ' * (name in UNSTEADY)}{parts}")
    if unable := [f"{name} {versions[name]}" for name in versions if name not in able]:
        lines.append(f"- not expressible in {_escaped(', '.join(unable))}")
    yield "\n".join(lines)
    if suite["cases"].startswith("random"):
        return
    rows = (
        [f"{_escaped(feature)}: {_escaped(FEATURES[feature])}", *(_counts(by_name[name]) for name in able)]
        for feature, by_name in suite["features"].items()
    )
    yield _table(list(map(_escaped, able)), rows, "feature")
    yield (
        "A case counts for the feature that it tests, even if another feature makes it fail. The lists name the first "
        "case of each operator: simple cases come first, and often explain the others."
    )
    for name in able:
        if faults := suite["faults"][name]:
            yield f"### {_escaped(f'{name} {versions[name]}')}"
            yield "\n".join(_fault_lines(name, faults, {case["name"]: case for case in suite["verdicts"]}))


def _counts(counts: Mapping[str, int]) -> str:
    parts = [str(counts["right"])] if counts["right"] else []
    return ", ".join(parts + [f"{counts[status]} {word}" for status, word in WORDS.items() if counts[status]]) or "-"


def _fault_lines(
    runtime: str, faults: Iterable[Sequence[str]], cases: Mapping[str, Mapping[str, Any]]
) -> Iterable[str]:
    """Yield a line for each status and feature, with the first case of each operator."""
    groups: dict[tuple[str, str], list[Sequence[str]]] = {}
    for fault in faults:
        case = cases[fault[0]]
        groups.setdefault((case["verdicts"][runtime]["status"], case["feature"]), []).append(fault)
    for (status, feature), group in groups.items():
        names = ", ".join(f"`{printable(fault[0])}`" for fault in group)
        count = sum(map(len, group))
        seen = f" ({count} cases)" if count > len(group) else ""
        reasons = dict.fromkeys(_escaped(cases[fault[0]].get("tells", "")) for fault in group)
        yield f"- {status}, {_escaped(feature)}: {names}{seen}. {' '.join(reasons)}".rstrip()


def _escaped(text: str) -> str:
    """Return text in one line that Markdown shows unchanged, also in a table."""
    return re.sub(r"([\\`*_{}\[\]<>|#])", r"\\\1", printable(text))


if __name__ == "__main__":
    for path in sys.argv[1:]:
        made = conformance_page(json.loads(Path(path).read_text(encoding="utf-8")))
        (ROOT / "docs" / "conformance.md").write_text(made, encoding="utf-8")
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
