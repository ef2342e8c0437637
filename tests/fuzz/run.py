"""Altered files, or random graphs, by the thousand: `python tests/fuzz/run.py {onnx,ir,graphs} --count 10000`.

A file is read, listed, called and exported, with a result or a PyrnnxError each time. A graph is called several times
beside ONNX Runtime, with the same results. Anything else is a finding, which `--case` runs again, here, and `--save`
keeps. The exit status says whether there were any.

`--guided` alters files that reached new code again (libFuzzer, by the package atheris) instead of files by number.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    tests = Path(__file__).parents[1]  # where this is the package `fuzz`
    sys.path[:1] = [str(tests), *map(str, sorted(tests.glob("frontends/*/builders")))]

from fuzz import doors
from fuzz.contract import Finding
from fuzz.differential import GRAPHS, RandomGraphs
from fuzz.pool import EXAMPLES, Cases, Limits, Report, Task, fuzz
from fuzz.seeds import SOURCES, collect_elsewhere


def main(arguments: list[str] | None = None) -> int:
    """1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*sorted(SOURCES), GRAPHS])
    parser.add_argument("--count", type=int, help="number of cases; default: as many as --seconds allows")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit", type=float, default=Limits().seconds, help="seconds that one case may take")
    parser.add_argument("--sources", nargs="*", default=[], help="of the seeds; default: all")
    parser.add_argument("--save", type=Path, metavar="DIR", help="keep examples of what is found there")
    parser.add_argument("--case", type=int, help="run this one only, in this process")
    parser.add_argument("--guided", action="store_true", help="choose files by the code that they reach")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="with --guided: keep files that reached new code")
    parser.add_argument("--file", type=Path, help="run this file of --guided --save only, in this process")
    options = parser.parse_args(arguments)
    doors.prepare(options.kind)
    task: Cases
    if options.kind == GRAPHS:
        task, made_of = RandomGraphs(options.seed), ""
    else:
        task = Task(options.kind, collect_elsewhere(options.kind, options.sources), options.seed)
        made_of = "; seeds: " + ", ".join(f"{len(seeds)} {source}" for source, seeds in task.seeds.items())
    print(f"{task.kind}, seed {task.seed}{made_of}", flush=True)
    if options.case is not None:
        return run_one(task, options.case, options.save)
    if options.guided or options.file:
        if not isinstance(task, Task):
            parser.error(f"--guided and --file need files; expected a kind other than {GRAPHS}")
        from fuzz.guided import guided, run_file

        if options.file is not None:
            return show(*run_file(task, options.file))
        kept = (options.corpus, options.save)
        report = guided(task, options.count, options.seconds, options.jobs, Limits(options.limit), *kept)
        print(report)
        return 1 if report.findings else 0
    report = fuzz(task, options.count, seconds=options.seconds, jobs=options.jobs, limits=Limits(options.limit))
    print(report)
    if options.save is not None:
        save(task, report, options.save)
    return 1 if report.findings else 0


def run_one(task: Cases, number: int, folder: Path | None) -> int:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        print(task.save(number, folder))
    with tempfile.TemporaryDirectory() as work:
        passed, finding = task.run(number, Path(work))
    print(f"case {number}, {task.describe(number)}")
    return show(passed, finding)


def show(passed: list[str], finding: Finding | None) -> int:
    print(f"steps with a result: {', '.join(passed) or 'none'}")
    if finding is not None:
        print(f"{finding.signature}\n{finding.details}")
    return 1 if finding is not None else 0


def save(task: Cases, report: Report, folder: Path) -> None:
    """Examples of every finding, and beside the first of them what was said."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, numbers in report.findings.items():
        for number in sorted(numbers)[:EXAMPLES]:
            path = task.save(number, folder)
            path.with_suffix(".txt").write_text(f"{name}\n{report.details[name] if number == numbers[0] else ''}")


if __name__ == "__main__":
    sys.exit(main())
