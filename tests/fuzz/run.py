"""Altered files by the thousand: `python tests/fuzz/run.py {onnx,ir} --count 10000`.

A file is read, listed, called and exported, with a result or a PyrnnxError each time. Any other outcome is a finding,
which `--case` writes, and runs again in this process. The exit status is 1 if there are findings.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    tests = Path(__file__).parents[1]  # the folder of the package `fuzz`
    sys.path[:1] = [str(tests), *map(str, sorted(tests.glob("frontends/*/builders")))]

from fuzz.pool import Task, fuzz
from fuzz.seeds import SOURCES, collect_elsewhere


def main() -> int:
    """Return 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(SOURCES))
    parser.add_argument("--count", type=int, help="number of cases; default: as many as --seconds allows")
    parser.add_argument("--seconds", type=float, default=1e9, help="time after which the run stops")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sources", nargs="*", default=[], help="sources of the seeds; default: all")
    parser.add_argument("--case", type=int, help="write the file of this case, and run it in this process")
    options = parser.parse_args()
    task = Task(options.kind, collect_elsewhere(options.kind, options.sources), options.seed)
    if options.case is not None:
        return run_one(task, options.case)
    report = fuzz(task, options.count, seconds=options.seconds)
    print(report)
    return 1 if report.findings else 0


def run_one(task: Task, number: int) -> int:
    file, _ = task.file(number)
    path = Path(f"{task.kind}_{task.seed}_{number}.{'xml' if task.kind == 'ir' else 'onnx'}")
    path.write_bytes(file.data)
    if file.weights:
        path.with_suffix(".bin").write_bytes(file.weights)
    with tempfile.TemporaryDirectory() as work:
        passed, finding = task.run(number, Path(work))
    print(f"{path}, made of {file.name!r}; steps with a result: {', '.join(passed) or 'none'}")
    if finding is not None:
        print(f"{finding.signature}\n{finding.details}")
    return 1 if finding is not None else 0


if __name__ == "__main__":
    sys.exit(main())
