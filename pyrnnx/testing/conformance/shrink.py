"""Search for the simplest case that still fails.

Libraries that shrink do so for values that they generated themselves (hypothesis) or for files. A case from a table
needs the loop below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pyrnnx import reference
from pyrnnx.testing.cases import Case

Candidates = Iterator[Case]
PLAIN = Case("plain", "RNN")  # its fields are the defaults
_FUNCTIONS = ("activations", "activation_alpha", "activation_beta", "activations_alpha", "activations_beta")


def shrink(case: Case, fails: Callable[[Case], bool], *, tries: int = 200) -> Case:
    """Return a simpler failing case: fewer attributes and inputs, one direction, smaller sizes.

    Every step moves towards the plainest case of the operator (hidden_size written, as exporters do), so that only what
    the failure needs remains. The result is deterministic if `fails` is.

    Parameters
    ----------
    case : Case
        A failing case.
    fails : callable
        Returns whether another case fails in the same way.
    tries : int
        Maximum number of calls of `fails`.

    Returns
    -------
    Case
        A case with the same name, because names seed arrays; `case` if nothing simpler fails.
    """
    tried = {repr(case)}
    progress = True
    while progress:
        progress = False
        for simpler in _PASSES:
            candidates = simpler(case)
            while (candidate := next(candidates, None)) is not None:
                if repr(candidate) in tried:
                    continue
                if len(tried) > tries:
                    return case
                tried.add(repr(candidate))
                if fails(candidate):
                    case, candidates, progress = candidate, simpler(candidate), True
    return case


def _fewer_attributes(case: Case) -> Candidates:
    written = {"hidden_size": case.H} if case.family == "ONNX" or "hidden_size" in case.attributes else {}
    if case.num_directions == 1:
        yield replace(case, attributes=written)
    if "hidden_size" not in case.attributes and written:
        yield _with(case, **written)
    without_functions = {key: value for key, value in case.attributes.items() if key not in _FUNCTIONS}
    if len(without_functions) < len(case.attributes):
        yield replace(case, attributes=without_functions)
    for name in case.attributes:
        if name not in (*_FUNCTIONS, "direction", "hidden_size"):
            yield _with(case, **{name: None})


def _fewer_inputs(case: Case) -> Candidates:
    if case.inputs:
        yield replace(case, inputs=())
    for name in case.inputs if len(case.inputs) > 1 else ():
        yield replace(case, inputs=tuple(other for other in case.inputs if other != name))


def _plainer_fields(case: Case) -> Candidates:
    """Yield plainer dtype, scale and NaNs, and, of an ONNX case, opset."""
    for name in ("dtype", "scale", "nan"):
        yield replace(case, **{name: getattr(PLAIN, name)})
    if case.family == "ONNX":
        yield _with(replace(case, opset=PLAIN.opset), output_sequence=None)  # not there from opset 7 on


def _one_direction(case: Case) -> Candidates:
    """Yield forward, or reverse; of two directions, each with its own functions."""
    if case.attributes.get("direction") is None:
        return
    for direction in (None, "reverse"):
        if case.num_directions == 2:
            yield _with(case, direction=direction, **_own_functions(case, backward=direction is not None))
        else:
            yield _with(case, direction=direction)


def _own_functions(case: Case, backward: bool) -> dict[str, Any]:
    """Return activations and parameters of one direction; none if both share them, as in OpenVINO."""
    names = case.attributes.get("activations")
    count = len(reference.DEFAULT_ACTIVATIONS[case.cell])
    if case.family == "OpenVINO" or names is None or len(names) != 2 * count:
        return {}
    chosen: dict[str, Any] = {"activations": list(names[count:] if backward else names[:count])}
    for key, takers in (("activation_alpha", reference.ALPHA), ("activation_beta", reference.BETA)):
        taken, own = _takers(names[:count], takers), _takers(chosen["activations"], takers)
        values = list(case.attributes.get(key, ()))
        chosen[key] = (values[taken:] if backward else values[:own]) or None
    return chosen


def _default_functions(case: Case) -> Candidates:
    """Yield canonical names, default parameters, then default functions.

    Replacing a function also drops the parameters that it consumed.
    """
    names = list(case.attributes.get("activations", ()))
    yield _with(case, **_spelt(case))
    if names and "scaledtanh" not in (name.lower() for name in names):  # it has no default parameters
        yield _with(case, **dict.fromkeys(_FUNCTIONS[1:]))
    defaults = reference.DEFAULT_ACTIVATIONS[case.cell]
    for place, name in enumerate(names):
        default = defaults[place % len(defaults)]
        default = default if case.family == "ONNX" else default.lower()
        if name != default:
            changed: dict[str, Any] = {"activations": [*names[:place], default, *names[place + 1 :]]}
            if case.family == "ONNX":  # whose functions take the next parameter; OpenVINO's that of their place
                for key, takers in (("activation_alpha", reference.ALPHA), ("activation_beta", reference.BETA)):
                    values, before = list(case.attributes.get(key, ())), _takers(names[:place], takers)
                    changed[key] = values[:before] + values[before + _takers([name], takers) :] or None
            yield _with(case, **changed)


def _spelt(case: Case) -> dict[str, Any]:
    """Return `activations` and `direction` in the spelling of the operator's text."""
    canonical = {name.lower(): name if case.family == "ONNX" else name.lower() for name in reference.ACTIVATIONS}
    names, direction = case.attributes.get("activations"), case.attributes.get("direction")
    spelt = {"direction": None if direction is None else direction.lower()}
    return spelt | ({} if names is None else {"activations": [canonical[name.lower()] for name in names]})


def _fuller_rows(case: Case) -> Candidates:
    """Yield no lengths, then each row at its full length."""
    if case.lens is None:
        return
    yield replace(case, lens=None)
    for row, length in enumerate(case.lens):
        if length != case.T:
            yield replace(case, lens=(*case.lens[:row], case.T, *case.lens[row + 1 :]))


def _smaller_sizes(case: Case) -> Candidates:
    """Yield 1, then half, then one less; a size of 0 becomes 1 unless it matters."""
    for T in _smaller(case.T):
        yield replace(case, T=T, lens=None if case.lens is None else tuple(min(length, T) for length in case.lens))
    for N in _smaller(case.N):
        if case.lens is None:
            yield replace(case, N=N)
        else:  # any rows that follow each other
            for first in range(max(case.N - N, 0) + 1):
                yield replace(case, N=N, lens=(case.lens or (case.T,))[first : first + N])
    for I in _smaller(case.I):
        yield replace(case, I=I)
    for H in _smaller(case.H):
        yield _with(replace(case, H=H), **({"hidden_size": H} if "hidden_size" in case.attributes else {}))


def _smaller(size: int) -> list[int]:
    return [1] if size == 0 else [smaller for smaller in dict.fromkeys((1, size // 2, size - 1)) if 0 < smaller < size]


def _with(case: Case, **attributes: Any) -> Case:
    """Return the case with other attributes; None removes one."""
    changed = {**case.attributes, **attributes}
    return replace(case, attributes={key: value for key, value in changed.items() if value is not None})


def _takers(names: Any, takers: Any) -> int:
    """Return how many of the functions take a parameter."""
    lower = {name.lower() for name in takers}
    return sum(name.lower() in lower for name in names)


_PASSES = (
    _fewer_attributes,
    _fewer_inputs,
    _fuller_rows,
    _one_direction,
    _default_functions,
    _plainer_fields,
    _smaller_sizes,
)


def cost(case: Case) -> tuple[int, ...]:
    """Return the complexity of a case as a sort key: what is set first, then its numbers."""
    special = len(case.attributes) + len(case.inputs) + (case.lens is not None)
    return special, case.num_directions * case.N * max(case.T, 1) * (case.I + case.H), case.T, case.N, case.I, case.H
