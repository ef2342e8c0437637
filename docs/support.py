"""What is supported, as tables made from those of the code: docs/support.md includes them."""

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
FUNCTIONS = {"Sequence": "_sequence", "Cell": "_cell"}  # the end of a type, the end of the function's name


def _schemas(operators: Iterable[str]) -> list[Schema]:
    return [one for operator in operators for one in SCHEMAS[operator].values()]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], first: str = "") -> str:
    lines = [f"| {first + ' ' if first else ''}| " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def support_matrix(operators: Sequence[str]) -> str:
    """Attributes and dtypes of each opset's operators."""
    columns = _schemas(operators)
    attributes = sorted({name for one in columns for name in one.attributes})
    dtypes = sorted({name for one in columns for name in one.dtypes})
    rows = (
        [name, *("yes" if name in (*one.attributes, *one.dtypes) else "" for one in columns)]
        for name in (*attributes, *dtypes)
    )
    return _table([str(one) for one in columns], rows)


def openvino_table() -> str:
    """OpenVINO's operations: the function of each, its inputs in port order, and what only some have."""
    rows = []
    for row in OPERATIONS.values():
        kind = next(one for one in FUNCTIONS if row.type.endswith(one))
        required = len(row.inputs) - row.optional
        inputs = [name if k < required else f"({name})" for k, name in enumerate(row.input_names)]
        special = [name for name in row.attributes if name in ("linear_before_reset", "input_forget")]
        cells = (f"`{row.cell.lower()}{FUNCTIONS[kind]}`", ", ".join(inputs), ", ".join(row.output_names))
        rows.append([row.versioned_name, *cells, ", ".join(special)])
    return _table(["function", "inputs", "outputs", "has also"], rows, "operation")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def write(folder: Path) -> None:
    """One file for each table, for pages to include."""
    texts = {f"matrix_{operator.lower()}": support_matrix([operator]) for operator in OPERATORS}
    texts["openvino"] = openvino_table()
    texts["activations"] = f"{', '.join(ACTIVATIONS)}."
    texts["translated"] = f"{len(TRANSLATORS)} operations: {_listed(TRANSLATORS)}."
    texts["written"] = f"{len(WRITERS)} operators: {_listed(WRITERS)}."
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
