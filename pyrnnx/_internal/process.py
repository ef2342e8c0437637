"""One-line errors for a command `pyrnnx` that fails while pyrnnx is imported, as for a bad environment variable.

The entry point of the command, `pyrnnx.cli.main`, cannot do this: Python imports pyrnnx, which reads the environment,
before any code of the command runs. So pyrnnx calls `report_import_errors` before its other imports; in all other
processes, it changes nothing.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from types import TracebackType


def is_command() -> bool:
    """Return whether this process was started as ``pyrnnx`` or ``python -m pyrnnx``."""
    words = sys.orig_argv
    as_module = "-mpyrnnx" in words or ("-m", "pyrnnx") in pairwise(words)
    name = sys.argv[0] if sys.argv else ""  # "-m" while Python still looks for the module
    return as_module if name == "-m" else os.path.splitext(os.path.basename(name))[0] == "pyrnnx"


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a `PyrnnxError` in one line and exit with status 2; print nothing for an interrupt, else a traceback."""
    rejected = any(base.__name__ == "PyrnnxError" for base in kind.__mro__)  # its module may not be imported yet
    if "--debug" in sys.argv or not (rejected or issubclass(kind, KeyboardInterrupt)):
        sys.__excepthook__(kind, error, trace)
    elif rejected:
        if sys.stderr is not None:
            sys.stderr.write(f"pyrnnx: {error}\n")
        raise SystemExit(2)  # Python exits with this status, also from a hook


def report_import_errors() -> None:
    """Set `sys.excepthook` to `report` if this is a process of the command."""
    if is_command():
        sys.excepthook = report
