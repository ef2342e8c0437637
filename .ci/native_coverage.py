"""Line coverage of C and Cython from gcc's counters, printed like coverage.py's: `native_coverage.py ROOT BUILD`.

ROOT is the folder of the compiled sources, BUILD the folder of the .gcda files and of Cython's C. A line is covered if
any code generated from it ran, in any file that includes it.
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

# Cython marks its C with the source line: `/* "pyrnnx/_kernels/plan.pyx":33`.
MARK = re.compile(r'\s*/\* "(pyrnnx/[^"]+)":(\d+)$')
Line = tuple[str, int]


def source_lines(generated: Path) -> Mapping[int, Line]:
    """Return the Cython line of each line of a generated C file, without Cython's own code."""
    lines, line = {}, None
    for number, text in enumerate(generated.read_text().splitlines(), 1):
        if match := MARK.match(text):
            line = match[1], int(match[2])
        elif text.startswith("}"):  # end of a function; Cython's own code may follow
            line = None
        elif line is not None:
            lines[number] = line
    return lines


def count_lines(root: Path, build: Path) -> Iterator[tuple[Line, int]]:
    """Yield source lines with counts of their code; a line can occur several times."""
    for counters in sorted(build.rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", str(counters)]
        unit = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for source in unit["files"]:
            path = Path(unit["current_working_directory"], source["file"])
            counts: dict[int, int] = defaultdict(int)
            for line in source["lines"]:
                counts[line["line_number"]] += line["count"]
            if path.is_relative_to(build):
                lines = source_lines(path)
                yield from ((lines[number], count) for number, count in counts.items() if number in lines)
            elif path.is_relative_to(root / "pyrnnx"):
                yield from (((str(path.relative_to(root)), number), count) for number, count in counts.items())


def ranges(numbers: Iterable[int]) -> str:
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def row(name: str, lines: int, missed: int) -> str:
    return f"{name:48} {lines:6} {missed:6} {1 - missed / max(lines, 1):6.0%}"


def main(root: Path, build: Path) -> None:
    files: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for (name, number), count in count_lines(root, build):
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
