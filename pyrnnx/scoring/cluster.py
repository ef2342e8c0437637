"""Parts on workers of Dask: at most a few for each worker on their way, so that neither side's memory grows."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from importlib import import_module
from typing import Any

from pyrnnx import config
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shown
from pyrnnx.scoring.packages import import_distributed
from pyrnnx.scoring.parts import Part
from pyrnnx.scoring.task import Job

AHEAD = 2  # parts for each thread of the workers: one in work, one that waits
PATIENCE = 60  # seconds until workers have to be there
ANSWER = 10  # seconds until a scheduler has to answer, at first, and when the connection to it was lost
LOOK = 5  # seconds between looks whether the scheduler is still there
MAIN = 'expected the call below if __name__ == "__main__":, as all that starts processes'
_ADDRESS = re.compile(r"([a-z][a-z0-9]*://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]\0]+):([0-9]{1,5})")
_LOGGERS = ("distributed", "tornado", "asyncio")
GONE = "the same call goes on with what is not finished"


@contextlib.contextmanager
def connected(scheduler: str | None, workers: int | None) -> Iterator[tuple[Any, int | None]]:
    """A client of a scheduler, or of a new cluster of processes here; and threads for each worker, if that is known.

    Raises
    ------
    PyrnnxError
        A scheduler that does not answer, or has no workers.
    """
    dask = import_distributed()
    if scheduler is not None:
        _reach(scheduler)
        try:
            client = dask.Client(scheduler, timeout=ANSWER, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise ArgumentError(_silent(scheduler, error)) from None
        with _closing(client):
            _wait_for_workers(client, workers or 1, scheduler)
            yield client, None
        return
    cores = config.get_num_threads()
    count = workers or cores
    # The workers' memory is bounded by `memory`, not by Dask, which would stop and kill them by what else they hold.
    try:
        with _deaf_children():
            cluster = dask.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",  # any free port: the usual one may be another cluster's
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )
    except RuntimeError as error:  # as when the main script starts processes again in each of them
        raise ArgumentError(f"score: {count} processes could not be started ({error}); {MAIN}") from None
    with _closing(cluster), _closing(dask.Client(cluster, set_as_default=False)) as client:
        _wait_for_workers(client, count, cluster.scheduler_address)
        yield client, max(1, cores // count)


def check_main() -> None:
    """Reject a call in a process that only reads the main script of the one that started it.

    Raises
    ------
    ArgumentError
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ArgumentError(f"score: a worker came upon this call while it read the main script; {MAIN}")


def check_address(scheduler: str) -> None:
    """Reject what is no address of a scheduler.

    Raises
    ------
    ArgumentError
    """
    found = _ADDRESS.fullmatch(scheduler)
    if not found or not 0 < int(found[2]) < 2**16:
        raise ArgumentError(f'score: scheduler is {shown(scheduler)}; expected an address, such as "tcp://host:8786"')


def _reach(scheduler: str) -> None:
    """See whether a scheduler answers, before there is a client: one that is not answered waits long, and when it ends.

    Raises
    ------
    ArgumentError
        Nobody there, or one who is silent.
    """
    import_distributed()
    comm: Any = import_module("distributed.comm")
    security: Any = import_module("distributed.security")

    async def reach() -> None:
        options = security.Security().get_connection_args("client") if scheduler.startswith("tls:") else {}
        found = await asyncio.wait_for(comm.connect(scheduler, timeout=ANSWER, **options), ANSWER)
        found.abort()

    try:
        with ThreadPoolExecutor(1) as thread:  # this one may have a loop that runs
            thread.submit(asyncio.run, reach()).result()
    except Exception as error:  # of sockets, certificates, names
        raise ArgumentError(_silent(scheduler, error)) from None


def _silent(scheduler: str, error: Exception) -> str:
    why = printable(str(error)) or f"within {ANSWER} seconds"
    return f"score: scheduler {shown(scheduler)} does not answer ({why})"


@contextlib.contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started within do not hear Ctrl-C, which a terminal sends to all: who started them ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what Dask logs of connections that end."""
    names = [one for one in logging.root.manager.loggerDict if one.partition(".")[0] in _LOGGERS]
    spoken = [one for one in map(logging.getLogger, names) if not one.disabled]
    for one in spoken:
        one.disabled = True
    try:
        yield
    finally:
        for one in spoken:
            one.disabled = False


@contextlib.contextmanager
def _closing(one: Any) -> Iterator[Any]:
    try:
        yield one
    except KeyboardInterrupt:
        with _quiet(), contextlib.suppress(Exception):
            one.close(timeout=LOOK)
        raise
    finally:
        with contextlib.suppress(Exception):  # of a cluster that is not there any more
            one.close(timeout=LOOK)


def _wait_for_workers(client: Any, count: int, address: Any) -> None:
    try:
        client.wait_for_workers(count, timeout=PATIENCE)
    except import_distributed().TimeoutError:
        raise ArgumentError(
            f"score: scheduler {shown(address)} has less than {count} workers after {PATIENCE} seconds"
        ) from None


def scored(client: Any, job: Job, threads: int | None, parts: Iterator[Part]) -> Iterator[tuple[dict[str, Any], bool]]:
    """What `score_part` gives for each part, as they are finished.

    Raises
    ------
    PyrnnxError
        As of `score_part`; workers of another version; a part that workers die of; a scheduler that is lost.
    """
    from pyrnnx.scoring import dask_worker  # it imports distributed

    setup = dask_worker.Setup(job, threads)
    try:
        client.register_plugin(setup)
        yield from _outcomes(client, setup.name, parts)
    except import_distributed().KilledWorker as error:
        part = str(error.task).rpartition("-")[2]
        raise PyrnnxError(
            f"score: part {part} has been given up, for every worker that took it died, as when memory is short; "
            f"memory=... makes parts smaller, and {GONE} for the same"
        ) from None
    except (CancelledError, OSError) as error:  # OSError: also Dask's CommClosedError
        raise PyrnnxError(f"score: the scheduler was lost ({printable(str(error))}); {GONE}") from None
    finally:
        with contextlib.suppress(Exception):
            client.unregister_worker_plugin(setup.name)


def _outcomes(client: Any, name: str, parts: Iterator[Part]) -> Iterator[tuple[dict[str, Any], bool]]:
    from pyrnnx.scoring import dask_worker

    pending: set[Any] = set()
    while True:
        room = AHEAD * max(1, sum(client.nthreads().values())) - len(pending)
        for part in _next(parts, room):
            key = f"{name}-{part.number}"
            pending.add(client.submit(dask_worker.run_part, name, part, key=key, pure=False))
        if not pending:
            return
        for future in _ready(client, pending):
            pending.discard(future)
            outcome = future.result()
            if isinstance(outcome, PyrnnxError):
                client.cancel(list(pending))
                raise outcome
            yield outcome


def _next(parts: Iterator[Part], count: int) -> Iterator[Part]:
    for _ in range(count):
        part = next(parts, None)
        if part is None:
            return
        yield part


def _ready(client: Any, pending: set[Any]) -> set[Any]:
    """Futures that are finished; waits for one.

    Raises
    ------
    CancelledError
        The connection to the scheduler is gone.
    """
    dask = import_distributed()
    done: set[Any] = set()
    while not done:
        if client.status != "running":
            raise CancelledError(f"connection {client.status}")
        with client.as_current(), contextlib.suppress(dask.TimeoutError):
            done = dask.wait(pending, timeout=LOOK, return_when="FIRST_COMPLETED").done
    return done
