"""Faults between real processes: a network that breaks, stopped processes, clients that close."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scoring_data import READERS, assert_equal, contents, expected, lstm, sequences, write_npy
from scoring_faults import PATIENCE, Proxy, Scheduler, proxy, scheduler, wait_until

import pyrnnx
from pyrnnx import PyrnnxError

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed"),
    # When connections break, distributed leaves sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
ITEMS = sequences(np.random.default_rng(0).integers(1, 40, 120).tolist())
MEMORY = 24_000  # some 20 parts
TIMEOUT = 6  # seconds of a client
SHORT = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "8s"}  # until a silent worker counts as dead


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


@pytest.mark.e2e
@pytest.mark.parametrize("what", ["network", "scheduler"])
def test_silence(what: str, workers: Scheduler, network: Proxy, score: Callable[..., Any]) -> None:
    """Connections that stay open without an answer are an error after the client's timeout, not a hang."""
    stopped = workers.processes[0]
    stop, resume = {
        "network": (network.open.clear, network.open.set),
        "scheduler": (lambda: stopped.send_signal(signal.SIGSTOP), lambda: stopped.send_signal(signal.SIGCONT)),
    }[what]
    with client_of(network.port) as client:
        lost(score, r"the scheduler was lost \(no answer within 6 seconds\); the same call", stop, scheduler=client)
        resume()
    with client_of(network.port) as client:
        assert score(scheduler=client).resumed


@pytest.mark.e2e
def test_a_network_that_resets_connections(network: Proxy, score: Callable[..., Any]) -> None:
    address = f"tcp://127.0.0.1:{network.port}"
    lost(
        score, r"the scheduler was lost .* the same call scores the unfinished parts", network.reset, scheduler=address
    )
    network.refuses = True
    with pytest.raises(PyrnnxError, match="does not answer"):
        score(scheduler=address)
    network.refuses = False
    assert score(scheduler=address).resumed


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
    from scoring_faults import free_port

    port = free_port()
    with proxy(port) as network:
        with scheduler(tmp_path, 2, port, network.port), client_of(port) as client:
            lost(
                score,
                "the scheduler has had no workers for 6 seconds; the same call",
                lambda: _cut(network),
                scheduler=client,
                workers=2,
            )
        network.refuses = False
        with scheduler(tmp_path, 1, port, network.port):
            assert score(scheduler=f"tcp://127.0.0.1:{port}").resumed


def _cut(network: Proxy) -> None:
    network.refuses = True
    network.reset()


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
import os, pickle, signal, sys
sys.path[:0] = {path!r}
from pyrnnx.scoring import task
from pyrnnx.scoring.sinks import SINKS
import dataclasses
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

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "score_part", lambda *arguments: _end(jobs, arguments))
        with pytest.raises(KeyboardInterrupt):
            pyrnnx.score(first, source, sink, **options)
    job, part = jobs[0]
    job.folder.unfinished(job.run).mkdir()  # a run that was killed leaves it
    (tmp_path / "job").write_bytes(pickle.dumps((job, part)))
    zombies = []
    for before, after in ((STOP, "pass"), ("pass", STOP)):
        words = {
            "path": [str(Path(__file__).parents[1])],
            "job": str(tmp_path / "job"),
            "before": before,
            "after": after,
        }
        zombies.append(
            subprocess.Popen([sys.executable, "-c", ZOMBIE.format(**words)], stderr=subprocess.PIPE, text=True)
        )
    for zombie in zombies:
        wait_until(partial(_is_stopped, zombie.pid))
    pyrnnx.score(second, source, sink, overwrite=True, **options)
    parts = contents(sink)
    for zombie in zombies:
        zombie.send_signal(signal.SIGCONT)
        assert "PyrnnxError" in zombie.communicate(timeout=PATIENCE)[1] or zombie.returncode == 1
    then = contents(sink)
    assert {name: then.get(name) for name in parts} == parts
    assert_equal(READERS[kind](sink), expected(second, {f"{i:03}.npy": item for i, item in enumerate(ITEMS)}))
    assert pyrnnx.score(second, source, sink, **options).computed == 0


def _end(jobs: list[Any], arguments: Any) -> None:
    jobs.append(arguments)
    raise KeyboardInterrupt


def _is_stopped(pid: int) -> bool:
    return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "T"
