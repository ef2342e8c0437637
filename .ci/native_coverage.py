"""What gcc counted of C and Cython, as coverage.py prints Python: `native_coverage.py ROOT BUILD`.

ROOT is where the sources lie and were compiled, BUILD where the .gcda files and the C that Cython made are. A line is
covered if any code that came of it ran, in whichever of the files that include it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

# Cython writes above its C which line that is of: `/* "pyrnnx/_kernels/plan.pyx":33`.
MARK = re.compile(r'\s*/\* "(pyrnnx/[^"]+)":(\d+)$')
Line = tuple[str, int]


def marked(generated: Path) -> Mapping[int, Line]:
    """The lines of C that Cython made, each with the line that it is of; code of Cython's own is left out."""
    found, line = {}, None
    for number, text in enumerate(generated.read_text().splitlines(), 1):
        if match := MARK.match(text):
            line = match[1], int(match[2])
        elif text.startswith("}"):  # a function ends, and what follows may be nobody's
            line = None
        elif line is not None:
            found[number] = line
    return found


def counted(root: Path, build: Path) -> Iterator[tuple[Line, int]]:
    """Lines of the sources, and how often some code of theirs ran."""
    for counters in sorted(build.rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", str(counters)]
        unit = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for source in unit["files"]:
            path = Path(unit["current_working_directory"], source["file"])
            lines = {one["line_number"]: 0 for one in source["lines"]}
            for one in source["lines"]:
                lines[one["line_number"]] += one["count"]
            if path.is_relative_to(build):
                places = marked(path)
                yield from ((places[number], count) for number, count in lines.items() if number in places)
            elif path.is_relative_to(root / "pyrnnx"):
                yield from (((str(path.relative_to(root)), number), count) for number, count in lines.items())


def ranges(numbers: Iterable[int]) -> str:
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def row(name: str, lines: int, missed: int) -> str:
    return f"{name:48} {lines:6} {missed:6} {1 - missed / max(lines, 1):6.0%}"


def main(root: Path, build: Path) -> None:
    files: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for (name, number), count in counted(root, build):
        files[name][number] += count
    total = missed = 0
    for name, counts in sorted(files.items()):
        missing = sorted(number for number, count in counts.items() if not count)
        total, missed = total + len(counts), missed + len(missing)
        if missing:
            print(row(name, len(counts), len(missing)), ranges(missing), sep="   ")
    print(row("TOTAL of C and Cython", total, missed))


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:]))
