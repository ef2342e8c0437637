"""Valid calls of a model, with random arrays for missing inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx.comparison.model_runs import by_own_names, first_run, kept_states, random_calls
from pyrnnx.models.model import Model


def run_call(
    model: Model, inputs: Mapping[str, Any] | None, seed: int, dims: Mapping[str, int], what: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return inputs and outputs of a call, by name; the variables of the model stay as they are.

    Inputs that are missing are random. Other arguments are those of `random_inputs`.

    Raises
    ------
    PyrnnxError
        Unknown names; inputs that cannot be made; inputs that the model rejects with all sizes.
    """
    own = by_own_names(model, inputs or {}, f"{what}: inputs")
    arrays = {name: np.asarray(array) for name, array in own.items()}

    def run(call: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        with kept_states(model):
            return call, model(call)

    return first_run(run, random_calls(model, arrays, seed, dims, what, "inputs"), lambda error: f"{what}: {error}")
