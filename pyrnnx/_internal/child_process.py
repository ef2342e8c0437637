"""Processes that answer messages, and may crash or hang without harm to the one that asks.

Messages are bytes: what a process answers that reads damaged files must not be unpickled.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from pyrnnx.errors import printable, shortened

STOP_TIMEOUT = 2.0  # seconds for a process to end before it is killed
TAIL = 4096  # bytes of stderr that are stored
_HEADER = 8  # bytes of the length before each message
# Run with -I and the caller's sys.path: neither the environment nor the working folder changes the imports.
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"


class DiedError(Exception):
    """Raised if a process ended with `status` (minus a signal), or answered with no message; the error says how."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Child:
    """A process that answers one message after another with `serve`.

    After a DiedError or TimeoutError, it is gone. The end of a `with` block ends it and the processes that it started.
    """

    def __init__(self, process: Any) -> None:
        self._process = process  # a `subprocess.Popen`, or a `_Fork`, which has the same methods
        self._status: int | None = None  # once it has ended
        self._tail = b""
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()

    @classmethod
    def start(cls, program: str, environment: Mapping[str, str] | None = None) -> Child:
        """Start a fresh interpreter that runs a program, which calls `serve`; raise OSError if that is not possible."""
        if not sys.executable or getattr(sys, "frozen", False):  # a frozen program would start itself again
            raise OSError("sys.executable is not a Python")
        flags = ["-I", "-W", "ignore", *(["-B"] if sys.dont_write_bytecode else [])]
        command = [sys.executable, *flags, "-c", _PROGRAM + program, json.dumps(sys.path, default=str)]
        variables, pipe = {**os.environ, **(environment or {})}, subprocess.PIPE
        started = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=variables, start_new_session=True)
        return cls(started)

    @classmethod
    def fork(cls, run: Callable[[], None]) -> Child:
        """Fork this process, and run a function that calls `serve`; POSIX only."""
        return cls(_Fork(run))

    def ask(self, *parts: bytes, timeout: float) -> bytes:
        """Send a message, and return its answer; raise DiedError, or TimeoutError after so many seconds."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self._kill()

        timer = threading.Timer(min(timeout, threading.TIMEOUT_MAX), end)
        timer.start()
        try:
            with suppress(OSError):  # a process that is gone: the answer shows that
                _send(self._process.stdin, *parts)
            answer = _receive(self._process.stdout)
        finally:
            timer.cancel()
            timer.join()
        if late.is_set():
            self.close()
            raise TimeoutError
        if answer is None:
            raise self._died()
        return answer

    def close(self) -> int:
        """Let the process end by itself, or kill it; return its exit status, or minus its signal."""
        if self._status is None:
            with suppress(OSError):
                self._process.stdin.close()
            self._ends_by_itself()
            self._kill()  # also what it started
            self._status = self._process.wait(STOP_TIMEOUT)
            self._drain.join(STOP_TIMEOUT)
            self._process.stdout.close()
        return self._status

    def __enter__(self) -> Child:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is not None and self._status is None:
            self._kill()
        self.close()

    def _ends_by_itself(self) -> bool:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_TIMEOUT)
            return True
        return False

    def _kill(self) -> None:
        """Kill the process, and what it started."""
        if os.name == "posix":
            with suppress(ProcessLookupError, PermissionError):  # it has ended, or did not call setsid yet
                os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            self._process.kill()

    def _died(self) -> DiedError:
        by_itself = self._ends_by_itself()
        self._kill()  # if not: `close` would wait once more
        status = self.close()
        how = f"killed by {signal_name(-status)}" if status < 0 else f"exit status {status}"
        return DiedError(with_last_line(how if by_itself else "no longer answers", self._tail), status)

    def _read_errors(self) -> None:
        with self._process.stderr as stderr:
            while part := os.read(stderr.fileno(), 1 << 16):
                self._tail = (self._tail + part)[-TAIL:]


class _Fork:
    """A fork of this process that runs a function."""

    def __init__(self, run: Callable[[], None]) -> None:
        (stdin, self_stdin), (self_stdout, stdout), (self_stderr, stderr) = (os.pipe() for _ in range(3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that other threads are not there in the child
            self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                for number, end in enumerate((stdin, stdout, stderr)):
                    os.dup2(end, number)
                for end in (self_stdin, self_stdout, self_stderr):  # open here, they would hide the end of the caller
                    os.close(end)
                for caught in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(caught, signal.SIG_DFL)
                run()
                os._exit(0)
            except BaseException:  # the caller's code above this call is not to be unwound, or run, twice
                os._exit(1)
        for end in (stdin, stdout, stderr):
            os.close(end)
        self.stdin: IO[bytes] = os.fdopen(self_stdin, "wb")
        self.stdout, self.stderr = os.fdopen(self_stdout, "rb"), os.fdopen(self_stderr, "rb")
        self._status: int | None = None

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while self._status is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # SIGCHLD is ignored in the caller's process
                self._status = 0
                break
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() >= deadline:
                raise subprocess.TimeoutExpired("fork", timeout)
            else:
                time.sleep(0.002)
        return self._status

    def kill(self) -> None:
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer messages on standard input until it ends; what anything else prints is dropped, or goes to stderr."""
    inbox, outbox, errors = (os.fdopen(os.dup(number), mode) for number, mode in ((0, "rb"), (1, "wb"), (2, "wb")))
    _expect_crashes()
    for message in _messages(inbox):
        _reopen_streams(errors.fileno())
        _send(outbox, answer(message))


def _messages(inbox: IO[bytes]) -> Iterator[bytes]:
    """Yield messages; if the caller dies or waits no longer, end this process and its children."""
    messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def listen() -> None:
        with suppress(OSError):
            while (message := _receive(inbox)) is not None:
                messages.put(message)
        messages.put(None)
        time.sleep(STOP_TIMEOUT)
        if os.name == "posix":
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    while (message := messages.get()) is not None:
        yield message


def _expect_crashes() -> None:
    with suppress(ImportError, OSError, ValueError):  # no core files
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # out of memory, kill this process, not the caller's
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def _reopen_streams(errors: int) -> None:
    """Reopen the standard streams, whatever the last message did to them; output is dropped."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for source, target in ((nothing, 0), (nothing, 1), (errors, 2)):
        os.dup2(source, target)
    if nothing > 2:
        os.close(nothing)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)


def _send(pipe: IO[bytes], *parts: bytes) -> None:
    pipe.write(sum(map(len, parts)).to_bytes(_HEADER, "little"))
    for part in parts:
        pipe.write(part)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """Return the next message; None if the pipe has ended, or something else was written to it."""
    try:
        header = pipe.read(_HEADER)
        length = int.from_bytes(header, "little")
        message = pipe.read(length)
    except (MemoryError, OverflowError):
        return None
    return message if len(header) == _HEADER and len(message) == length else None


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def with_last_line(text: str, output: bytes) -> str:
    """Append the last line that a process wrote, if any, to the text."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return f"{text}: {shortened(printable(lines[-1]))}" if lines else text
