"""Schedulers and workers in processes of their own, and a network between them that breaks."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 180  # seconds until a condition counts as never met
FAILURE = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close sends RST


class Proxy:
    """Forwards connections to a port of this machine, and breaks them.

    Attributes
    ----------
    port : int
        Where it listens.
    open : threading.Event
        Cleared, nothing is forwarded: connections stay, and pieces wait.
    refuses : bool
        Whether new connections are closed at once.
    spoils : bool
        Whether to spoil answers of HTTP: every seventh is an error of the server, every eleventh ends in the middle.
    spoiled : int
        Number of spoiled answers.
    """

    def __init__(self, target: int) -> None:
        self._target, self._resets = target, 0
        self.refuses, self.open = False, threading.Event()
        self.spoils, self.spoiled, self._answers = False, 0, 0
        self.open.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def reset(self) -> None:
        """Reset every connection."""
        self._resets += 1

    def stop(self) -> None:
        self.refuses = True
        self.reset()
        self.open.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self.refuses:
                    near.close()
                    continue
                thread = threading.Thread(target=self._forward, args=(near, self._resets), daemon=True)
                thread.start()
                self._threads.append(thread)

    def _forward(self, near: socket.socket, resets: int) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as far:
            others = {near: far, far: near}
            while resets == self._resets:
                for end in select.select([near, far], [], [], 0.05)[0]:
                    self.open.wait()
                    piece = end.recv(2**16)
                    if not piece:
                        return
                    if self.spoils and end is far and piece.startswith(b"HTTP/"):
                        self._answers += 1
                        if not (self._answers % 7 and self._answers % 11):
                            self.spoiled += 1
                            near.sendall(piece[: len(piece) - 7] if self._answers % 7 else FAILURE)
                            return
                    others[end].sendall(piece)
            for end in others:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


@contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    started = Proxy(target)
    try:
        yield started
    finally:
        started.stop()


def wait_until(condition: Callable[[], Any]) -> Any:
    """The first value that is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


class Scheduler:
    """A scheduler and workers of Dask's command line, in processes of their own: `processes`, the scheduler first."""

    def __init__(self, folder: Path, port: int, workers: int, door: int = 0, env: Mapping[str, str] = {}) -> None:
        self._env = {**os.environ, **env}
        self.address = f"tcp://127.0.0.1:{port}"
        self._files = [open(folder / f"dask{index}.log", "w") for index in range(1 + workers)]  # noqa: SIM115  # closed by stop
        self.processes = [self._start(0, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")]
        wait_until(lambda: _answers(port))
        for index in range(workers):
            options = ("--no-nanny", "--nthreads", "2", "--no-dashboard", "--local-directory", str(folder))
            address = f"tcp://127.0.0.1:{door or port}"
            self.processes.append(self._start(1 + index, "worker", address, *options))

    def _start(self, index: int, *arguments: str) -> subprocess.Popen[str]:
        file = self._files[index]
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments], stdout=file, stderr=file, text=True, env=self._env
        )

    def kill(self, index: int) -> None:
        self.processes[index].kill()
        self.processes[index].wait(PATIENCE)

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(PATIENCE)
        for file in self._files:
            file.close()


@contextmanager
def scheduler(
    folder: Path, workers: int = 1, port: int = 0, door: int = 0, env: Mapping[str, str] = {}
) -> Iterator[Scheduler]:
    """Start a scheduler, and workers that reach it at `port`, or through a proxy at `door`."""
    started = Scheduler(folder, port or free_port(), workers, door, env)
    try:
        yield started
    finally:
        started.stop()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
