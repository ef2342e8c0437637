"""How somebody's function is called with what a layer or a model takes: by the names of its parameters, or by place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pyrnnx.errors import ArgumentError, shortened, warn

# Names of other frameworks and of everyday code; case, underscores and dots never matter.
EVERYDAY_NAMES: Mapping[str, tuple[str, ...]] = {
    "X": ("X", "input", "inputs"),
    "sequence_lens": ("sequence_lens", "sequence_lengths", "seq_lens", "lengths", "lens"),
    "initial_h": ("initial_h", "initial_hidden_state", "H", "h0"),
    "initial_c": ("initial_c", "initial_cell_state", "C", "c0"),
    "W": ("W", "weight_ih"),
    "R": ("R", "weight_hh"),
    "B": ("B", "bias"),
    "P": ("P", "peepholes"),
}
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Call:
    """How a function takes its arguments.

    Attributes
    ----------
    by_place, by_name : tuple, mapping
        Arguments in the order of its parameters, and the parameters of others by argument.
    """

    by_place: tuple[str, ...]
    by_name: Mapping[str, str]

    @property
    def takes(self) -> tuple[str, ...]:
        return (*self.by_place, *self.by_name)

    def __call__(self, function: Callable[..., Any], arrays: Mapping[str, Any]) -> Any:
        named = {parameter: arrays[name] for name, parameter in self.by_name.items()}
        return function(*(arrays[name] for name in self.by_place), **named)


def _plain(name: str) -> str:
    """A name as far as it matters."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def lookup(names: Mapping[str, Sequence[str]]) -> Callable[[str], str | None]:
    """What a spelling of a name stands for: as it is spelt, else without regard to case and underscores.

    A name of an argument's own, the first of its spellings, goes before the same among the others'.
    """
    spellings = {name: tuple(ones) for name, ones in names.items()}
    ranked = [(one, name) for name, ones in spellings.items() for one in ones[:1]]
    ranked += [(one, name) for name, ones in spellings.items() for one in ones[1:]]
    exact: dict[str, str] = {}
    plain: dict[str, str] = {}
    for one, name in ranked:
        exact.setdefault(one, name)
        plain.setdefault(_plain(one), name)
    return lambda given: exact.get(given) or plain.get(_plain(given))


def read_call(
    label: str, function: Callable[..., Any], order: Sequence[str], names: Mapping[str, Sequence[str]]
) -> Call:
    """How a function is called: see `pyrnnx.testing.assert_same`.

    Parameters
    ----------
    order : sequence of str
        The arguments there are, in the order for a call by place, the main one first.
    names : mapping
        The spellings of each argument, its own name first; those that are not in `order` (weights) are given only where
        a parameter is called so.

    Raises
    ------
    ArgumentError
        Parameters of which it cannot be told what they are.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # what is written in C may not say
        return Call(tuple(order), {})
    taken = _by_names(parameters, names)
    places = [one for one in parameters if one.kind in _BY_PLACE]
    if places and places[0].name not in taken and _is_open(places[0]) and order[0] not in taken.values():
        taken[places[0].name] = order[0]
    unknown = [one.name for one in parameters if one.name not in taken and _is_required(one)]
    if not unknown:
        if not {*order} <= {*taken.values()}:
            _tell_left_out(label, [one.name for one in parameters if one.name not in taken and _is_open(one)], names)
        return _call(parameters, taken, order, names)
    required = [taken.get(one.name) for one in parameters if _is_required(one)]
    if len(required) == len(order) and all(
        one == name or one not in order for one, name in zip(required, order, strict=True)
    ):
        return Call(tuple(order), {})
    expected = "; ".join(", ".join(names[name]) for name in names)
    raise ArgumentError(
        f"assert_same: {label} has parameters of unknown names: {shortened(', '.join(unknown))}; expected parameters "
        f"called, without regard to case and underscores: {expected}; or as many as there are inputs, in their order: "
        f"{', '.join(names[name][0] if name in names else name for name in order)}"
    )


def _tell_left_out(label: str, left_out: Sequence[str], names: Mapping[str, Sequence[str]]) -> None:
    if left_out:
        expected = "; ".join(", ".join(names[name]) for name in names)
        warn(
            f"assert_same: {label}: {shortened(', '.join(left_out))} is left at None, for its name is none of these: "
            f"{expected}"
        )


def _by_names(parameters: Sequence[inspect.Parameter], names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The arguments by the parameters that are called so; each once."""
    name_of, taken = lookup(names), dict[str, str]()
    for one in parameters:
        name = name_of(one.name)
        if name is not None and name not in taken.values() and _is_open(one):
            taken[one.name] = name
    return taken


def _is_open(one: inspect.Parameter) -> bool:
    """Whether a call has to, or may, say it: what has a value of its own keeps it."""
    variable = one.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return not variable and (one.default is inspect.Parameter.empty or one.default is None)


def _is_required(one: inspect.Parameter) -> bool:
    return _is_open(one) and one.default is inspect.Parameter.empty


def _call(
    parameters: Sequence[inspect.Parameter],
    taken: Mapping[str, str],
    order: Sequence[str],
    names: Mapping[str, Sequence[str]],
) -> Call:
    nameless = [one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_ONLY]
    by_place = [taken[name] for name in takewhile(taken.__contains__, nameless)]
    by_name = {name: parameter for parameter, name in taken.items() if parameter not in nameless}
    rest = [name for name in order if name not in taken.values()]
    kinds = {one.kind for one in parameters}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        by_name |= {name: next(iter(names.get(name, (name,)))) for name in rest}
    elif inspect.Parameter.VAR_POSITIONAL in kinds and list(by_name) == list(order)[: len(by_name)]:
        # What stands before *arrays is given by place, too.
        by_place, by_name = [*by_place, *by_name, *rest], {}
    return Call(tuple(by_place), by_name)
