"""Code that runs in Dask workers. No other module imports distributed at import time."""

from __future__ import annotations

import pickle
from typing import Any

from distributed import WorkerPlugin, get_worker

from pyrnnx import config
from pyrnnx._version import __version__
from pyrnnx.errors import ArgumentError, PyrnnxError
from pyrnnx.scoring.parts import Part
from pyrnnx.scoring.task import Job, score_part


class Setup(WorkerPlugin):
    """Plugin that sends the model once to each worker, also to later ones, and sets the threads of its calls."""

    def __init__(self, job: Job, threads: int | None) -> None:
        self.name = f"pyrnnx-score-{job.run}"
        self._threads, self._version = threads, __version__
        self._batch_invariant = job.batch_invariant
        # Bytes: a model sizes its thread pools when it is unpickled, which must be after `setup` has set the threads.
        self._contents = pickle.dumps(job)

    def setup(self, worker: Any) -> None:
        if self._version != __version__:
            raise ArgumentError(
                f"score: the worker at {worker.address} has pyrnnx {__version__}; expected {self._version}, as locally"
            )
        self._before = config.get_num_threads(), config.get_batch_invariant()
        config.set_num_threads(self._threads or worker.state.nthreads)
        config.set_batch_invariant(self._batch_invariant)
        self.job: Job = pickle.loads(self._contents)

    def teardown(self, worker: Any) -> None:
        config.set_num_threads(self._before[0])
        config.set_batch_invariant(self._before[1])


def run_part(name: str, part: Part) -> Any:
    """Run `score_part`, and return a `PyrnnxError` instead of raising: Dask would log its traceback."""
    setup = get_worker().plugins[name]
    assert isinstance(setup, Setup)
    try:
        return score_part(setup.job, part)
    except PyrnnxError as error:
        return error
