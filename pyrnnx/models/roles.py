"""Roles of integer inputs of a model: the numbers that it can take, and those that show a difference."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_LENGTHS = re.compile(r"(?:^|[^a-z]|seq|sequence)len(?:s|gths?)?(?:$|[^a-z])")


class Role(NamedTuple):
    """Role of an integer input."""

    is_length: bool = False  # whether its numbers are lengths of rows
    is_mask: bool = False  # whether its numbers are 0 and 1
    rows: int | None = None  # that its numbers select from, if that is known
    values: tuple[int, ...] = ()  # numbers around those with which the model compares it
    reach: int = 0  # rows that numbers computed from it select from: its `rows` if it selects from no others


def named_role(name: str) -> Role:
    """Return the role that a name such as "sequence_lens", "x_length" or "attention_mask" has everywhere."""
    lower = name.lower()
    return Role(is_length=_LENGTHS.search(lower) is not None, is_mask="mask" in lower)


def merged(roles: Iterable[Role]) -> Role:
    """Return one role for an input that has several; its numbers select from the fewest rows."""
    roles = list(roles)
    reach = max((role.reach for role in roles), default=0)
    return Role(
        any(role.is_length for role in roles),
        any(role.is_mask for role in roles),
        min((role.rows for role in roles if role.rows is not None), default=reach or None),
        tuple(sorted({value for role in roles for value in role.values})),
        reach,
    )
