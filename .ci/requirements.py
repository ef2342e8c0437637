"""Command that prints the requirements of extras, without pyrnnx itself: `requirements.py [--lowest] dev torch`."""

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


def main(extras: list[str], *, lowest: bool = False) -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    names = [*project["dependencies"], *(name for extra in extras for name in requirements(project, extra))]
    text = "\n".join(dict.fromkeys(names))
    print(re.sub(r"^(\w+)>=", r"\1==", text, flags=re.MULTILINE) if lowest else text)


if __name__ == "__main__":
    main([extra for extra in sys.argv[1:] if extra != "--lowest"], lowest="--lowest" in sys.argv)
