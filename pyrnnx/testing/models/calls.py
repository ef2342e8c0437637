"""Calls of a model on the arrays of a caller, and on random ones for the other inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS
from pyrnnx.comparison.models.runs import Call, by_own_names, completed, try_alone
from pyrnnx.comparison.models.tries import Tries
from pyrnnx.errors import PyrnnxError, listed, shortened, shown
from pyrnnx.models.model import Model

LONG_STEPS = 50  # of calls that are timed, on each open dimension that is not the batch


def try_calls(
    model: Model, inputs: Mapping[str, Any] | None, seed: int, dims: Mapping[str, int], what: str
) -> Tries[Call]:
    """Return calls of a model, whose variables stay as they are; missing inputs are random.

    Iterating raises a PyrnnxError for inputs that the model rejects with all sizes.
    """
    given = {name: np.asarray(array) for name, array in by_own_names(model, inputs or {}, f"{what}: inputs").items()}
    random = [info for info in model.inputs if info.name not in given and not info.optional]
    integers = listed(shown(info.name) for info in random if info.dtype in INTEGERS)

    def words(error: PyrnnxError) -> str:
        reason = str(error).removeprefix(f"{model.label}: ")
        if not random or any(reason.startswith(f"input {shown(name)} ") for name in given):
            return f"{what}: {error}"
        hint = f"; set the integers {integers} by --input NAME=NUMBER" if integers else ""
        return (
            f"{what}: {shortened(model.label)} does not run on random inputs of its declared sizes; set others by "
            f"--dim or --input{hint} ({shortened(reason)})"
        )

    return try_alone(model, given, seed, dims, what, "--input", words)


def timed_call(
    model: Model, inputs: Mapping[str, Any] | None, seed: int, dims: Mapping[str, int], what: str
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the inputs of a call to be timed, with one row and many steps if it has them, and the guessed sizes."""
    known = {*dims, *_set_by(model, inputs or {})}
    names = {size for info in model.inputs for size in info.shape or () if isinstance(size, str)} - known
    longer = {name: 1 if "batch" in name.lower() or name == "N" else LONG_STEPS for name in names}
    try:
        call = next(iter(try_calls(model, inputs, seed, {**dims, **longer}, what)))
    except PyrnnxError:
        call = next(iter(try_calls(model, inputs, seed, dims, what)))
    return call.inputs, guessed_sizes(model, call.inputs, inputs or {}, dims)


def guessed_sizes(
    model: Model, inputs: Mapping[str, Any], given: Collection[str], dims: Mapping[str, int]
) -> dict[str, int]:
    """Return the open sizes of a call that no caller set: by their names, or as "X axis 0" if they have none."""
    known, sizes = {*dims, *_set_by(model, given)}, dict[str, int]()
    for name, info in completed(model).items():
        actual = np.shape(inputs.get(name, ()))
        for axis, (size, dimension) in enumerate(zip(actual, info.shape or (None,) * len(actual), strict=False)):
            if name not in given and not isinstance(dimension, int) and dimension not in known:
                sizes[dimension if isinstance(dimension, str) else f"{name} axis {axis}"] = size
    return sizes


def _set_by(model: Model, given: Collection[str]) -> set[str]:
    """Return the symbolic sizes that the shapes of given inputs set."""
    infos = [info for info in model.inputs if {info.name, *info.aliases} & {*given}]
    return {size for info in infos for size in info.shape or () if isinstance(size, str)}
