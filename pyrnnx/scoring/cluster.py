"""Scoring of parts on Dask workers, with few parts submitted at a time so that memory stays bounded.

Only runs in several processes import this module, because it imports distributed.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any

from distributed import WorkerPlugin, get_worker

from pyrnnx import config
from pyrnnx._version import __version__
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, reason_of, shown
from pyrnnx.scoring.task import Job, Part, score_part

distributed: Any = import_module("distributed")  # parts of it have no types
AHEAD = 2  # parts per worker thread: one running, one queued
PATIENCE = 60  # seconds until all workers must have started, and for which a scheduler may be silent or without workers
ANSWER = 10  # seconds until a scheduler must answer first
LOOK = 5  # seconds between checks of the scheduler
MAIN = 'expected the call below if __name__ == "__main__":, because it starts processes'
RESUME = "the same call scores the unfinished parts"


class Setup(WorkerPlugin):
    """Plugin that sends the model once to each worker, also to later ones, and sets the threads of its calls.

    Without `threads`, a call has as many as its worker.
    """

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
    """Run `score_part` in a worker, and return a `PyrnnxError` instead of raising: Dask would log its traceback."""
    setup = get_worker().plugins[name]
    assert isinstance(setup, Setup)
    try:
        return score_part(setup.job, part)
    except PyrnnxError as error:
        return error


@contextlib.contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[Workers]:
    count, threads, timeout = workers or 1, None, ANSWER
    with contextlib.ExitStack() as stack:
        address: Any = scheduler
        if scheduler is None:
            count, timeout = workers or config.get_num_threads(), PATIENCE
            threads = max(1, config.get_num_threads() // count)
            address = stack.enter_context(_closing(_local_cluster(count)))
        try:
            client = distributed.Client(address, timeout=timeout, set_as_default=False)
        except Exception as error:  # addresses and networks cause errors of many types
            reason = printable(str(error)) or f"within {timeout} seconds"
            raise ArgumentError(f"score: scheduler {shown(scheduler)} does not answer ({reason})") from None
        stack.enter_context(_closing(client))
        try:
            _within(PATIENCE, client.wait_for_workers, count)
        except TimeoutError:
            address = shown(client.scheduler.address)
            raise ArgumentError(
                f"score: scheduler {address} has fewer than {count} workers after {PATIENCE} seconds"
            ) from None
        yield Workers(client, threads)


def _local_cluster(count: int) -> Any:
    # The argument `memory` bounds the workers' memory. Dask's limit would kill workers for the memory of a large model.
    options: dict[str, Any] = {"n_workers": count, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
    try:
        with _sigint_ignored():  # any free port: another cluster may use the default one
            return distributed.LocalCluster(**options, dashboard_address=":0", silence_logs=logging.CRITICAL)
    except RuntimeError as error:  # for example if the main script starts processes again in each of them
        raise ArgumentError(f"score: {count} processes could not be started ({reason_of(error)}); {MAIN}") from None


@contextlib.contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Ignore Ctrl-C in processes started in the block; a terminal sends it to all, but the parent ends its children."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _closing(resource: Any) -> Iterator[Any]:
    """Yield a client or a cluster, and close it after the block; the cluster may be gone."""
    disabled = logging.root.manager.disable
    try:
        yield resource
    except KeyboardInterrupt:
        logging.disable(logging.CRITICAL)  # Dask reports each connection that ends
        raise
    finally:
        with contextlib.suppress(Exception):
            _within(2 * LOOK, lambda: resource.close(timeout=LOOK))
        logging.disable(disabled)


def _within(seconds: float, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call of Dask, which may wait for ever; its thread, that of a daemon, waits on then."""
    result: Future[Any] = Future()

    def run() -> None:
        try:
            result.set_result(call(*arguments))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    if not wait_for([result], seconds).done:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return result.result()


class Workers:
    """Workers of a Dask scheduler, of which each call has `threads` threads; None: as many as its worker."""

    def __init__(self, client: Any, threads: int | None) -> None:
        self._client, self._threads = client, threads

    def count(self) -> int:
        with self._errors():
            return len(self._nthreads())

    def _nthreads(self) -> dict[str, int]:
        threads: dict[str, int] = _within(PATIENCE, self._client.nthreads)
        return threads

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise a `PyrnnxError` in place of the errors by which Dask reports a lost scheduler."""
        try:
            yield
        except PyrnnxError:
            raise
        except distributed.KilledWorker as error:
            part = str(error.task).rpartition("-")[2]
            raise PyrnnxError(
                f"score: part {part} has failed because every worker that ran it died, perhaps out of memory; a "
                f"smaller memory=... makes smaller parts, and {RESUME}"
            ) from None
        except Exception as error:  # a closed client raises errors of many types
            lost = isinstance(error, (CancelledError, OSError, TimeoutError, distributed.TimeoutError))
            if not lost and self._client.status == "running":
                raise
            raise PyrnnxError(f"score: the scheduler was lost ({printable(str(error))}); {RESUME}") from None

    def scored(self, job: Job, parts: Iterator[Part]) -> Iterator[dict[str, Any]]:
        setup = Setup(job, self._threads)
        with self._errors():
            try:
                _within(PATIENCE, self._client.register_plugin, setup)
                yield from self._outcomes(setup.name, parts)
            finally:
                if self._client.status == "running":
                    with contextlib.suppress(Exception):
                        _within(LOOK, self._client.unregister_worker_plugin, setup.name)

    def _outcomes(self, name: str, parts: Iterator[Part]) -> Iterator[dict[str, Any]]:
        client, pending = self._client, set[Any]()
        while True:
            room = AHEAD * max(1, sum(self._nthreads().values())) - len(pending)
            for part in islice(parts, max(0, room)):
                pending.add(client.submit(partial(run_part, name), part, key=f"{name}-{part.number}", pure=False))
            if not pending:
                return
            for future in self._ready(pending):
                try:
                    outcome = future.result(PATIENCE)
                except distributed.TimeoutError:
                    continue  # its worker hangs: Dask will remove the worker, and compute the part again
                pending.discard(future)
                if isinstance(outcome, PyrnnxError):
                    client.cancel(list(pending))
                    raise outcome
                yield outcome

    def _ready(self, pending: set[Any]) -> set[Any]:
        """Wait until at least one future is finished, and return the finished ones."""
        done: set[Any] = set()
        last_seen = time.monotonic()  # a worker
        while not done:
            if self._client.status != "running":
                raise CancelledError(f"connection {self._client.status}")
            with self._client.as_current(), contextlib.suppress(distributed.TimeoutError):
                done = distributed.wait(pending, timeout=min(LOOK, PATIENCE), return_when="FIRST_COMPLETED").done
            if not done and self._nthreads():
                last_seen = time.monotonic()
            elif not done and time.monotonic() - last_seen > PATIENCE:
                raise PyrnnxError(f"score: the scheduler has had no workers for {PATIENCE} seconds; {RESUME}")
        return done
