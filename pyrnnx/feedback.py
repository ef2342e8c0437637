"""Which outputs of a model are inputs of its next call: as its caller says, or as their names do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.tensor_info import TensorInfo, may_agree

Pair = tuple[TensorInfo, TensorInfo]  # an output, and the input that it becomes

# What the names of a state after a call and before it have around what they share: "hn" and "h0", "new_h" and "h".
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
    """Inputs by the outputs that they are in the next call.

    Parameters
    ----------
    label : str
        How errors name the model.
    inputs, outputs : sequence of TensorInfo
        The model's.
    states : mapping or None
        Names of outputs to names of inputs, aliases too; None: found by the names.

    Raises
    ------
    ArgumentError
        Names that are unknown, or given twice; an output that cannot be the input, by its dtype or shape; pairs that
        are not the only ones by their names.
    """
    found = _found(label, inputs, outputs) if states is None else _given(label, inputs, outputs, states)
    return {output.name: own.name for output, own in found}


def candidates(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> str:
    """Pairs that dtypes and shapes allow, for a message."""
    return _listed((output, own) for output in outputs for own in inputs if _agree(output, own))


def candidates_of(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> str:
    """Of each input, the outputs that dtypes and shapes allow, or of these the ones that names tell; for a message."""
    found = []
    for own in inputs:
        stems = _stems(own.name, _BEFORE)
        agreeing = [output for output in outputs if _agree(output, own)]
        named = [output for output in agreeing if not stems.isdisjoint(_stems(output.name, _AFTER))]
        names = ", ".join(shown(output.name) for output in named or agreeing) or "none"
        found.append(f"{names} -> {described(own)}")
    return shortened("; ".join(found))


def _given(
    label: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], states: Mapping[str, str]
) -> list[Pair]:
    if not isinstance(states, Mapping):
        raise ArgumentError(
            f"{label}: states is {shown(states)}; expected a mapping of outputs' names to inputs' names"
        )
    found: list[Pair] = []
    for output_name, input_name in states.items():
        output = _named(label, "output", outputs, output_name)
        own = _named(label, "input", inputs, input_name)
        for other, taken in found:
            if other is output or taken is own:
                what = f"output {shown(output.name)}" if other is output else f"input {shown(own.name)}"
                raise ArgumentError(f"{label}: states has {what} twice")
        if own.dtype is None:
            raise ArgumentError(
                f"{label}: states: input {shown(own.name)} declares no dtype; expected a tensor's input"
            )
        if output.dtype not in (None, own.dtype) or not may_agree(output.shape, own.shape):
            raise ArgumentError(
                f"{label}: states: output {described(output)} cannot be input {described(own)}; expected the same "
                "dtype, and shapes that agree"
            )
        found.append((output, own))
    return found


def _named(label: str, kind: str, infos: Sequence[TensorInfo], name: Any) -> TensorInfo:
    known = infos if isinstance(name, str) else ()  # an array is equal to a name in none of its elements, or in some
    exact = [info for info in known if info.name == name]
    for info in exact or known:
        if info.name == name or name in info.aliases:
            return info
    allowed = ", ".join(info.name for info in infos)
    raise ArgumentError(f"{label}: states: {kind} {shown(name)} is unknown; expected {shortened(allowed)}")


def _found(label: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> list[Pair]:
    """By the names, where these allow one way only, and leave an input that is not fed back."""
    before = [(own, _stems(own.name, _BEFORE)) for own in inputs]
    after = [(output, _stems(output.name, _AFTER)) for output in outputs]
    found = [
        (output, own)
        for output, stems in after
        for own, others in before
        if _agree(output, own) and not stems.isdisjoint(others)
    ]
    names = Counter((kind, one.name) for pair in found for kind, one in enumerate(pair))
    if max(names.values(), default=0) > 1 or (found and len(found) == len(inputs)):
        raise ArgumentError(
            f"{label}: states: more than one way of feeding back is possible by the names, or nothing is left to push: "
            f"{_listed(found)}; expected states={{output: input}}, {{}} for none"
        )
    return found


def _agree(output: TensorInfo, own: TensorInfo) -> bool:
    return own.dtype is not None and output.dtype == own.dtype and may_agree(output.shape, own.shape)


def _stems(name: str, affixes: Iterable[str]) -> set[str]:
    """What a name has in the place of "*", which is never nothing."""
    found = set()
    for affix in affixes:
        first, _, last = affix.partition("*")
        if len(name) > len(first) + len(last) and name.startswith(first) and name.endswith(last):
            found.add(name[len(first) : len(name) - len(last)])
    return found


def _listed(pairs: Iterable[Pair]) -> str:
    return shortened(", ".join(f"{described(output)} -> {described(own)}" for output, own in pairs)) or "none"


def described(info: TensorInfo) -> str:
    """The name, dtype and declared shape, for a message."""
    shape = "" if info.shape is None else f" [{', '.join('?' if one is None else str(one) for one in info.shape)}]"
    return f"{shown(info.name)} ({info.dtype}{shape})"
