"""Table of the exit statuses of all commands."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Exit status of a command; `MEANINGS` has descriptions."""

    SUCCESS = 0
    DIFFERENT = 1
    REJECTED = 2
    INTERRUPTED = 130  # 128 + SIGINT, as shells report it
    CLOSED_PIPE = 141  # 128 + SIGPIPE


MEANINGS = {
    Status.SUCCESS: "success; of two things compared: the same",
    Status.DIFFERENT: "they differ, or a check failed",
    Status.REJECTED: "an error: an input or option is rejected, or a result cannot be written",
    Status.INTERRUPTED: "interrupted",
    Status.CLOSED_PIPE: "the reader of the output has closed it",
}
