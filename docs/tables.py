"""Tables in the pages, from the tables of the code and of benchmarks/README.md.

`python docs/tables.py` writes them into the pages, between `<!-- table: NAME -->` and `<!-- end of table -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pyrnnx import ACTIVATIONS
from pyrnnx.frontends.onnx import SCHEMAS, Schema
from pyrnnx.frontends.openvino import OPERATIONS
from pyrnnx.frontends.openvino.translation import operations as _read  # noqa: F401  # fills the table
from pyrnnx.frontends.openvino.translation.registry import TRANSLATORS
from pyrnnx.frontends.openvino.writing import operations as _written  # noqa: F401
from pyrnnx.frontends.openvino.writing.registry import WRITERS

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


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
