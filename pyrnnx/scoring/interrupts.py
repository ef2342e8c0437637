"""Ctrl-C during a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def remembered_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if Ctrl-C arrived in the block.

    Python drops a KeyboardInterrupt that is raised in a destructor, such as that of Dask's futures. A handler that the
    program has installed stays, and then the function does nothing.
    """
    arrived = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal arrived
        arrived = True
        signal.default_int_handler(number, frame)

    def check() -> None:
        if arrived:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield check
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield check
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)
