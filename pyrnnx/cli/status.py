"""The exit statuses of every command: one table."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """What a command ends with; `MEANINGS` says it in words."""

    SUCCESS = 0
    DIFFERENT = 1
    REJECTED = 2
    INTERRUPTED = 130  # the last two: what a shell says of a signal's victim
    CLOSED_PIPE = 141


MEANINGS = {
    Status.SUCCESS: "success; of two things compared: the same",
    Status.DIFFERENT: "they differ, or a check failed",
    Status.REJECTED: "an error: an input or option is rejected, or a result cannot be written",
    Status.INTERRUPTED: "interrupted",
    Status.CLOSED_PIPE: "nobody reads the output any more",
}
