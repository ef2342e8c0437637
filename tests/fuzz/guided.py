"""Coverage-guided fuzzing: libFuzzer, by the package atheris, chooses which files are altered again.

Alterations, uses, limits and findings are those of the other cases: `mutations`, `contract` and `pool`. libFuzzer takes
one array of bytes, so a file is packed with the number of the seed that it was made of.
"""

from __future__ import annotations

import gc
import hashlib
import mmap
import multiprocessing
import random
import sys
import tempfile
import time
import types
from collections.abc import Callable
from importlib import import_module
from multiprocessing.connection import Connection, wait
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from fuzz.contract import Finding, check
from fuzz.pool import EXAMPLES, SLOW, Limits, Report, Task, begin, last_words, limit, used
from fuzz.small_files import Seed

from pyrnnx.frontends import keras, onnx, openvino

LARGEST = 2**17  # bytes of a packed file
BATCH = 100_000  # cases of one process; the next reads the corpus again
PROGRESS = 60.0  # seconds between lines that tell how far it is
# Modules that read files: the package, and readers in Python of other packages.
READERS = (
    "pyrnnx",
    "wave",
    "numpy.lib._format_impl",
    "numpy.lib._npyio_impl",
    "torch._weights_only_unpickler",
    "zipfile",
)


def packed(index: int, file: Seed) -> bytes:
    return index.to_bytes(2, "little") + len(file.data).to_bytes(4, "little") + file.data + file.weights


def unpacked(data: bytes, seeds: list[Seed]) -> tuple[int, Seed, Seed]:
    """Return the number of a seed, the file that was made of it, and the seed."""
    index = int.from_bytes(data[:2], "little") % len(seeds)
    end = 6 + int.from_bytes(data[2:6], "little")
    return index, seeds[index]._replace(data=data[6:end], weights=data[end:]), seeds[index]


def run_file(task: Task, path: Path) -> tuple[list[str], Finding | None]:
    """Run a packed file, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        return _run(task, _seeds(task), path.read_bytes(), Path(folder))


def _seeds(task: Task) -> list[Seed]:
    return [seed for seeds in task.seeds.values() for seed in seeds]


def _run(task: Task, seeds: list[Seed], data: bytes, folder: Path) -> tuple[list[str], Finding | None]:
    _, file, original = unpacked(data, seeds)
    rng = random.Random(hashlib.sha256(data).digest())  # the same file is used in the same way
    return check(task.kind, file, original, folder, rng)


def guided(
    task: Task,
    count: int | None,
    seconds: float,
    jobs: int,
    limits: Limits,
    corpus: Path | None = None,
    findings: Path | None = None,
) -> Report:
    """Run so many cases (None: as many as the time allows) in processes that share a corpus.

    Parameters
    ----------
    corpus, findings : Path, optional
        Folders for files that reached new code, and for examples of each finding. A corpus there is used again.
    """
    report, start, before = Report(), time.monotonic(), used()
    left = count if count is not None else sys.maxsize
    _instrument()
    gc.freeze()  # what is there already is shared with the processes, as long as nothing touches it
    with tempfile.TemporaryDirectory() as root:
        corpus = corpus or Path(root) / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        for index, seed in enumerate(_seeds(task)):
            (corpus / f"seed{index}").write_bytes(packed(index, seed))
        shown = start
        workers = [_Worker(task, limits, Path(root) / str(k), corpus, task.seed + k) for k in range(jobs)]
        while report.cases < left and time.monotonic() < start + seconds:
            for connection in wait([worker.connection for worker in workers], timeout=0.5):
                worker = next(one for one in workers if one.connection is connection)
                passed, finding, data = worker.receive()
                if data or finding is not None:
                    report.add(report.cases, passed, finding)
                if finding is not None and findings is not None and finding.signature != SLOW:
                    _save(report, finding, data, findings)
            for worker in workers:
                worker.kill_if_silent()
            if time.monotonic() > shown + PROGRESS:
                shown = time.monotonic()
                print(f"{report.cases} cases, {len(list(corpus.iterdir()))} files in the corpus", flush=True)
        for worker in workers:
            worker.stop()
        print(f"files that reached new code: {len(list(corpus.glob('[!s]*')))}")
    report.seconds, report.cpu = time.monotonic() - start, used() - before
    return report


def _save(report: Report, finding: Finding, data: bytes, folder: Path) -> None:
    if len(report.findings[finding.signature]) <= EXAMPLES:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / hashlib.sha256(data).hexdigest()[:16]
        path.write_bytes(data)
        path.with_suffix(".txt").write_text(f"{finding.signature}\n{finding.details}")


def _instrument() -> None:
    """Count the branches of functions that read files; those imported later are counted too."""
    import atheris

    for front_end in (onnx, openvino, keras):  # else a case would wait until what it imports is instrumented
        for module in walk_packages(front_end.__path__, f"{front_end.__name__}."):
            import_module(module.name)
    own = [
        function
        for function in gc.get_objects()
        if isinstance(function, types.FunctionType) and _reads(function.__module__)
    ]
    for function in own:
        atheris.instrument_func(function)
    atheris.instrument_imports(include=[*READERS]).__enter__()


def _reads(module: Any) -> bool:
    return isinstance(module, str) and any(module == name or module.startswith(f"{name}.") for name in READERS)


class _Worker:
    """A process that runs libFuzzer, and the next one after it."""

    def __init__(self, task: Task, limits: Limits, folder: Path, corpus: Path, seed: int) -> None:
        self.task, self.limits, self.folder, self.corpus, self.seed = task, limits, folder, corpus, seed
        folder.mkdir()
        self.current = mmap.mmap(-1, LARGEST + 4)  # the case that runs
        self._start()

    def _start(self) -> None:
        self.seed += 1000
        context = multiprocessing.get_context("fork")
        self.connection, theirs = context.Pipe(duplex=False)
        arguments = (theirs, self.task, self.folder, self.limits, self.corpus, self.seed, self.current)
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.since = time.monotonic()
        self.process.start()
        theirs.close()

    def receive(self) -> tuple[list[str], Finding | None, bytes]:
        """Return the outcome of a case, or of the end of the process."""
        try:
            passed, finding = self.connection.recv()
        except EOFError:
            self.process.join()
            ended = self.process.exitcode == 0  # after its last case
            passed, finding = [], None if ended else last_words(self.process, self.folder, self.limits)
            if not ended:  # else each process would end when it reads this file again
                (self.corpus / hashlib.sha1(self._case()).hexdigest()).unlink(missing_ok=True)
            self._start()
            if ended:
                return [], None, b""
        self.since = time.monotonic()
        return passed, finding, self._case()

    def _case(self) -> bytes:
        return bytes(self.current[4 : 4 + int.from_bytes(self.current[:4], "little")])

    def kill_if_silent(self) -> None:
        if time.monotonic() - self.since > 10 * self.limits.seconds:
            self.process.kill()  # its own timers did not get through

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _work(
    connection: Connection, task: Task, folder: Path, limits: Limits, corpus: Path, seed: int, current: mmap.mmap
) -> None:
    """Run libFuzzer, and report each case."""
    import atheris

    seeds = _seeds(task)
    limit(folder, limits)

    def one(data: bytes) -> None:
        current[: 4 + len(data)] = len(data).to_bytes(4, "little") + data
        begin(limits)
        passed, finding = _run(task, seeds, data, folder)
        begin(Limits(0))  # no limit of time while files are altered
        connection.send((passed, finding))

    options: dict[str, Any] = {
        "runs": BATCH,
        "seed": seed,
        "max_len": LARGEST,
        "reload": 1,
        "verbosity": 0,
        "timeout": 0,
    }
    options |= {"rss_limit_mb": 0, "malloc_limit_mb": 0, "detect_leaks": 0, "len_control": 0}
    options["artifact_prefix"] = f"{folder}/"
    options |= {f"handle_{name}": 0 for name in ("segv", "abrt", "bus", "fpe", "ill", "int", "term", "usr1", "usr2")}
    arguments = [sys.argv[0], *(f"-{name}={value}" for name, value in options.items()), str(corpus)]
    atheris.Setup(arguments, one, custom_mutator=_mutator(task, seeds))
    atheris.Fuzz()


def _mutator(task: Task, seeds: list[Seed]) -> Callable[[bytes, int, int], bytes]:
    def mutate(data: bytes, most: int, number: int) -> bytes:
        rng = random.Random(number)
        index, file, original = unpacked(data, seeds)
        try:
            altered = packed(index, task.broken(file, rng))
        except Exception:  # a broken file may no longer have the parts that an alteration knows
            altered = packed(index, task.broken(original, rng))
        return altered if len(altered) <= most else data

    return mutate
