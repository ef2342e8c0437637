"""Calls of a user's function with the arguments of a layer or model, by name or by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
    """Arguments of a function.

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
    """Normalize a name."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def lookup(names: Mapping[str, Sequence[str]]) -> Callable[[str], str | None]:
    """Return a function from spellings to arguments: exact, then ignoring case and underscores.

    An argument's own name, the first of its spellings, takes precedence over other arguments' spellings.
    """
    spellings = {name: tuple(ones) for name, ones in names.items()}
    ranked = [(spelling, name) for name, ones in spellings.items() for spelling in ones[:1]]
    ranked += [(spelling, name) for name, ones in spellings.items() for spelling in ones[1:]]
    exact: dict[str, str] = {}
    plain: dict[str, str] = {}
    for spelling, name in ranked:
        exact.setdefault(spelling, name)
        plain.setdefault(_plain(spelling), name)
    return lambda given: exact.get(given) or plain.get(_plain(given))


def read_call(
    label: str,
    function: Callable[..., Any],
    order: Sequence[str],
    names: Mapping[str, Sequence[str]],
    weights: Sequence[str] = (),
) -> Call:
    """Return how a function is called: see `pyrnnx.testing.assert_same`.

    `order` are the arguments for a call by place, the main one first. `names` are the spellings of each argument, its
    own name first; arguments that are not in `order` (weights) are passed only to a parameter of that name, and
    those of `weights` to ``**arrays`` too.

    Raises
    ------
    ArgumentError
        Parameters that match no argument.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # C functions may have no signature
        return Call(tuple(order), {})
    taken = _by_names(parameters, names)
    places = [parameter for parameter in parameters if parameter.kind in _BY_PLACE]
    if places and places[0].name not in taken and _is_open(places[0]) and order[0] not in taken.values():
        taken[places[0].name] = order[0]
    unknown = [parameter.name for parameter in parameters if parameter.name not in taken and _is_required(parameter)]
    if not unknown:
        if not {*order} <= {*taken.values()}:
            _warn_left_out(
                label,
                [parameter.name for parameter in parameters if parameter.name not in taken and _is_open(parameter)],
                names,
            )
        bound = {lookup(names)(keyword) for keyword in _bound_keywords(function)}
        return _call(parameters, taken, order, names, [name for name in weights if name not in bound])
    required = [taken.get(parameter.name) for parameter in parameters if _is_required(parameter)]
    if len(required) == len(order) and all(
        parameter == name or parameter not in order for parameter, name in zip(required, order, strict=True)
    ):
        return Call(tuple(order), {})
    expected = "; ".join(", ".join(names[name]) for name in names)
    raise ArgumentError(
        f"assert_same: {label} has parameters of unknown names: {shortened(', '.join(unknown))}; expected parameters "
        f"called, without regard to case and underscores: {expected}; or as many as there are inputs, in their order: "
        f"{', '.join(names[name][0] if name in names else name for name in order)}"
    )


def _warn_left_out(label: str, left_out: Sequence[str], names: Mapping[str, Sequence[str]]) -> None:
    if left_out:
        expected = "; ".join(", ".join(names[name]) for name in names)
        warn(
            f"assert_same: {label}: {shortened(', '.join(left_out))} is left at None because its name is none "
            f"of these: {expected}"
        )


def _by_names(parameters: Sequence[inspect.Parameter], names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the argument of each parameter by its name; each argument once."""
    name_of, taken = lookup(names), dict[str, str]()
    for parameter in parameters:
        name = name_of(parameter.name)
        if name is not None and name not in taken.values() and _is_open(parameter):
            taken[parameter.name] = name
    return taken


def _bound_keywords(function: Any) -> set[str]:
    """Return the keywords that are already bound, which the signature hides in ``**arrays``.

    A partial function binds keywords; a method of a layer binds the layer's weights.
    """
    keywords: set[str] = set()
    while isinstance(function, partial):
        keywords |= function.keywords.keys()
        function = function.func
    return keywords | set(getattr(getattr(function, "__self__", None), "weights", ()))


def _is_open(parameter: inspect.Parameter) -> bool:
    """Return whether a call passes the parameter: it has no default, or the default None."""
    variable = parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return not variable and (parameter.default is inspect.Parameter.empty or parameter.default is None)


def _is_required(parameter: inspect.Parameter) -> bool:
    return _is_open(parameter) and parameter.default is inspect.Parameter.empty


def _call(
    parameters: Sequence[inspect.Parameter],
    taken: Mapping[str, str],
    order: Sequence[str],
    names: Mapping[str, Sequence[str]],
    weights: Sequence[str],
) -> Call:
    nameless = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.POSITIONAL_ONLY]
    by_place = [taken[name] for name in takewhile(taken.__contains__, nameless)]
    by_name = {name: parameter for parameter, name in taken.items() if parameter not in nameless}
    rest = [name for name in order if name not in taken.values()]
    kinds = {parameter.kind for parameter in parameters}
    if inspect.Parameter.VAR_KEYWORD in kinds:
        rest += [name for name in weights if name not in taken.values()]
        by_name |= {name: next(iter(names.get(name, (name,)))) for name in rest}
    elif inspect.Parameter.VAR_POSITIONAL in kinds and list(by_name) == list(order)[: len(by_name)]:
        # Parameters before *arrays are positional too.
        by_place, by_name = [*by_place, *by_name, *rest], {}
    return Call(tuple(by_place), by_name)
