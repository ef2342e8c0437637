"""The process of the command `pyrnnx`: what fails while pyrnnx is imported is told as the command tells errors."""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from types import TracebackType


def is_command() -> bool:
    """Whether this process was started as ``pyrnnx`` or as ``python -m pyrnnx``, which imports pyrnnx first."""
    words = sys.orig_argv
    as_module = "-mpyrnnx" in words or ("-m", "pyrnnx") in pairwise(words)
    name = sys.argv[0] if sys.argv else ""
    return as_module if name == "-m" else os.path.splitext(os.path.basename(name))[0] == "pyrnnx"


def tell(kind: type[BaseException], error: BaseException, where: TracebackType | None) -> None:
    """As `sys.excepthook`: a rejected environment variable in one line, with status 2; nothing of an interrupt."""
    rejected = any(one.__name__ == "PyrnnxError" for one in kind.__mro__)
    if "--debug" in sys.argv or not (rejected or issubclass(kind, KeyboardInterrupt)):
        sys.__excepthook__(kind, error, where)
    elif rejected:
        if sys.stderr is not None:
            sys.stderr.write(f"pyrnnx: {error}\n")
        raise SystemExit(2)  # Python ends with it, as of any SystemExit


if is_command():
    sys.excepthook = tell
