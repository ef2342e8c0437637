"""Scoring of parts on Dask workers, with few parts submitted at a time so that memory stays bounded."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from importlib import import_module
from typing import Any

from pyrnnx import config
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, reason_of, shown
from pyrnnx.scoring.packages import import_distributed
from pyrnnx.scoring.parts import Part
from pyrnnx.scoring.storage import shown_path
from pyrnnx.scoring.task import Job

AHEAD = 2  # parts per worker thread: one running, one queued
PATIENCE = 60  # seconds until all workers must have started, and for which a scheduler may be silent or without workers
ANSWER = 10  # seconds until a scheduler must answer first
LOOK = 5  # seconds between checks of the scheduler
GLANCE = 0.2  # seconds between checks of the connection
MAIN = 'expected the call below if __name__ == "__main__":, because it starts processes'
_ADDRESS = re.compile(r"([a-z][a-z0-9]*://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/@\[\]\0]+):([0-9]{1,5})")
_LOGGERS = ("distributed", "tornado", "asyncio")
RESUME = "the same call scores the unfinished parts"


@contextlib.contextmanager
def connected(scheduler: Any, workers: int | None) -> Iterator[tuple[Any, int | None]]:
    """Yield a client of a scheduler or of new local processes, and the threads per worker (None: the worker decides).

    Parameters
    ----------
    scheduler : str, distributed.Client or None
        An address; a client, which stays open; None for new processes.
    workers : int or None

    Raises
    ------
    PyrnnxError
        A scheduler that does not answer, or has no workers.
    """
    dask = import_distributed()
    if scheduler is not None and not isinstance(scheduler, str):
        _wait_for_workers(scheduler, workers or 1, scheduler.scheduler.address)
        yield scheduler, None
        return
    if scheduler is not None:
        _reach(scheduler)
        try:
            client = _within(ANSWER, dask.Client, scheduler, timeout=PATIENCE, set_as_default=False).result()
        except (OSError, ValueError, TypeError, TimeoutError) as error:
            raise ArgumentError(_no_answer(scheduler, error)) from None
        with _closing(client):
            _wait_for_workers(client, workers or 1, scheduler)
            yield client, None
        return
    cores = config.get_num_threads()
    count = workers or cores
    # The argument `memory` bounds the workers' memory. Dask's limit would kill workers for the memory of a large model.
    try:
        with _sigint_ignored():
            cluster = dask.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",  # any free port: another cluster may use the default one
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )
    except RuntimeError as error:  # for example if the main script starts processes again in each of them
        raise ArgumentError(f"score: {count} processes could not be started ({reason_of(error)}); {MAIN}") from None
    with _closing(cluster), _closing(dask.Client(cluster, timeout=PATIENCE, set_as_default=False)) as client:
        _wait_for_workers(client, count, cluster.scheduler_address)
        yield client, max(1, cores // count)


def check_main() -> None:
    """Raise an `ArgumentError` in a worker that imports the main script of its parent."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ArgumentError(f"score: a worker reached this call while it imported the main script; {MAIN}")


def check_scheduler(scheduler: Any) -> None:
    """Raise an `ArgumentError` unless the value is an address of a scheduler, or a connected synchronous client."""
    if isinstance(scheduler, str):
        match = _ADDRESS.fullmatch(scheduler)
        if not match or not 0 < int(match[2]) < 2**16:
            raise ArgumentError(
                f'score: scheduler is {shown_path(scheduler)}; expected an address, such as "tcp://host:8786"'
            )
    elif not isinstance(scheduler, import_distributed().Client) or scheduler.asynchronous:
        raise ArgumentError(f"score: scheduler is {shown_path(scheduler)}; expected an address or a synchronous Client")
    elif scheduler.status != "running":
        raise ArgumentError(
            f"score: scheduler is a Client whose connection is {scheduler.status}; expected an open one"
        )


def _reach(scheduler: str) -> None:
    """Check that a scheduler answers, before a client is made: a client without an answer waits long, also to close.

    Raises
    ------
    ArgumentError
        No connection or no answer.
    """
    import_distributed()
    comm: Any = import_module("distributed.comm")
    security: Any = import_module("distributed.security")

    async def reach() -> None:
        options = security.Security().get_connection_args("client") if scheduler.startswith("tls:") else {}
        connection = await asyncio.wait_for(comm.connect(scheduler, timeout=ANSWER, **options), ANSWER)
        connection.abort()

    try:
        with ThreadPoolExecutor(1) as thread:  # the calling thread may already run an event loop
            thread.submit(asyncio.run, reach()).result()
    except Exception as error:  # sockets, certificates and names raise errors of many types
        raise ArgumentError(_no_answer(scheduler, error)) from None


def _no_answer(scheduler: str, error: Exception) -> str:
    reason = printable(str(error)) or f"within {ANSWER} seconds"
    return f"score: scheduler {shown(scheduler)} does not answer ({reason})"


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
def _logging_disabled() -> Iterator[None]:
    """Disable Dask's loggers, which report each connection that ends."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _LOGGERS]
    loggers = [logger for logger in map(logging.getLogger, names) if not logger.disabled]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


@contextlib.contextmanager
def _closing(resource: Any) -> Iterator[Any]:
    """Yield a client or a cluster, and close it after the block."""
    try:
        yield resource
    except KeyboardInterrupt:
        with _logging_disabled(), contextlib.suppress(Exception):
            resource.close(timeout=LOOK)
        raise
    finally:
        with contextlib.suppress(Exception):  # the cluster may be gone
            resource.close(timeout=LOOK)


def _within(seconds: float, call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Future[Any]:
    """Return the finished future of a call of Dask, which may wait for ever, or by a clock that somebody sets.

    Raises
    ------
    TimeoutError
        The call does not return within this time; its thread waits on.
    """
    future = _begun(call, *arguments, **keywords)
    if not wait([future], seconds).done:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return future


def _begun(call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Future[Any]:
    """Return the future of a call in a thread that the end of the process does not wait for."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(call(*arguments, **keywords))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def _patience(client: Any) -> float:
    """Return the timeout that a client was made with, in seconds."""
    return float(getattr(client, "_timeout", PATIENCE))


def _asked(client: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    """Return the scheduler's answer to a call of its client.

    Raises
    ------
    CancelledError, TimeoutError
        The connection is lost; there is no answer within the client's timeout.
    """
    future = _begun(call, *arguments)
    end = time.monotonic() + _patience(client)
    while not wait([future], GLANCE).done:
        if client.status != "running":
            raise CancelledError(f"connection {client.status}")
        if time.monotonic() > end:
            raise TimeoutError(f"no answer within {_patience(client):g} seconds")
    return future.result()


def _threads(client: Any) -> dict[str, int]:
    """Return the number of threads of each worker; raise as `_asked` does."""
    threads: dict[str, int] = _asked(client, client.nthreads)
    return threads


def count_workers(client: Any) -> int:
    """Return the number of workers.

    Raises
    ------
    PyrnnxError
        A lost scheduler.
    """
    with _errors_of(client):
        return len(_threads(client))


def _wait_for_workers(client: Any, count: int, address: Any) -> None:
    end = time.monotonic() + PATIENCE
    while count_workers(client) < count:
        if time.monotonic() > end:
            raise ArgumentError(
                f"score: scheduler {shown(address)} has fewer than {count} workers after {PATIENCE} seconds"
            )
        time.sleep(0.1)


@contextlib.contextmanager
def _errors_of(client: Any) -> Iterator[None]:
    """Raise a `PyrnnxError` in place of the errors by which Dask reports a lost scheduler or a closed client."""
    try:
        yield
    except PyrnnxError:
        raise
    except import_distributed().KilledWorker as error:
        part = str(error.task).rpartition("-")[2]
        raise PyrnnxError(
            f"score: part {part} has failed because every worker that ran it died, perhaps out of memory; a smaller "
            f"memory=... makes smaller parts, and {RESUME}"
        ) from None
    except Exception as error:  # a closed client raises errors of many types
        # OSError: also Dask's CommClosedError
        lost = isinstance(error, (CancelledError, OSError, TimeoutError, import_distributed().TimeoutError))
        if not lost and client.status == "running":
            raise
        raise PyrnnxError(f"score: the scheduler was lost ({printable(str(error))}); {RESUME}") from None


def scored(client: Any, job: Job, threads: int | None, parts: Iterator[Part]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the result of `score_part` for each part, in order of completion.

    Raises
    ------
    PyrnnxError
        As `score_part` raises; workers of another version; a part that kills its workers; a lost scheduler.
    """
    from pyrnnx.scoring import dask_worker  # imports distributed

    setup = dask_worker.Setup(job, threads)
    with _errors_of(client):
        try:
            _asked(client, client.register_plugin, setup)
            yield from _outcomes(client, setup.name, parts)
        finally:
            if client.status == "running":
                with contextlib.suppress(Exception):
                    _within(LOOK, client.unregister_worker_plugin, setup.name)


class _WallClock:
    """Wall clock that remembers its latest time: set back, Dask may send no message until it has caught up."""

    def __init__(self) -> None:
        self._latest = time.time()

    def is_behind(self) -> bool:
        """Return whether the clock was set back, and has not caught up yet."""
        now = time.time()
        self._latest = max(self._latest, now)
        return now < self._latest


def _outcomes(client: Any, name: str, parts: Iterator[Part]) -> Iterator[tuple[dict[str, Any], bool]]:
    from pyrnnx.scoring import dask_worker

    pending: set[Any] = set()
    clock = _WallClock()
    while True:
        room = AHEAD * max(1, sum(_threads(client).values())) - len(pending)
        for part in _next(parts, room):
            key = f"{name}-{part.number}"
            pending.add(client.submit(dask_worker.run_part, name, part, key=key, pure=False))
        if not pending:
            return
        for future in _ready(client, pending, clock):
            try:
                outcome = future.result(_patience(client))
            except import_distributed().TimeoutError:
                continue  # its worker hangs: Dask will remove the worker, and compute the part again
            pending.discard(future)
            if isinstance(outcome, PyrnnxError):
                client.cancel(list(pending))
                raise outcome
            yield outcome
            clock.is_behind()  # remember its time


def _next(parts: Iterator[Part], count: int) -> Iterator[Part]:
    for _ in range(count):
        part = next(parts, None)
        if part is None:
            return
        yield part


def _ready(client: Any, pending: set[Any], clock: _WallClock) -> set[Any]:
    """Wait until at least one future is finished, and return the finished ones.

    Raises
    ------
    CancelledError, TimeoutError
        The connection to the scheduler is lost; the scheduler does not answer.
    PyrnnxError
        All workers are gone, and none has come within the client's timeout; no part was finished within the timeout
        after the clock was set back.
    """
    dask = import_distributed()
    done: set[Any] = set()
    last_seen = caught_up = time.monotonic()  # a worker; the wall clock
    while not done:
        if client.status != "running":
            raise CancelledError(f"connection {client.status}")
        with client.as_current(), contextlib.suppress(dask.TimeoutError):
            done = dask.wait(pending, timeout=min(LOOK, _patience(client)), return_when="FIRST_COMPLETED").done
        if not clock.is_behind():
            caught_up = time.monotonic()
        elif not done and time.monotonic() - caught_up > _patience(client):
            raise PyrnnxError(
                f"score: the clock of this machine was set back, and no part was finished for {_patience(client):g} "
                f"seconds, because Dask may wait until the clock has caught up; {RESUME}"
            )
        if not done and _threads(client):
            last_seen = time.monotonic()
        elif not done and time.monotonic() - last_seen > _patience(client):
            raise PyrnnxError(f"score: the scheduler has had no workers for {_patience(client):g} seconds; {RESUME}")
    return done
