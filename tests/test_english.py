"""House style of docstrings, comments and names that ruff has no rule for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyrnnx.frontends

pytestmark = pytest.mark.slow

# A docstring or comment stands alone, so it begins with none of these words.
FIRST_WORDS = {"As", "None", "Of", "That", "What", "Where", "Whether", "Who", "With"}
# Names that do not say what they name.
NAMES = {"found", "one", "told"}
PRODUCT = Path(pyrnnx.__file__).parent, Path(pyrnnx.frontends.__path__[0])


def nodes(*folders: Path) -> Iterator[tuple[str, ast.AST]]:
    """Yield the nodes of all files, one file after the other: to keep them all takes seconds of garbage collection."""
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            yield path.name, node


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    summaries = [
        (path, summary.splitlines()[0])
        for path, node in nodes(*PRODUCT, Path(__file__).parent)
        if isinstance(node, documented) and (summary := ast.get_docstring(node))
    ]
    assert len(summaries) > 2000
    assert [(path, summary) for path, summary in summaries if summary.split()[0] in FIRST_WORDS] == []


def test_comments_are_sentences_or_begin_with_a_noun() -> None:
    first = re.compile(rf"\s*# ({'|'.join(sorted(FIRST_WORDS))})\b")
    lines = [
        (path.name, line)
        for folder in (*PRODUCT, Path(__file__).parent)
        for path in folder.rglob("*.py*")
        if path.suffix in (".py", ".pyx", ".pxd")
        for line in path.read_text("utf-8").splitlines()
    ]
    assert len(lines) > 50_000
    assert [(name, line) for name, line in lines if first.match(line)] == []


def test_variables_are_named_after_things() -> None:
    names: list[tuple[str, str]] = []
    fields: set[ast.AST] = set()  # of public data classes; each is visited before its name
    for path, node in nodes(*PRODUCT):
        if isinstance(node, ast.AnnAssign):
            fields.add(node.target)
        elif isinstance(node, ast.arg):
            names.append((path, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
            names.append((path, node.id))
    assert len(names) > 5000
    assert [(path, name) for path, name in names if name in NAMES] == []
