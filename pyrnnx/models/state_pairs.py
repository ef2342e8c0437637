"""Pairs of an output and the input that it becomes in the next call, from the caller or from names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.operator.tensor_info import TensorInfo, may_agree

Pair = tuple[TensorInfo, TensorInfo]  # an output, and the input that it becomes

# Affixes of the names of a state after a call and before it; "*" is the common stem: "hn" and "h0", "new_h" and "h".
_AFTER: tuple[str, ...] = (
    *("*", "*n", "*N", "*o", "*_n", "*_N", "*_o", "*_out", "*Out", "*_output", "out_*", "output_*", "Y_*"),
    *("*_new", "new_*", "*_next", "next_*", "*_updated", "updated_*", "*_last", "last_*", "*_final", "final_*"),
    *("present_*", "present.*"),
)
_BEFORE: tuple[str, ...] = (
    *("*", "*0", "*_0", "*_in", "*In", "*_input", "in_*", "input_*", "*_old", "old_*", "*_prev", "prev_*"),
    *("*_init", "init_*", "*_initial", "initial_*", "past_*", "past.*"),
)


def pairs_of(
    label: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], states: Mapping[str, str] | None
) -> dict[str, str]:
    """Return {output: input of the next call}, from `states`, whose names may be aliases, or by matching names."""
    if states is None:
        pairs = _matching_pairs(label, inputs, outputs)
    else:
        pairs = _checked_pairs(label, inputs, outputs, states)
    return {output.name: own.name for output, own in pairs}


def candidates(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> str:
    """List all pairs with compatible dtypes and shapes, for a message."""
    return _listed((output, own) for output in outputs for own in inputs if _agree(output, own))


def _checked_pairs(
    label: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], states: Mapping[str, str]
) -> list[Pair]:
    if not isinstance(states, Mapping):
        raise ArgumentError(
            f"{label}: states is {shown(states)}; expected a mapping of outputs' names to inputs' names"
        )
    pairs: list[Pair] = []
    for output_name, input_name in states.items():
        output = _named(label, "output", outputs, output_name)
        own = _named(label, "input", inputs, input_name)
        for other_output, other_input in pairs:
            if other_output is output or other_input is own:
                name = f"output {shown(output.name)}" if other_output is output else f"input {shown(own.name)}"
                raise ArgumentError(f"{label}: states has {name} twice")
        if own.dtype is None:
            raise ArgumentError(f"{label}: states: input {shown(own.name)} declares no dtype; expected a tensor")
        if output.dtype not in (None, own.dtype) or not may_agree(output.shape, own.shape):
            raise ArgumentError(
                f"{label}: states: output {described(output)} cannot be input {described(own)}; expected the same "
                "dtype and compatible shapes"
            )
        pairs.append((output, own))
    return pairs


def _named(label: str, kind: str, infos: Sequence[TensorInfo], name: Any) -> TensorInfo:
    known = infos if isinstance(name, str) else ()  # comparing an array to a name returns an array
    exact = [info for info in known if info.name == name]
    for info in exact or known:
        if info.name == name or name in info.aliases:
            return info
    allowed = ", ".join(info.name for info in infos)
    raise ArgumentError(f"{label}: states: {kind} {shown(name)} is unknown; expected {shortened(allowed)}")


def _matching_pairs(label: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> list[Pair]:
    """Return the pairs whose names match, if they are unambiguous and leave an input to push."""
    before = [(own, _stems(own.name, _BEFORE)) for own in inputs]
    after = [(output, _stems(output.name, _AFTER)) for output in outputs]
    pairs = [
        (output, own)
        for output, stems in after
        for own, others in before
        if _agree(output, own) and not stems.isdisjoint(others)
    ]
    names = Counter((kind, info.name) for pair in pairs for kind, info in enumerate(pair))
    if max(names.values(), default=0) > 1 or (pairs and len(pairs) == len(inputs)):
        raise ArgumentError(
            f"{label}: states: the names match in more than one way, or leave no input to push: {_listed(pairs)}; "
            "expected states={output: input}, {} for none"
        )
    return pairs


def _agree(output: TensorInfo, own: TensorInfo) -> bool:
    return own.dtype is not None and output.dtype == own.dtype and may_agree(output.shape, own.shape)


def _stems(name: str, affixes: Iterable[str]) -> set[str]:
    """Return the parts of a name that "*" can stand for; none is empty."""
    stems = set()
    for affix in affixes:
        first, _, last = affix.partition("*")
        if len(name) > len(first) + len(last) and name.startswith(first) and name.endswith(last):
            stems.add(name[len(first) : len(name) - len(last)])
    return stems


def _listed(pairs: Iterable[Pair]) -> str:
    return shortened(", ".join(f"{described(output)} -> {described(own)}" for output, own in pairs)) or "none"


def described(info: TensorInfo) -> str:
    """Return name, dtype and declared shape for a message."""
    shape = "" if info.shape is None else f" [{', '.join('?' if size is None else str(size) for size in info.shape)}]"
    return f"{shown(info.name)} ({info.dtype}{shape})"
