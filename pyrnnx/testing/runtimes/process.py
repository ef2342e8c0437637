"""Worker processes of `execute`: requests with a time limit, and complete cleanup."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
import warnings
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

from pyrnnx.errors import printable, shortened
from pyrnnx.testing.runtimes import wire, worker
from pyrnnx.testing.runtimes.base import Runtime

STOP_TIMEOUT = 2.0  # seconds for a worker to end before it is killed
TAIL = 4096  # bytes of a worker's stderr that are stored
_START = "import sys; sys.path[:] = sys.argv[4:]; import pyrnnx.testing.runtimes.worker as worker; worker.main()"


class DiedError(Exception):
    """The worker is gone; the message says how it went."""


class Worker(ABC):
    """A process at the other end of two pipes, with a session of its own: what it starts is killed with it."""

    pid: int

    def __init__(self) -> None:
        self._tail = b""
        ends: list[int] = []
        try:
            for _ in range(3):
                ends += os.pipe()
            command_end, self._commands, self._answers, answer_end, self._errors, error_end = ends
            os.set_blocking(self._errors, False)
            os.set_blocking(self._commands, False)
            self._start(command_end, answer_end, error_end)
        except BaseException:
            for end in ends:
                os.close(end)
            raise
        for end in (command_end, answer_end, error_end):
            os.close(end)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._answers, selectors.EVENT_READ)
        self._selector.register(self._errors, selectors.EVENT_READ)
        self._ended = False

    @abstractmethod
    def _start(self, commands: int, answers: int, errors: int) -> None:
        """Start the process with these ends of the pipes, and set `pid`."""

    @abstractmethod
    def _wait(self) -> int:
        """Return the exit status, or minus the signal, of a process that has ended."""

    def ask(self, message: Any, timeout: float) -> Any:
        """Return the answer to a message.

        Raises
        ------
        DiedError
            No answer will come.
        TimeoutError
            None came in time. The worker is as it was: kill it.
        """
        deadline = time.monotonic() + timeout
        self._send(message, deadline)
        return self._answer(deadline)

    @abstractmethod
    def load(self, timeout: float) -> Any:
        """Return the answer to the runtime that was sent; raises as `ask`."""

    def _answer(self, deadline: float) -> Any:
        try:
            return wire.receive(lambda size: self._read(size, deadline))
        except TimeoutError:
            raise
        except Exception as error:  # EOFError, or bytes that are no message: the worker is corrupt
            raise DiedError(self._post_mortem()) from error

    def stop(self) -> None:
        """Let the process end by itself, or kill it."""
        if not self._ended:
            with suppress(TimeoutError):
                self._send(None, time.monotonic() + STOP_TIMEOUT)
            self._await_end(STOP_TIMEOUT)
            self.kill()

    def kill(self) -> int:
        """Kill the process and its children; return its exit status, or minus its signal."""
        if self._ended:
            return 0
        self._ended = True
        with suppress(ProcessLookupError, PermissionError):  # before waitpid, which frees the PID
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):  # it may not have called setsid yet
            os.kill(self.pid, signal.SIGKILL)
        self._selector.close()
        for end in (self._commands, self._answers, self._errors):
            os.close(end)
        return self._wait()

    def _send(self, message: Any, deadline: float) -> None:
        """Send a message; it is lost if the process is gone, and the answer will show that."""
        data = memoryview(wire.packed(message))
        with selectors.DefaultSelector() as selector, suppress(BrokenPipeError):
            selector.register(self._commands, selectors.EVENT_WRITE)
            while data:
                if not selector.select(_seconds_until(deadline)):
                    raise TimeoutError
                data = data[os.write(self._commands, data) :]

    def _read(self, size: int, deadline: float) -> bytes:
        while True:
            ready = [key.fd for key, _ in self._selector.select(_seconds_until(deadline))]
            if self._errors in ready:
                self._read_errors()
            if self._answers in ready:
                return os.read(self._answers, size)
            if time.monotonic() >= deadline:
                raise TimeoutError

    def _read_errors(self) -> None:
        try:
            part = os.read(self._errors, 1 << 16)
        except BlockingIOError:
            return
        if part:
            self._tail = (self._tail + part)[-TAIL:]
        elif self._errors in self._selector.get_map():  # closed by the worker: there is no more to come
            self._selector.unregister(self._errors)

    def _await_end(self, timeout: float) -> bool:
        """Return whether the process has ended; it stays a zombie so that its PID is not reused."""
        deadline = time.monotonic() + timeout
        options = os.WEXITED | os.WNOWAIT | os.WNOHANG
        with suppress(ChildProcessError):
            while os.waitid(os.P_PID, self.pid, options) is None:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(0.002)
        return True

    def _post_mortem(self) -> str:
        by_itself = self._await_end(STOP_TIMEOUT)
        for _ in range(TAIL):  # a child process may have the pipe open and fill it
            before = self._tail
            self._read_errors()
            if self._tail is before:
                break
        status = self.kill()
        if not by_itself:
            how = "no longer answers"
        elif status < 0:
            how = f"killed by {signal_name(-status)}"
        else:
            how = f"exit status {status}"
        return with_last_line(how, self._tail)


def _seconds_until(deadline: float) -> float:
    """Return the time to the next event, at most an hour because systems limit waits."""
    return min(max(deadline - time.monotonic(), 0.0), 3600.0)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def with_last_line(text: str, output: bytes) -> str:
    """Append the last line that a process wrote, if any, to the text."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return f"{text}: {shortened(printable(lines[-1]))}" if lines else text


class Spawned(Worker):
    """A fresh interpreter, which unpickles the runtime."""

    def __init__(self, pickled: bytes, scratch: str) -> None:
        self._pickled, self._scratch = pickled, scratch
        super().__init__()

    def load(self, timeout: float) -> Any:
        return self.ask(self._pickled, timeout)

    def _start(self, commands: int, answers: int, errors: int) -> None:
        arguments = [str(commands), str(answers), self._scratch, *map(str, sys.path)]
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _START, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(commands, answers),
            start_new_session=True,
        )
        self.pid = self._process.pid

    def _wait(self) -> int:
        return self._process.wait()


class Forked(Worker):
    """A fork of this process, for a runtime that another cannot unpickle."""

    def __init__(self, runtime: Runtime, scratch: str) -> None:
        self._runtime, self._scratch = runtime, scratch
        super().__init__()

    def load(self, timeout: float) -> Any:
        return self._answer(time.monotonic() + timeout)

    def _start(self, commands: int, answers: int, errors: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that other threads are not there in the child
            pid = os.fork()
        if pid == 0:
            callers_ends = (self._commands, self._answers, self._errors)
            worker.main_of_fork(self._runtime, (commands, answers, errors), callers_ends, self._scratch)
        self.pid = pid

    def _wait(self) -> int:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:  # the caller's process has no children to wait for: SIGCHLD is ignored there
            return 0
