"""Scoring of parts on Dask workers, with few parts submitted at a time so that memory stays bounded."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from functools import partial
from itertools import islice
from typing import Any

from pyrnnx import config
from pyrnnx._internal.extras import import_package
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, reason_of, shown
from pyrnnx.scoring.parts import Part
from pyrnnx.scoring.sources.storage import shown_path
from pyrnnx.scoring.task import Job

AHEAD = 2  # parts per worker thread: one running, one queued
PATIENCE = 60  # seconds until all workers must have started, and for which a scheduler may be silent or without workers
ANSWER = 10  # seconds until a scheduler must answer first
LOOK = 5  # seconds between checks of the scheduler
MAIN = 'expected the call below if __name__ == "__main__":, because it starts processes'
RESUME = "the same call scores the unfinished parts"
_ADDRESS = re.compile(r"([a-z][a-z0-9]*://)?[^\s@/]+:[0-9]+")


def import_distributed() -> Any:
    return import_package("distributed", "score: several processes (workers=0 does without)", "dask")


def check_main() -> None:
    """End a worker that imports the main script of its parent without a word: the parent raises an error."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)


def check_scheduler(scheduler: Any) -> None:
    """Raise an `ArgumentError` unless the value is an address of a scheduler, or a connected synchronous client."""
    if isinstance(scheduler, str):
        if not _ADDRESS.fullmatch(scheduler):
            raise ArgumentError(
                f'score: scheduler is {shown_path(scheduler)}; expected an address, such as "tcp://host:8786"'
            )
    elif not isinstance(scheduler, import_distributed().Client) or scheduler.asynchronous:
        raise ArgumentError(f"score: scheduler is {shown_path(scheduler)}; expected an address or a synchronous Client")
    elif scheduler.status != "running":
        raise ArgumentError(
            f"score: scheduler is a Client whose connection is {scheduler.status}; expected an open one"
        )


@contextlib.contextmanager
def connected(scheduler: Any, workers: int | None) -> Iterator[Workers]:
    """Yield the workers of a scheduler (an address, or a client, which stays open), or those of new local processes."""
    dask = import_distributed()
    count, threads, timeout = workers or 1, None, ANSWER
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            count, timeout = workers or config.get_num_threads(), PATIENCE
            threads = max(1, config.get_num_threads() // count)
            scheduler = stack.enter_context(_closing(_local_cluster(count)))
        if isinstance(scheduler, dask.Client):
            client, patience = scheduler, scheduler._timeout
        else:
            try:
                client, patience = dask.Client(scheduler, timeout=timeout, set_as_default=False), PATIENCE
            except Exception as error:  # addresses and networks cause errors of many types
                reason = printable(str(error)) or f"within {timeout} seconds"
                raise ArgumentError(f"score: scheduler {shown(scheduler)} does not answer ({reason})") from None
            stack.enter_context(_closing(client))
        yield Workers(client, patience, threads).started(count)


def _local_cluster(count: int) -> Any:
    # The argument `memory` bounds the workers' memory. Dask's limit would kill workers for the memory of a large model.
    options = {"n_workers": count, "threads_per_worker": 1, "processes": True, "memory_limit": 0}
    try:
        with _sigint_ignored():  # any free port: another cluster may use the default one
            return import_distributed().LocalCluster(**options, dashboard_address=":0", silence_logs=logging.CRITICAL)
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
    if not wait([result], seconds).done:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return result.result()


class Workers:
    """Workers of the Dask scheduler of a client.

    The scheduler may be silent or without workers for `patience` seconds. A call in a worker has `threads` threads;
    None: the worker decides.
    """

    def __init__(self, client: Any, patience: float, threads: int | None) -> None:
        self._client, self._patience, self._threads = client, float(patience), threads

    def started(self, count: int) -> Workers:
        end = time.monotonic() + PATIENCE
        while self.count() < count:
            if time.monotonic() > end:
                address = shown(self._client.scheduler.address)
                raise ArgumentError(
                    f"score: scheduler {address} has fewer than {count} workers after {PATIENCE} seconds"
                )
            time.sleep(0.1)
        return self

    def count(self) -> int:
        with self._errors():
            return len(self._asked(self._client.nthreads))

    def _asked(self, question: Callable[..., Any], *arguments: Any) -> Any:
        """Return the scheduler's answer, unless it is silent for too long."""
        return _within(self._patience, question, *arguments)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise a `PyrnnxError` in place of the errors by which Dask reports a lost scheduler or a closed client."""
        dask = import_distributed()
        try:
            yield
        except PyrnnxError:
            raise
        except dask.KilledWorker as error:
            part = str(error.task).rpartition("-")[2]
            raise PyrnnxError(
                f"score: part {part} has failed because every worker that ran it died, perhaps out of memory; a "
                f"smaller memory=... makes smaller parts, and {RESUME}"
            ) from None
        except Exception as error:  # a closed client raises errors of many types
            lost = isinstance(error, (CancelledError, OSError, TimeoutError, dask.TimeoutError))
            if not lost and self._client.status == "running":
                raise
            raise PyrnnxError(f"score: the scheduler was lost ({printable(str(error))}); {RESUME}") from None

    def scored(self, job: Job, parts: Iterator[Part]) -> Iterator[dict[str, Any]]:
        from pyrnnx.scoring import dask_worker  # imports distributed

        setup = dask_worker.Setup(job, self._threads)
        with self._errors():
            try:
                self._asked(self._client.register_plugin, setup)
                yield from self._outcomes(partial(dask_worker.run_part, setup.name), setup.name, parts)
            finally:
                if self._client.status == "running":
                    with contextlib.suppress(Exception):
                        _within(LOOK, self._client.unregister_worker_plugin, setup.name)

    def _outcomes(self, run: Any, name: str, parts: Iterator[Part]) -> Iterator[dict[str, Any]]:
        client = self._client
        pending: set[Any] = set()
        while True:
            room = AHEAD * max(1, sum(self._asked(client.nthreads).values())) - len(pending)
            for part in islice(parts, max(0, room)):
                pending.add(client.submit(run, part, key=f"{name}-{part.number}", pure=False))
            if not pending:
                return
            for future in self._ready(pending):
                try:
                    outcome = future.result(self._patience)
                except import_distributed().TimeoutError:
                    continue  # its worker hangs: Dask will remove the worker, and compute the part again
                pending.discard(future)
                if isinstance(outcome, PyrnnxError):
                    client.cancel(list(pending))
                    raise outcome
                yield outcome

    def _ready(self, pending: set[Any]) -> set[Any]:
        """Wait until at least one future is finished, and return the finished ones."""
        dask, client = import_distributed(), self._client
        done: set[Any] = set()
        last_seen = time.monotonic()  # a worker
        while not done:
            if client.status != "running":
                raise CancelledError(f"connection {client.status}")
            with client.as_current(), contextlib.suppress(dask.TimeoutError):
                done = dask.wait(pending, timeout=min(LOOK, self._patience), return_when="FIRST_COMPLETED").done
            if not done and self._asked(client.nthreads):
                last_seen = time.monotonic()
            elif not done and time.monotonic() - last_seen > self._patience:
                raise PyrnnxError(f"score: the scheduler has had no workers for {self._patience:g} seconds; {RESUME}")
        return done
