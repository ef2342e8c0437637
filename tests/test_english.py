"""House style of docstrings and names that ruff has no rule for."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pyrnnx.frontends

# A docstring is a sentence that stands alone, so it begins with a verb or a noun.
FIRST_WORDS = {"As", "None", "Of", "That", "What", "Where", "Whether", "Who", "With"}
# Names that do not say what they name.
NAMES = {"found", "one", "told"}


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    return parsed(Path(pyrnnx.__file__).parent, Path(pyrnnx.frontends.__path__[0]))


def parsed(*folders: Path) -> list[tuple[str, ast.AST]]:
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    return [(path.name, node) for path in paths for node in ast.walk(ast.parse(path.read_text("utf-8")))]


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    summaries = [
        (path, summary.splitlines()[0])
        for path, node in [*nodes(), *parsed(Path(__file__).parent)]
        if isinstance(node, documented) and (summary := ast.get_docstring(node))
    ]
    assert len(summaries) > 2000
    assert [(path, summary) for path, summary in summaries if summary.split()[0] in FIRST_WORDS] == []


def test_variables_are_named_after_things() -> None:
    fields = {id(node.target) for _, node in nodes() if isinstance(node, ast.AnnAssign)}  # of public data classes
    names = [
        (path, node.id if isinstance(node, ast.Name) else node.arg)
        for path, node in nodes()
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields)
    ]
    assert len(names) > 5000
    assert [(path, name) for path, name in names if name in NAMES] == []
