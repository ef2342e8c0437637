"""Real processes: killed, hanging and lost workers and schedulers, and a network between them that breaks.

Every run that ends has the parts of one process, byte for byte. Every wait is for a condition, as long as it takes on a
slow machine; what is never met ends after PATIENCE seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scoring_data import READERS, assert_equal, contents, expected, lstm, sequences, write_npy
from scoring_faults import PATIENCE, Proxy, Scheduler, free_port, proxy, scheduler, wait_until

import pyrnnx
from pyrnnx import PyrnnxError

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed"),
    # When processes end or connections break, distributed leaves sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
ITEMS = sequences(np.random.default_rng(0).integers(1, 40, 120).tolist())
NAMED = {f"{index:03}.npy": item for index, item in enumerate(ITEMS)}
MEMORY = 24_000  # some 20 parts
TIMEOUT = 6  # seconds of a client
SHORT = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "8s"}  # until a silent worker counts as dead
TESTS = str(Path(__file__).parents[1])


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_npy(tmp_path_factory.mktemp("faults") / "in", ITEMS)


@pytest.fixture(scope="module")
def alone(source: Path) -> dict[str, bytes]:
    """The parts that one process writes."""
    pyrnnx.score(lstm(), source, source.parent / "alone", workers=0, memory=MEMORY)
    return contents(source.parent / "alone" / "parts")


@pytest.fixture
def score(source: Path, alone: dict[str, bytes], tmp_path: Path) -> Callable[..., Any]:
    """A run whose parts are those of one process."""

    def run(**options: Any) -> Any:
        report = pyrnnx.score(lstm(), source, tmp_path / "out", memory=MEMORY, **options)
        assert contents(tmp_path / "out" / "parts") == alone
        assert json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"]
        return report

    return run


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    with scheduler(tmp_path_factory.mktemp("dask"), 2) as started:
        yield started


@pytest.fixture
def network(workers: Scheduler) -> Iterator[Proxy]:
    """Between the client and the scheduler."""
    with proxy(int(workers.address.rpartition(":")[2])) as started:
        yield started


def client_of(port: int) -> Any:
    from distributed import Client

    return Client(f"tcp://127.0.0.1:{port}", timeout=TIMEOUT, set_as_default=False)  # type: ignore[no-untyped-call]


class Once:
    """Progress that calls a function when the first part is finished."""

    def __init__(self, do: Callable[[], object]) -> None:
        self.do, self.called = do, False

    def __call__(self, done: int, total: int) -> None:
        if done and not self.called:
            self.called = True
            self.do()


def lost(score: Callable[..., Any], words: str, do: Callable[[], object], **options: Any) -> None:
    """Score until the first part is finished, and then lose the scheduler."""
    progress = Once(do)
    with pytest.raises(PyrnnxError) as error:
        score(progress=progress, **options)
    assert progress.called, error.value
    assert re.search(words, str(error.value))


def test_a_worker(source: Path, score: Callable[..., Any], tmp_path: Path) -> None:
    """Results are those of the layer, and an error is that of the item."""
    assert score(workers=1).workers == 1
    write_npy(tmp_path / "in", ITEMS[:3])
    (tmp_path / "in" / "001.npy").write_bytes(b"no array")
    with pytest.raises(PyrnnxError, match=r"item '001.npy': .*\(skip_errors=True skips it\)"):
        pyrnnx.score(lstm(), tmp_path / "in", tmp_path / "bad", workers=1)


def _kill_a_worker() -> None:
    """Kill one of the processes that LocalCluster started."""
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and b"spawn_main" in line:
            os.kill(int(folder.name), signal.SIGKILL)
            return
    raise AssertionError("no worker was started")


@pytest.mark.e2e
def test_a_worker_that_is_killed(score: Callable[..., Any]) -> None:
    progress = Once(_kill_a_worker)
    report = score(workers=2, progress=progress)
    assert progress.called
    assert (report.items, report.resumed) == (len(ITEMS), 0)


@pytest.mark.e2e
def test_a_killed_worker_of_a_stream(tmp_path: Path) -> None:
    from stream_graphs import CONTEXT, FRAME, GRAPHS, model_of

    lengths = np.random.default_rng(0).integers(0, 200, len(ITEMS))
    items = [np.random.default_rng(length).normal(size=length).astype(np.float32) for length in lengths]
    source, model = write_npy(tmp_path / "in", items), model_of(GRAPHS["convolutions"])
    options: Any = {"stream": True, "frame": FRAME, "context": CONTEXT, "memory": MEMORY, "batch": 8}
    pyrnnx.score(model, source, tmp_path / "alone", workers=0, **options)
    pyrnnx.score(model, source, tmp_path / "out", workers=2, progress=Once(_kill_a_worker), **options)
    parts = contents(tmp_path / "alone" / "parts")
    assert len(parts) > 4
    assert contents(tmp_path / "out" / "parts") == parts


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
def test_the_whole_run_is_killed(source: Path, score: Callable[..., Any], tmp_path: Path) -> None:
    name, value = "PYRNNX_TEST_RUN", f"{tmp_path.name}{os.getpid()}"
    command, environment = _script(source, tmp_path, '__name__ == "__main__"'), {**os.environ, name: value}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        for line in process.stdout:
            if int(line):
                process.kill()
                break
        timer.cancel()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    wait_until(lambda: not _runs(f"{name}={value}"))
    finished = len(list((tmp_path / "out" / "done").iterdir()))
    assert finished
    assert score(workers=0).resumed == finished


def _runs(word: str) -> bool:
    """Return whether there is a process whose environment has this word."""
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and word.encode() in (folder / "environ").read_bytes():
                return True
        except OSError:  # noqa: PERF203  # the process has ended
            continue
    return False


@pytest.mark.e2e
def test_a_main_script_without_its_guard(source: Path, tmp_path: Path) -> None:
    command = _script(source, tmp_path, "True")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    assert 'expected the call below if __name__ == "__main__":' in done.stderr.splitlines()[-1]
    assert "ArgumentError" in done.stderr.splitlines()[-1]
    assert done.stderr.count("Traceback") == 1  # workers end without a word


@pytest.mark.e2e
def test_a_scheduler_that_is_killed(score: Callable[..., Any], tmp_path: Path) -> None:
    """The run ends with an error that says so; the same call, with a new scheduler at the address, goes on."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with scheduler(tmp_path, 1, port) as first:
        words = r"the scheduler was lost .* scores the unfinished parts"
        lost(score, words, partial(first.kill, 0), scheduler=address)
        finished = len(list((tmp_path / "out" / "done").iterdir()))
        assert finished
    with scheduler(tmp_path, 2, port):
        assert score(scheduler=address).resumed >= finished


@pytest.mark.e2e
def test_a_scheduler_that_is_not_there(score: Callable[..., Any], tmp_path: Path, monkeypatch: Any) -> None:
    from pyrnnx.scoring import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 4)
    monkeypatch.setattr(cluster, "ANSWER", 2)
    with pytest.raises(PyrnnxError, match="does not answer"):
        score(scheduler=f"tcp://127.0.0.1:{free_port()}")
    with scheduler(tmp_path, 0) as empty, pytest.raises(PyrnnxError, match="fewer than 1 workers after 4 seconds"):
        score(scheduler=empty.address)


@pytest.mark.e2e
@pytest.mark.parametrize("what", ["network", "scheduler", "connections"])
def test_silence_and_resets(what: str, workers: Scheduler, network: Proxy, score: Callable[..., Any]) -> None:
    """Connections that stay open without an answer are an error after the client's timeout, not a hang."""
    stopped = workers.processes[0]
    stop, resume, reason = {
        "network": (network.open.clear, network.open.set, "no answer within 6 seconds"),
        "scheduler": (
            lambda: stopped.send_signal(signal.SIGSTOP),
            lambda: stopped.send_signal(signal.SIGCONT),
            "no answer within 6 seconds",
        ),
        "connections": (network.reset, lambda: None, ".*"),
    }[what]
    with client_of(network.port) as client:
        lost(score, rf"the scheduler was lost \({reason}\); the same call", stop, scheduler=client)
        resume()
    with client_of(network.port) as client:
        assert score(scheduler=client).resumed


@pytest.mark.e2e
def test_a_worker_that_hangs(score: Callable[..., Any], tmp_path: Path) -> None:
    """Another worker scores its parts; resumed, it changes nothing."""
    with scheduler(tmp_path, 2, env=SHORT) as cluster:
        hanging = cluster.processes[1]
        progress = Once(lambda: hanging.send_signal(signal.SIGSTOP))
        report = score(scheduler=cluster.address, workers=2, progress=progress)
        assert (report.items, report.resumed) == (len(ITEMS), 0)
        hanging.send_signal(signal.SIGCONT)
        hanging.wait(PATIENCE)  # the scheduler has removed it
        assert score(scheduler=cluster.address).computed == 0


@pytest.mark.e2e
def test_workers_that_are_cut_off(score: Callable[..., Any], tmp_path: Path) -> None:
    """Without workers for longer than the client's timeout, the run is an error; the same call goes on with others."""
    port = free_port()
    with proxy(port) as network:

        def cut() -> None:
            network.refuses = True
            network.reset()

        with scheduler(tmp_path, 2, port, network.port), client_of(port) as client:
            words = "the scheduler has had no workers for 6 seconds; the same call"
            lost(score, words, cut, scheduler=client, workers=2)
        network.refuses = False
        with scheduler(tmp_path, 1, port, network.port):
            assert score(scheduler=f"tcp://127.0.0.1:{port}").resumed


@pytest.mark.e2e
def test_clients(workers: Scheduler, score: Callable[..., Any]) -> None:
    """A client that is closed, before or during the run; one that serves the caller afterwards, too."""
    from distributed import Client

    port = int(workers.address.rpartition(":")[2])
    with client_of(port) as client:
        lost(score, r"the scheduler was lost .* the same call", client.close, scheduler=client)
        with pytest.raises(PyrnnxError, match="scheduler is a Client whose connection is closed"):
            score(scheduler=client)
    with client_of(port) as client:
        assert score(scheduler=client).resumed
        assert client.submit(sum, (1, 2)).result(PATIENCE) == 3

    async def asynchronous() -> None:
        options: Any = {"asynchronous": True, "set_as_default": False}
        async with Client(workers.address, **options) as client:  # type: ignore[no-untyped-call]
            score(scheduler=client)

    with pytest.raises(PyrnnxError, match="expected an address or a synchronous Client"):
        asyncio.run(asynchronous())


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


@pytest.mark.e2e
@pytest.mark.parametrize("kind", ["npz", "zarr"])
def test_a_worker_that_resumes_under_another_run(kind: str, source: Path, tmp_path: Path) -> None:
    """Stopped before or after it wrote its part, it cannot replace a part of the run that began meanwhile."""
    pytest.importorskip(kind if kind == "zarr" else "numpy")
    from pyrnnx.scoring import run

    jobs: list[Any] = []
    sink, first, second = tmp_path / "out", lstm(), lstm(seed=1)
    options: Any = {"workers": 0, "memory": MEMORY, "sink_format": kind}

    def end(*arguments: Any) -> None:
        jobs.append(arguments)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "score_part", end)
        with pytest.raises(KeyboardInterrupt):
            pyrnnx.score(first, source, sink, **options)
    job, part = jobs[0]
    job.folder.unfinished(job.run).mkdir()  # a run that was killed leaves it
    (tmp_path / "job").write_bytes(pickle.dumps((job, part)))
    zombies = []
    for before, after in ((STOP, "pass"), ("pass", STOP)):
        code = ZOMBIE.format(tests=TESTS, job=str(tmp_path / "job"), before=before, after=after)
        zombies.append(subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True))
    for zombie in zombies:
        wait_until(partial(_is_stopped, zombie.pid))
    pyrnnx.score(second, source, sink, overwrite=True, **options)
    parts = contents(sink)
    for zombie in zombies:
        zombie.send_signal(signal.SIGCONT)
        assert "PyrnnxError" in zombie.communicate(timeout=PATIENCE)[1] or zombie.returncode == 1
    then = contents(sink)
    assert {name: then.get(name) for name in parts} == parts
    assert_equal(READERS[kind](sink), expected(second, NAMED))
    assert pyrnnx.score(second, source, sink, **options).computed == 0


def _is_stopped(pid: int) -> bool:
    return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "T"
