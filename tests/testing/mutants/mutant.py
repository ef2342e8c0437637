"""The oracle with one mistake: a mutant is one edit of the oracle's source."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pyrnnx import reference

# The files of the oracle.
CELLS, ACTIVATIONS, ARGUMENTS, OPERATORS = "cells.py", "activations.py", "arguments.py", "operators.py"


@dataclass(frozen=True)
class Mutant:
    """`does` says what is wrong when the one `old` in the file is `new`; `more` is put at the file's end."""

    does: str
    file: str
    old: str
    new: str
    killed_by: tuple[str, ...]
    more: str = ""

    def load(self, folder: Path) -> ModuleType:
        """The mutated oracle, a package of its own in a folder that is not there yet."""
        copy_oracle(folder)
        text = (folder / self.file).read_text()
        assert text.count(self.old) == 1, f"{self.file} has {text.count(self.old)} times {self.old!r}"
        (folder / self.file).write_text(text.replace(self.old, self.new) + self.more)
        for compiled in (folder / "__pycache__").glob(f"{Path(self.file).stem}.*"):
            compiled.unlink()
        return load_package(folder)


def copy_oracle(folder: Path) -> None:
    """Copy the oracle with its bytecode, without files that another process is writing."""
    shutil.copytree(Path(reference.__file__).parent, folder, ignore=shutil.ignore_patterns("*.pyc.*"))


def load_package(folder: Path, name: str = "mutated_oracle") -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(package)
    finally:  # the next one has the same name
        for loaded in [one for one in sys.modules if one.partition(".")[0] == name]:
            del sys.modules[loaded]
    return package


def table(text: str) -> tuple[Mutant, ...]:
    """Return the mutants of a text: what each does [its file], then indented "old => new" and the cases that kill it.

    A line that ends in "=>" goes on in the next one; \\n stands for the end of a line.
    """
    mutants = []
    for block in re.split(r"^(?=\S)", text.strip("\n"), flags=re.MULTILINE)[1:]:
        head, edit, *killers = re.sub(r"=>\n +", "=> ", block).strip("\n").split("\n")
        old, new = edit[4:].replace("\\n", "\n").split(" => ")
        does, _, file = head.removesuffix("]").rpartition(" [")
        mutants.append(Mutant(does, file, old, new, tuple(" ".join(killers).replace(",", "").split())))
    return tuple(mutants)
