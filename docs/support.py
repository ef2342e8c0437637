"""Tables of what is supported, from the tables of the code; docs/support.md includes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyrnnx import ACTIVATIONS
from pyrnnx.frontends.onnx import SCHEMAS, Schema
from pyrnnx.frontends.openvino import OPERATIONS
from pyrnnx.frontends.openvino.translation import operations as _read  # noqa: F401  # fills the table
from pyrnnx.frontends.openvino.translation.registry import TRANSLATORS
from pyrnnx.frontends.openvino.writing import operations as _written  # noqa: F401
from pyrnnx.frontends.openvino.writing.registry import WRITERS

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


def write(folder: Path) -> None:
    """Write each table to a file, which a page includes."""
    texts = {f"matrix_{operator.lower()}": support_matrix([operator]) for operator in OPERATORS}
    texts["openvino"] = openvino_table()
    texts["activations"] = f"{', '.join(ACTIVATIONS)}."
    texts["translated"] = f"{len(TRANSLATORS)} operations: {_listed(TRANSLATORS)}."
    texts["written"] = f"{len(WRITERS)} operators: {_listed(WRITERS)}."
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
