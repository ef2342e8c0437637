"""A call that a model takes: of given arrays, and of random ones for those that are not given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx.comparison.model_runs import kept_states, random_calls
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.model import Model


def run_call(
    model: Model, inputs: Mapping[str, Any] | None, seed: int, dims: Mapping[str, int], what: str, hint: str = "inputs"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs of a call, by name; the variables of the model stay as they are.

    Parameters
    ----------
    model : Model
    inputs : mapping, optional
        Some or all of the inputs.
    seed : int
        Of the others, which are random.
    dims : mapping
        Sizes of symbolic dimensions.
    what, hint : str
        Who asks, and how else an array can be given, as errors say it.

    Raises
    ------
    PyrnnxError
        Names that the model has not; inputs that cannot be made; what the model rejects with all sizes.
    """
    names = {alias: info.name for info in model.inputs for alias in (*info.aliases, info.name)}
    for name in inputs or ():
        if name not in names:
            raise ArgumentError(f"{what}: {hint} has {shown(name)}; expected names out of {', '.join(names)}")
    given = {names[name]: np.asarray(array) for name, array in (inputs or {}).items()}
    first: PyrnnxError | None = None
    for made in random_calls(model, given, seed, dims, what, hint):
        try:
            with kept_states(model):
                return made, model(made)
        except PyrnnxError as error:  # noqa: PERF203  # whether sizes suit is what a run tells
            first = first or error
    assert first is not None  # there are sizes
    raise type(first)(f"{what}: {first}") from first
