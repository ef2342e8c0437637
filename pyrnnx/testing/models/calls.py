"""Valid calls of a model, with random arrays for missing inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx.comparison.models.runs import Call, by_own_names, try_alone
from pyrnnx.comparison.models.tries import Tries
from pyrnnx.models.model import Model


def try_calls(
    model: Model, inputs: Mapping[str, Any] | None, seed: int, dims: Mapping[str, int], what: str
) -> Tries[Call]:
    """Return calls of a model, whose variables stay as they are; missing inputs are random.

    Raises
    ------
    PyrnnxError
        Unknown names; inputs that cannot be made; when iterating, inputs that the model rejects with all sizes.
    """
    own = by_own_names(model, inputs or {}, f"{what}: inputs")
    arrays = {name: np.asarray(array) for name, array in own.items()}
    return try_alone(model, arrays, seed, dims, what, "inputs", lambda error: f"{what}: {error}")
