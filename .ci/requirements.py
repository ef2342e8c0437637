"""Command that prints the requirements of extras, without pyrnnx itself: `requirements.py dev torch`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomllib

OWN = re.compile(r"pyrnnx\[([a-z,]+)\]")


def requirements(project: dict[str, Any], extra: str) -> Iterator[str]:
    for requirement in project["optional-dependencies"][extra]:
        if match := OWN.fullmatch(requirement):
            for name in match[1].split(","):
                yield from requirements(project, name)
        else:
            yield requirement


def main(extras: list[str]) -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    names = [*project["dependencies"], *(name for extra in extras for name in requirements(project, extra))]
    print(*dict.fromkeys(names), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
