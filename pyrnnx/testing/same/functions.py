"""Calls of a user's function with the arguments of a layer or model, by name or by position, and its results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shortened, shown, warn
from pyrnnx.frontends.torch.tensors import as_numpy

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
Names = Mapping[str, Sequence[str]]  # spellings of each argument, its own name first
Parameter = inspect.Parameter


@dataclass(frozen=True)
class Call:
    """Arguments of a function: those in the order of its parameters, and the parameters of others by argument."""

    by_place: tuple[str, ...]
    by_name: Mapping[str, str]

    @property
    def takes(self) -> tuple[str, ...]:
        return (*self.by_place, *self.by_name)

    def __call__(self, function: Callable[..., Any], arrays: Mapping[str, Any]) -> Any:
        named = {parameter: arrays[name] for name, parameter in self.by_name.items()}
        return function(*(arrays[name] for name in self.by_place), **named)


def read_call(label: str, function: Callable[..., Any], order: Sequence[str], names: Names) -> Call:
    """Return how a function is called: see `pyrnnx.testing.assert_same`.

    `order` are the arguments for a call by place, the main one first. Those of `names` that are not in `order`, the
    weights, are passed only to a parameter of that name.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # C functions may have no signature
        return Call(tuple(order), {})
    name_of, taken = _lookup(names), dict[str, str]()
    for parameter in parameters:
        name = name_of(parameter.name)
        if name is not None and name not in taken.values() and _is_open(parameter):
            taken[parameter.name] = name
    first = next((parameter for parameter in parameters if parameter.kind <= Parameter.POSITIONAL_OR_KEYWORD), None)
    if first is not None and first.name not in taken and _is_open(first) and order[0] not in taken.values():
        taken[first.name] = order[0]
    left = [parameter for parameter in parameters if _is_open(parameter) and parameter.name not in taken]
    expected = "; ".join(", ".join(spellings) for spellings in names.values())
    unknown = shortened(", ".join(parameter.name for parameter in left))
    if any(parameter.default is Parameter.empty for parameter in left):
        required = [
            parameter for parameter in parameters if _is_open(parameter) and parameter.default is Parameter.empty
        ]
        known = [taken.get(parameter.name) for parameter in required]
        if len(known) == len(order) and all(
            name in (argument, None) or name not in order for name, argument in zip(known, order, strict=True)
        ):
            return Call(tuple(order), {})
        raise ArgumentError(
            f"assert_same: {label} has parameters of unknown names: {unknown}; expected parameters called, without "
            f"regard to case and underscores: {expected}; or as many as there are inputs, in their order: "
            f"{', '.join(names[name][0] if name in names else name for name in order)}"
        )
    if left and not {*order} <= {*taken.values()}:
        warn(f"assert_same: {label}: {unknown} is left at None because its name is none of these: {expected}")
    return _call(parameters, taken, order, names)


def _call(parameters: Sequence[Parameter], taken: Mapping[str, str], order: Sequence[str], names: Names) -> Call:
    nameless = [parameter.name for parameter in parameters if parameter.kind is Parameter.POSITIONAL_ONLY]
    by_place = [taken[name] for name in takewhile(taken.__contains__, nameless)]
    by_name = {name: parameter for parameter, name in taken.items() if parameter not in nameless}
    rest = [name for name in order if name not in taken.values()]
    kinds = {parameter.kind for parameter in parameters}
    if Parameter.VAR_KEYWORD in kinds:
        by_name |= {name: next(iter(names.get(name, (name,)))) for name in rest}
    elif Parameter.VAR_POSITIONAL in kinds and list(by_name) == list(order)[: len(by_name)]:
        # Parameters before *arrays are positional too.
        by_place, by_name = [*by_place, *by_name, *rest], {}
    return Call(tuple(by_place), by_name)


def _lookup(names: Names) -> Callable[[str], str | None]:
    """Return a function from spellings to arguments: exact, then ignoring case and underscores.

    An argument's own name, the first of its spellings, takes precedence over other arguments' spellings.
    """

    def plain(name: str) -> str:
        return "".join(letter for letter in name.lower() if letter.isalnum())

    ranked = [(spellings[0], name) for name, spellings in names.items()]
    ranked += [(spelling, name) for name, spellings in names.items() for spelling in spellings[1:]]
    exact, loose = dict(reversed(ranked)), {plain(spelling): name for spelling, name in reversed(ranked)}
    return lambda spelling: exact.get(spelling) or loose.get(plain(spelling))


def _is_open(parameter: Parameter) -> bool:
    """Return whether a call passes the parameter: it has no default, or the default None."""
    is_variable = parameter.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    return not is_variable and (parameter.default is Parameter.empty or parameter.default is None)


# Results


def named_results(label: str, value: Any, names: Names) -> dict[str, AnyArray]:
    """Return a function's results by output name, from a mapping, a tuple or one array.

    Tuples may be nested, as PyTorch's (output, (h_n, c_n)); None means a missing output.
    """
    if isinstance(value, Mapping):
        name_of = _lookup(names)
        arrays = {name_of(str(name)) or name: array for name, array in value.items()}
    else:
        values = list(flat(value))
        arrays = dict(zip([*names, *range(len(names), len(values))], values, strict=False))
    if any(name not in names for name in arrays):
        returned = f"{len(arrays)} outputs"
        if isinstance(value, Mapping):
            returned = f"outputs named {shortened(', '.join(map(shown, value)))}"
        allowed = ", ".join(spellings[0] for spellings in names.values())
        raise ArgumentError(f"assert_same: {label} returned {returned}; expected at most {allowed}")
    return {
        name: as_numpy(f"assert_same: {label}", f"output {names[name][0]}", array)
        for name, array in arrays.items()
        if array is not None
    }


def flat(value: Any) -> Iterator[Any]:
    """Yield the arrays of nested tuples; a list of numbers is an array."""
    if isinstance(value, tuple) or (isinstance(value, list) and any(hasattr(item, "shape") for item in value)):
        for item in value:
            yield from flat(item)
    else:
        yield value


def chosen_outputs(names: Sequence[str] | None, known: Collection[str]) -> Collection[str]:
    """Return the names of outputs that a caller passes, by default all."""
    if names is None:
        return known
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    unknown = [name for name in names if name not in known] if is_list else [names]
    if unknown or not names:
        what = f"is {shown(names)}" if not is_list or not names else f"has {shown(unknown[0])}"
        raise ArgumentError(f"assert_same: outputs {what}; expected names out of {', '.join(known)}")
    return names
