"""Facts about operators and layers as text: rows for terminals and notebooks, and reprs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pyrnnx._internal import html

Facts: TypeAlias = dict[str, Any]  # values of JSON, by the keys of `pyrnnx inspect --json`


def rows(facts: Facts) -> list[tuple[str, str]]:
    """Return the name and the text of each fact that has a value."""
    sizes = {name: facts[name] for name in ("input_size", "hidden_size") if name in facts}
    mflop, parameters = facts.get("mflop_per_step"), facts.get("parameters")
    texts = {
        "operator": ", ".join(filter(None, (facts["operator"], facts.get("convention")))),
        "direction": facts["direction"],
        ", ".join(sizes): ", ".join("?" if size is None else f"{size:,}" for size in sizes.values()),
        "activations": "; reverse: ".join(dict.fromkeys(map(", ".join, facts["activations"]))),
        "type": (facts["dtype"] or "any") if "dtype" in facts else "",
        "parameters": "" if parameters is None else f"{parameters:,}",
        "work": "" if mflop is None else f"{mflop:.3g} MFLOP per time step and row",
        "weights": _shapes(facts.get("weights") or {}),
        "inputs besides X": ", ".join(facts.get("inputs", ())),
        "constants": _shapes(facts.get("constants", {})),
        "unusual": ", ".join(facts["unusual"]),
    }
    return [(name, text) for name, text in texts.items() if text]


def line(title: str, facts: Facts) -> str:
    """Return the repr of a layer."""
    reduced = f" with weights in {facts['weight_dtype']}" if facts["weight_dtype"] else ""
    sizes = (f"{name}={'?' if facts[name] is None else facts[name]}" for name in ("input_size", "hidden_size"))
    words = (facts["direction"], *sizes, f"{facts['dtype'] or 'any dtype'}{reduced}", facts["convention"])
    return f"<{title}: {', '.join(filter(None, words))}>"


def page(title: str, facts: Facts, more: Iterable[tuple[str, str]] = ()) -> str:
    """Return a table for a notebook; the rows `more` follow the facts."""
    return html.whole(html.table((title, ""), [*rows(facts), *more]))


def _shapes(shapes: Mapping[str, list[int]]) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in shapes.items())
