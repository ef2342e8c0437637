"""The last three lines of `pyrnnx check`: right or wrong, how fast, and whether to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyrnnx.comparison.distances import largest
from pyrnnx.errors import shown

if TYPE_CHECKING:
    from pyrnnx.bench.measured import Measurement
    from pyrnnx.testing.models import ModelCheck, RuntimeCheck

OWN = "pyrnnx"
FASTER, SLOWER = 1.1, 0.95  # ratios of times: between them, a change is not worth it
UNSTEADY = 1.25  # upper over lower quartile of ratios: other programs disturb the times
_VISIBLE = 1e-5  # distance from the oracle that is more than rounding of float32


def verdict(check: ModelCheck, speeds: Sequence[Measurement], door: str, peer: str) -> dict[str, str]:
    """Return the three lines by "right", "speed" and "worth"; without times the first alone.

    `door` is what replaces the API of `peer`.
    """
    lines = {"right": _right(check)}
    if speeds:
        lines["speed"] = f"Speed: {'; '.join(map(_speed, speeds))}"
        lines["worth"] = f"Worth it: {_worth(check, speeds, door, peer)}"
    return lines


def guessed_sizes(sizes: Mapping[str, int]) -> str:
    """Return a warning about sizes that were guessed, with the options that set them; "" if there are none."""
    if not sizes:
        return ""
    named = [f"--dim {name}=SIZE" for name in sizes if " axis " not in name]
    unnamed = dict.fromkeys(f"--input {name.rpartition(' axis ')[0]}=FILE.npy" for name in sizes if " axis " in name)
    words = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return f"warning: sizes were guessed ({words}); set them by {' '.join([*named, *unnamed])}"


def _right(check: ModelCheck) -> str:
    judged = [layer for layer in check.layers if layer.judged]
    blamed = [runtime for runtime in check.runtimes if _is_blamed(check, runtime)]
    others = [runtime for runtime in check.runtimes if runtime not in blamed]
    agreeing = [f"{runtime.name} {runtime.version}" for runtime in others if runtime.outputs.right]
    undecided = [
        f"{runtime.name} {runtime.verdict}"
        for runtime in others
        if runtime.outputs.status in ("differs", "not decided")
    ]
    words = [f"{' and '.join(agreeing)} agree{'s' * (len(agreeing) == 1)} with the outputs"] if agreeing else []
    if judged and not check.is_wrong:
        words.append(f"the float64 oracle agrees with {len(judged)} of {len(check.layers)} recurrent layers")
    if check.is_wrong:
        wrong = ", ".join(shown(layer.name) for layer in judged if not layer.judged[OWN].right)
        status, words = "Wrong", [f"the float64 oracle does not agree with {wrong} in pyrnnx", *words]
    elif undecided and not agreeing:
        status, words = "Not decided", [*undecided, *words]
    else:
        status = "Right" if words else "Not decided"
        words = [*(words or ["no other runtime ran the model, and no layer was judged"]), *undecided]
        words += [f"{runtime.name} {runtime.verdict}" for runtime in blamed]
    return f"{status}: {'; '.join([*words, *_nearest(check)])} (tolerance {check.tolerance})"


def _is_blamed(check: ModelCheck, runtime: RuntimeCheck) -> bool:
    """Return whether a runtime differs, and the oracle from it."""
    judged = [layer.judged[runtime.name].status for layer in check.layers if runtime.name in layer.judged]
    return "differs" in judged


def _nearest(check: ModelCheck) -> list[str]:
    """Return which runtime is nearer to the oracle, if one is away by more than rounding."""
    distances: dict[str, float] = {}
    for layer in check.layers:
        for name, judged in layer.judged.items():
            distances[name] = largest((distances.get(name, 0.0), judged.largest))
    if len(distances) < 2 or max(distances.values()) < _VISIBLE:
        return []
    nearest = sorted(distances, key=lambda name: distances[name])
    return [f"from the oracle, the nearest first: {', '.join(f'{name} {distances[name]:.1g}' for name in nearest)}"]


def _speed(speed: Measurement) -> str:
    from pyrnnx.bench.timing import milliseconds

    peers = [
        f"{name} {milliseconds(speed.medians[name])} ms (in a round {ratio:.2f} times as long)"
        for name, ratio in speed.ratios.items()
    ]
    threads = "1 thread" if speed.threads == 1 else f"{speed.threads} threads"
    return f"with {threads} {milliseconds(speed.medians[OWN])} ms a call, {', '.join(peers) or 'no peer was timed'}"


def _worth(check: ModelCheck, speeds: Sequence[Measurement], door: str, peer: str) -> str:
    ratios = {speed.threads: speed.ratios[peer] for speed in speeds if peer in speed.ratios}
    blamed = any(runtime.name == peer and _is_blamed(check, runtime) for runtime in check.runtimes)
    if check.is_wrong:
        return "no: report the layer that pyrnnx computes wrongly"
    if not ratios:
        return f"yes: {door} runs the model, {peer} does not" if peer in speeds[0].reasons else f"{peer} was not timed"
    best, least = max(ratios.values()), min(ratios.values())
    times = f"{least:.2f}" if f"{least:.2f}" == f"{best:.2f}" else f"{least:.2f} to {best:.2f}"
    if blamed:
        return f"yes: {door} is right where {peer} is not, and {times} times as fast"
    spreads = [speed.spread(peer) for speed in speeds if peer in speed.ratios]
    unsteady = [f"{low:.2f} to {high:.2f}" for low, high in spreads if high > UNSTEADY * low and low < FASTER]
    if unsteady:
        return f"not decided: {door} is {unsteady[0]} times as fast; close other programs and check again"
    answer = "yes" if best >= FASTER else "no"
    if best >= FASTER and least < SLOWER:
        threads = max(ratios, key=lambda number: ratios[number])
        answer = f"with {threads} thread{'s' * (threads > 1)} only"
    return f"{answer}: {door} is {times} times as fast as {peer}"
