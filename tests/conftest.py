"""Selection of collected files, settings that tests change, and wheels of real models in pytest's cache directory."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rows
import wheels

import pyrnnx
from pyrnnx.frontends.onnx import session

# Containers often disable bytecode. Each worker and each process of a test would then compile the package and the
# rewritten tests again, a third of the time of a run.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Otherwise each worker of pytest would start a pool of spinning threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Otherwise the threads of new sessions would spin, half of the processor time of tests of models.
session.ENTRIES["session.intra_op.allow_spinning"] = "0"
# Otherwise OpenVINO's converter would start a process for each model and report it to a server.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

SILERO = "silero-vad==6.2.3"
FetchWheel = Callable[[str], Path]
# The mark of a whole file, whose imports (PyTorch and others) may take longer than many tests.
WHOLE_FILE = re.compile(r"^pytestmark = \[?pytest\.mark\.(slow|e2e|torch)\b", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--row", default="", help="of tables, run only rows whose names contain this")


def pytest_configure(config: pytest.Config) -> None:
    rows.Selected.text = config.getoption("row")
    gc.disable()  # enabled after collection, whose objects stay alive
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in background jobs of a shell; tests send SIGINT
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Exclude collected tests from garbage collection, which would traverse them each time."""
    gc.freeze()
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files without selected tests, without importing them."""
    if collection_path.suffix != ".py":
        return None
    mark = WHOLE_FILE.search(collection_path.read_text(encoding="utf-8"))
    return True if mark and f"not {mark[1]}" in config.option.markexpr else None


@pytest.fixture(autouse=True)
def same_settings() -> Iterator[None]:
    """Restore the settings of pyrnnx that a test changes."""
    getters = (pyrnnx.get_num_threads, pyrnnx.get_batch_invariant, pyrnnx.get_memory_limit)
    setters: tuple[Any, ...] = (pyrnnx.set_num_threads, pyrnnx.set_batch_invariant, pyrnnx.set_memory_limit)
    before = [get() for get in getters]
    yield
    for get, set_to, value in zip(getters, setters, before, strict=True):
        if get() != value:  # sessions are made again after each change
            set_to(value)


@pytest.fixture(scope="session")
def fetch_wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FetchWheel:
    """Return a function that returns the folder of an unpacked wheel "name==version", cached between runs."""
    cache = getattr(request.config, "cache", None)
    root = cache.mkdir("wheels") if cache is not None else tmp_path_factory.mktemp("wheels")

    def fetch(requirement: str) -> Path:
        try:
            return wheels.fetch(requirement, root)
        except wheels.RegistryError as error:
            pytest.skip(str(error))

    return fetch


@pytest.fixture(scope="session")
def silero_models(fetch_wheel: FetchWheel) -> Path:
    """Return the folder of the .onnx models of silero-vad, a voice activity detector."""
    return fetch_wheel(SILERO) / "silero_vad" / "data"
