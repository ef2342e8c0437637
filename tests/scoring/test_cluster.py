"""Real processes: killed, hanging and lost workers and schedulers.

Every run that ends has the parts of one process, byte for byte. Every wait is for a condition, as long as it takes on a
slow machine; what is never met ends after PATIENCE seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scoring_data import READERS, assert_equal, contents, expected, lstm, named, sequences, write_npy

import pyrnnx
from pyrnnx import PyrnnxError
from pyrnnx.scoring import run

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed"),
    # When processes end or connections break, distributed leaves sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
ITEMS = sequences(np.random.default_rng(0).integers(1, 40, 120).tolist())
PATIENCE = 180  # seconds until a condition counts as never met
MEMORY = 24_000  # some 20 parts
TESTS = str(Path(__file__).parents[1])
Score = Callable[..., Any]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_npy(tmp_path_factory.mktemp("faults") / "in", ITEMS)


@pytest.fixture(scope="module")
def alone(source: Path) -> dict[str, bytes]:
    """The parts that one process writes."""
    pyrnnx.score(lstm(), source, source.parent / "alone", workers=0, memory=MEMORY)
    return contents(source.parent / "alone" / "parts")


@pytest.fixture
def score(source: Path, alone: dict[str, bytes], tmp_path: Path) -> Score:
    """A run whose parts are those of one process."""

    def run(**options: Any) -> Any:
        report = pyrnnx.score(lstm(), source, tmp_path / "out", memory=MEMORY, **options)
        assert contents(tmp_path / "out" / "parts") == alone
        assert json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"]
        return report

    return run


def wait_until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


class Scheduler(NamedTuple):
    address: str
    processes: list[subprocess.Popen[str]]  # the scheduler first

    def signal(self, number: int, process: int = 0) -> None:
        self.processes[process].send_signal(number)


@contextlib.contextmanager
def scheduler(folder: Path, workers: int, port: int = 0, ttl: str = "5 minutes") -> Iterator[Scheduler]:
    """Start a scheduler and workers of Dask's command line; a worker that is silent for `ttl` counts as dead."""
    port = port or free_port()
    processes: list[subprocess.Popen[str]] = []
    env = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": ttl}
    with contextlib.ExitStack() as stack:

        def start(*arguments: str) -> None:
            file = stack.enter_context(open(folder / f"dask{len(processes)}.log", "w"))
            command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
            process = subprocess.Popen(command, stdout=file, stderr=file, text=True, env=env)
            stack.callback(process.wait, PATIENCE)
            stack.callback(process.kill)
            processes.append(process)

        start("scheduler", "--host", "127.0.0.1", "--port", str(port))
        wait_until(lambda: _answers(port))
        address = f"tcp://127.0.0.1:{port}"
        for _ in range(workers):
            start("worker", address, "--no-nanny", "--nthreads", "2", "--local-directory", str(folder))
        yield Scheduler(address, processes)


class Once:
    """Progress that calls a function when the first part is finished."""

    def __init__(self, do: Callable[[], object]) -> None:
        self.do, self.called = do, False

    def __call__(self, done: int, total: int) -> None:
        if done and not self.called:
            self.called = True
            self.do()


def lost(score: Score, words: str, do: Callable[[], object], **options: Any) -> None:
    """Score until the first part is finished, and then lose the scheduler."""
    with pytest.MonkeyPatch.context() as patch:

        def lose() -> None:
            patch.setattr("pyrnnx.scoring.cluster.PATIENCE", 6)  # after the workers have started
            do()

        progress = Once(lose)
        with pytest.raises(PyrnnxError) as error:
            score(progress=progress, **options)
    assert progress.called, error.value
    assert re.search(words, str(error.value))


@pytest.mark.e2e
def test_a_worker(score: Score) -> None:
    """Results are those of the layer."""
    assert score(workers=1).workers == 1


@pytest.mark.e2e
def test_an_error_in_a_worker(tmp_path: Path) -> None:
    """It is that of the item."""
    write_npy(tmp_path / "in", ITEMS[:3])
    (tmp_path / "in" / "001.npy").write_bytes(b"no array")
    with pytest.raises(PyrnnxError, match=r"item '001.npy': .*\(skip_errors=True skips it\)"):
        pyrnnx.score(lstm(), tmp_path / "in", tmp_path / "bad", workers=1)


def _processes(file: str, word: str) -> list[int]:
    """Return the processes that have a word in their command line or environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / file).read_bytes():
                found.append(int(folder.name))
        except OSError:  # noqa: PERF203  # the process has ended
            continue
    return found


def _stat(pid: int) -> list[str]:
    """Return the state of a process, its parent, ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


@pytest.mark.e2e
def test_a_worker_that_is_killed(score: Score) -> None:
    def kill() -> None:
        pids = [pid for pid in _processes("cmdline", "spawn_main") if int(_stat(pid)[1]) == os.getpid()]
        os.kill(pids[0], signal.SIGKILL)

    progress = Once(kill)
    report = score(workers=2, progress=progress)
    assert progress.called
    assert (report.items, report.resumed) == (len(ITEMS), 0)


SCRIPT = """
import sys
sys.path[:0] = [{tests!r}]
import pyrnnx
from scoring_data import lstm
if {condition}:
    pyrnnx.score(lstm(), {source!r}, {sink!r}, workers=2, memory={memory},
                 progress=lambda done, total: print(done, flush=True))
"""


def _script(source: Path, tmp_path: Path, condition: str) -> list[str]:
    words = {"tests": TESTS, "source": str(source), "sink": str(tmp_path / "out"), "memory": MEMORY}
    (tmp_path / "run.py").write_text(SCRIPT.format(condition=condition, **words))
    return [sys.executable, str(tmp_path / "run.py")]


@pytest.mark.e2e
def test_the_whole_run_is_killed(source: Path, score: Score, tmp_path: Path) -> None:
    name, value = "PYRNNX_TEST_RUN", f"{tmp_path.name}{os.getpid()}"
    command, env = _script(source, tmp_path, '__name__ == "__main__"'), {**os.environ, name: value}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        next(line for line in process.stdout if int(line))
        process.kill()
        timer.cancel()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    wait_until(lambda: not _processes("environ", f"{name}={value}"))
    finished = len(list((tmp_path / "out" / "done").iterdir()))
    assert finished
    assert score(workers=0).resumed == finished


@pytest.mark.e2e
def test_a_main_script_without_its_guard(source: Path, tmp_path: Path) -> None:
    """Workers end without a word."""
    command = _script(source, tmp_path, "True")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr.count("Traceback")) == (1, 1)
    assert re.search('ArgumentError.*expected the call below if __name__ == "__main__":', done.stderr.splitlines()[-1])


@pytest.mark.e2e
def test_a_scheduler_that_is_killed(score: Score, tmp_path: Path) -> None:
    """The run ends with an error that says so; the same call, with a new scheduler at the address, goes on."""
    port = free_port()
    with scheduler(tmp_path, 1, port) as first:
        words = r"the scheduler was lost .* scores the unfinished parts"
        lost(score, words, partial(first.signal, signal.SIGKILL), scheduler=first.address)
        finished = len(list((tmp_path / "out" / "done").iterdir()))
        assert finished
    with scheduler(tmp_path, 2, port) as second:
        assert score(scheduler=second.address).resumed >= finished


@pytest.mark.e2e
def test_a_scheduler_that_is_not_there(score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrnnx.scoring.cluster.PATIENCE", 4)
    monkeypatch.setattr("pyrnnx.scoring.cluster.ANSWER", 2)
    with pytest.raises(PyrnnxError, match="does not answer"):
        score(scheduler=f"tcp://127.0.0.1:{free_port()}")
    with scheduler(tmp_path, 0) as empty, pytest.raises(PyrnnxError, match="fewer than 1 workers after 4 seconds"):
        score(scheduler=empty.address)


@pytest.mark.nightly
def test_a_silent_scheduler(score: Score, tmp_path: Path) -> None:
    with scheduler(tmp_path, 2) as started:
        words = r"the scheduler was lost \(no answer within 6 seconds\); the same call"
        lost(score, words, partial(started.signal, signal.SIGSTOP), scheduler=started.address)
        started.signal(signal.SIGCONT)
        assert score(scheduler=started.address).resumed


@pytest.mark.nightly
def test_workers_that_hang_or_die(score: Score, tmp_path: Path) -> None:
    """Another worker scores the parts of one that hangs; resumed, it changes nothing. Without workers, a run ends."""
    port = free_port()
    with scheduler(tmp_path, 2, port, ttl="8s") as started:
        progress = Once(partial(started.signal, signal.SIGSTOP, 1))
        report = score(scheduler=started.address, workers=2, progress=progress)
        assert (report.items, report.resumed) == (len(ITEMS), 0)
        started.signal(signal.SIGCONT, 1)
        started.processes[1].wait(PATIENCE)  # the scheduler has removed it
        assert score(scheduler=started.address).computed == 0
    shutil.rmtree(tmp_path / "out")
    with scheduler(tmp_path, 1, port) as started:
        words = "the scheduler has had no workers for 6 seconds; the same call"
        lost(score, words, partial(started.signal, signal.SIGKILL, 1), scheduler=started.address)
    with scheduler(tmp_path, 1, port) as started:
        assert score(scheduler=started.address).resumed


ZOMBIE = """
import dataclasses, os, pickle, signal, sys
sys.path[:0] = [{tests!r}]
from pyrnnx.scoring import task
from pyrnnx.scoring.sinks import SINKS
with open({job!r}, "rb") as file:
    job, part = pickle.load(file)
sink = SINKS[job.sink]
def write(path, columns):
    {before}
    sink.write(path, columns)
    {after}
SINKS[job.sink] = dataclasses.replace(sink, write=write)
task.score_part(job, part)
"""
STOP = "os.kill(os.getpid(), signal.SIGSTOP)"


@pytest.mark.parametrize(
    "kind", [pytest.param("npz", marks=pytest.mark.e2e), pytest.param("zarr", marks=pytest.mark.nightly)]
)
def test_a_worker_that_resumes_under_another_run(kind: str, source: Path, tmp_path: Path) -> None:
    """Stopped before or after it wrote its part, it cannot replace a part of the run that began meanwhile."""
    pytest.importorskip(kind if kind == "zarr" else "numpy")
    jobs: list[Any] = []
    sink, second = tmp_path / "out", lstm(seed=1)
    options: Any = {"workers": 0, "memory": MEMORY, "sink_format": kind}

    def end(*arguments: Any) -> None:
        jobs.append(arguments)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "score_part", end)
        with pytest.raises(KeyboardInterrupt):
            pyrnnx.score(lstm(), source, sink, **options)
    job, _ = jobs[0]
    job.folder.unfinished(job.run).mkdir()  # a run that was killed leaves it
    (tmp_path / "job").write_bytes(pickle.dumps(jobs[0]))
    zombies = []
    for before, after in ((STOP, "pass"), ("pass", STOP)):
        code = ZOMBIE.format(tests=TESTS, job=str(tmp_path / "job"), before=before, after=after)
        zombies.append(subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True))
    wait_until(lambda: all(_stat(zombie.pid)[0] == "T" for zombie in zombies))
    pyrnnx.score(second, source, sink, overwrite=True, **options)
    parts = contents(sink)
    for zombie in zombies:
        zombie.send_signal(signal.SIGCONT)
        assert "PyrnnxError" in zombie.communicate(timeout=PATIENCE)[1] or zombie.returncode == 1
    then = contents(sink)
    assert {name: then.get(name) for name in parts} == parts
    assert_equal(READERS[kind](sink), expected(second, named(ITEMS)))
    assert pyrnnx.score(second, source, sink, **options).computed == 0
