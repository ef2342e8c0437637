"""House style of docstrings, comments and names that ruff has no rule for; `.ci/run lint` runs it without pyrnnx."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# A docstring or comment stands alone, so it begins with none of these words.
FIRST_WORDS = {"As", "None", "Of", "That", "What", "Where", "Whether", "Who", "With"}
# Names that do not say what they name.
NAMES = {"found", "one", "told"}
TESTS = Path(__file__).parent
PRODUCT = TESTS.with_name("pyrnnx"), TESTS.with_name("frontends")


def files(*folders: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(path for folder in folders for path in folder.rglob("*.py*")):
        if path.suffix in (".py", ".pyx", ".pxd"):
            yield path.name, path.read_text("utf-8")


def summaries(node: ast.AST) -> Iterator[str]:
    """Yield the first lines of docstrings; definitions are in bodies of statements only, which makes that fast."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (summary := ast.get_docstring(node)):
        yield summary.splitlines()[0]
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield from summaries(child)


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    texts = [(path, text) for path, text in files(*PRODUCT, TESTS) if path.endswith(".py")]
    lines = [(path, summary) for path, text in texts for summary in summaries(ast.parse(text))]
    assert len(lines) > 2000
    assert [(path, summary) for path, summary in lines if summary.split()[0] in FIRST_WORDS] == []


def test_comments_are_sentences_or_begin_with_a_noun() -> None:
    first = re.compile(rf"\s*# ({'|'.join(sorted(FIRST_WORDS))})\b")
    lines = [(path, line) for path, text in files(*PRODUCT, TESTS) for line in text.splitlines()]
    assert len(lines) > 50_000
    assert [(path, line) for path, line in lines if first.match(line)] == []


def test_variables_are_named_after_things() -> None:
    word = re.compile(rf"\b({'|'.join(sorted(NAMES))})\b")
    texts = [(path, text) for path, text in files(*PRODUCT) if path.endswith(".py")]
    assert len(texts) > 200
    names: list[tuple[str, str]] = []
    fields: set[ast.AST] = set()  # of public data classes; each is visited before its name
    for path, node in ((path, node) for path, text in texts if word.search(text) for node in ast.walk(ast.parse(text))):
        if isinstance(node, ast.AnnAssign):
            fields.add(node.target)
        elif isinstance(node, ast.arg):
            names.append((path, node.arg))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:
            names.append((path, node.id))
    assert [(path, name) for path, name in names if name in NAMES] == []
