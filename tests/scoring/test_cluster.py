"""Real processes: any number of workers, a killed worker, a lost scheduler, a full disk.

Every wait is for a condition, as long as it takes on a slow machine; what is never met ends after PATIENCE seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scoring_data import assert_equal, contents, expected, lstm, of_npz, sequences, write_npy
from scoring_faults import PATIENCE, free_port, scheduler, wait_until

import pyrnnx
from pyrnnx import PyrnnxError

pytestmark = [
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs distributed"),
    # When processes end, distributed leaves sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
COUNT = 120
MEMORY = 24_000  # some 20 parts


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    return write_npy(tmp_path / "in", sequences(rng.integers(1, 40, COUNT).tolist()))


@pytest.fixture
def alone(source: Path, tmp_path: Path) -> dict[str, bytes]:
    """The parts that one process writes."""
    pyrnnx.score(lstm(), source, tmp_path / "alone", workers=0, memory=MEMORY)
    return contents(tmp_path / "alone" / "parts")


def running(word: str) -> list[int]:
    """Processes, by their ids, whose environment has this word."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if word.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.mark.e2e
def test_a_bad_item(source: Path, tmp_path: Path) -> None:
    (source / "070.npy").write_bytes(b"no array")
    with pytest.raises(PyrnnxError, match=r"item '070.npy': .*\(skip_errors=True skips it\)"):
        pyrnnx.score(lstm(), source, tmp_path / "out", workers=1, memory=MEMORY)
    report = pyrnnx.score(lstm(), source, tmp_path / "out", workers=1, memory=MEMORY, skip_errors=True)
    assert list(report.skipped) == ["070.npy"]
    assert len(of_npz(tmp_path / "out")) == COUNT - 1


class Killer:
    """Progress of a run that kills a worker when the first part is finished."""

    def __init__(self) -> None:
        self.killed: list[int] = []

    def __call__(self, done: int, total: int) -> None:
        if done and not self.killed:
            self.killed.append(min(_workers_of(os.getpid())))
            os.kill(self.killed[0], signal.SIGKILL)


@pytest.mark.e2e
def test_a_worker_that_is_killed(source: Path, alone: dict[str, bytes], tmp_path: Path) -> None:
    progress = Killer()
    report = pyrnnx.score(lstm(), source, tmp_path / "out", workers=2, memory=MEMORY, progress=progress)
    assert progress.killed
    assert (report.items, report.resumed) == (COUNT, 0)
    assert contents(tmp_path / "out" / "parts") == alone


@pytest.mark.e2e
def test_streams(tmp_path: Path) -> None:
    """Frames of many recordings side by side: no workers, one, and two of which one is killed."""
    from stream_graphs import CONTEXT, FRAME, GRAPHS, model_of

    lengths = np.random.default_rng(0).integers(0, 200, COUNT)
    items = [np.random.default_rng(length).normal(size=length).astype(np.float32) for length in lengths]
    source = write_npy(tmp_path / "in", items)
    options: Any = {"stream": True, "frame": FRAME, "context": CONTEXT, "memory": MEMORY, "batch": 8}
    parts, progress = [], Killer()
    for workers in (0, 1, 2):
        sink = tmp_path / f"out{workers}"
        options["progress"] = progress if workers == 2 else None
        report = pyrnnx.score(model_of(GRAPHS["convolutions"]), source, sink, workers=workers, **options)
        assert (report.items, report.resumed) == (COUNT, 0)
        parts.append(contents(sink / "parts"))
    assert progress.killed
    assert len(parts[0]) > 4
    assert parts[0] == parts[1] == parts[2]


def _workers_of(parent: int) -> list[int]:
    """Processes that LocalCluster started."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"spawn_main" in line:
            found.append(int(folder.name))
    return found


@pytest.mark.e2e
def test_a_scheduler_that_is_lost(source: Path, alone: dict[str, bytes], tmp_path: Path) -> None:
    """The run ends with an error that says so; the same call, with a new scheduler at the address, goes on."""
    port = free_port()

    def score(progress: Any = None) -> Any:
        return pyrnnx.score(
            lstm(), source, tmp_path / "out", scheduler=f"tcp://127.0.0.1:{port}", memory=MEMORY, progress=progress
        )

    with scheduler(tmp_path, 1, port) as first:
        with pytest.raises(PyrnnxError, match=r"the scheduler was lost .* scores the unfinished parts"):
            score(lambda done, total: first.kill(0) if done else None)
        finished = len(list((tmp_path / "out" / "done").iterdir()))
        assert finished
    with scheduler(tmp_path, 2, port):
        report = score()
    assert report.resumed >= finished
    assert report.items == COUNT
    assert contents(tmp_path / "out" / "parts") == alone


@pytest.mark.e2e
def test_a_scheduler_that_is_not_there(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyrnnx.scoring import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 4)
    monkeypatch.setattr(cluster, "ANSWER", 2)
    with pytest.raises(PyrnnxError, match="does not answer"):
        pyrnnx.score(lstm(), source, tmp_path / "out", scheduler=f"tcp://127.0.0.1:{free_port()}", memory=MEMORY)
    with scheduler(tmp_path, 0) as empty, pytest.raises(PyrnnxError, match="fewer than 1 workers after 4 seconds"):
        pyrnnx.score(lstm(), source, tmp_path / "out", scheduler=empty.address, memory=MEMORY)


KILLED_RUN = """
import sys
sys.path[:0] = {path!r}
import pyrnnx
from scoring_data import lstm
if __name__ == "__main__":
    pyrnnx.score(lstm(), {source!r}, {sink!r}, workers=2, memory={memory},
                 progress=lambda done, total: print(done, flush=True))
"""


@pytest.mark.e2e
def test_the_whole_run_is_killed(source: Path, alone: dict[str, bytes], tmp_path: Path) -> None:
    words = {
        "path": [str(Path(__file__).parents[1])],
        "source": str(source),
        "sink": str(tmp_path / "out"),
        "memory": MEMORY,
    }
    (tmp_path / "run.py").write_text(KILLED_RUN.format(**words))
    mark = f"PYRNNX_TEST_RUN={tmp_path.name}{os.getpid()}"
    name, value = mark.split("=")
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "run.py")],
        env={**os.environ, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
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
    wait_until(lambda: not running(mark))
    finished = len(list((tmp_path / "out" / "done").iterdir()))
    assert finished
    report = pyrnnx.score(lstm(), source, tmp_path / "out", workers=0, memory=MEMORY)
    assert report.resumed == finished
    assert contents(tmp_path / "out" / "parts") == alone


@pytest.mark.e2e
def test_a_main_script_without_its_guard(source: Path, tmp_path: Path) -> None:
    script = KILLED_RUN.replace('if __name__ == "__main__"', "if True")
    words = {"path": [str(Path(__file__).parents[1])], "source": str(source), "sink": str(tmp_path / "out")}
    (tmp_path / "run.py").write_text(script.format(**words, memory=MEMORY))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "run.py")], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 1
    assert 'expected the call below if __name__ == "__main__":' in done.stderr.splitlines()[-1]
    assert "ArgumentError" in done.stderr.splitlines()[-1]


def test_results_on_a_cluster_are_those_of_the_layer(tmp_path: Path) -> None:
    items = sequences((9, 4, 30))
    source = write_npy(tmp_path / "in", items)
    pyrnnx.score(lstm(), source, tmp_path / "out", workers=1)
    assert_equal(of_npz(tmp_path / "out"), expected(lstm(), {f"{i:03}.npy": one for i, one in enumerate(items)}))
