"""Arrays of NumPy and of PyTorch, and functions' results as arrays by name. PyTorch is used where a caller has it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.frontends.torch.tensors import as_numpy
from pyrnnx.testing.same.signatures import lookup


def torch_package() -> Any:
    """PyTorch, if somebody has imported it; else None."""
    return sys.modules.get("torch")


def as_tensor(array: AnyArray, like: Any) -> Any:
    """A tensor on the device of another, for a PyTorch module; NumPy's bfloat16 as PyTorch's."""
    torch = torch_package()
    if array.dtype.name == "bfloat16":
        tensor = torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    else:
        tensor = torch.from_numpy(np.ascontiguousarray(array).copy())
    return tensor if like is None else tensor.to(like.device)


def named_results(
    label: str, value: Any, expected: Sequence[str], names: Mapping[str, Sequence[str]]
) -> dict[str, AnyArray]:
    """What a function returned, by the names of `expected`: a mapping, arrays in order, or one array.

    Tuples may hold tuples, as PyTorch's (output, (h_n, c_n)); None is an output that is not there.

    Raises
    ------
    ArgumentError
        Names that are unknown, more arrays than expected, or what is no array.
    """
    if isinstance(value, Mapping):
        name_of = lookup(names)
        given = {name_of(str(name)) or name: one for name, one in value.items()}
    else:
        values = list(flat(value))
        given = dict(zip([*expected, *range(len(expected), len(values))], values, strict=False))
    unknown = [name for name in given if name not in expected]
    if unknown:
        told = f"{len(given)} outputs" if not isinstance(value, Mapping) else f"outputs named {_listed(value)}"
        allowed = ", ".join(names[name][0] for name in expected)
        raise ArgumentError(f"assert_same: {label} returned {told}; expected at most {allowed}")
    return {
        name: as_numpy(f"assert_same: {label}", f"output {names[name][0]}", one)
        for name, one in given.items()
        if one is not None
    }


def flat(value: Any) -> Iterator[Any]:
    """Arrays out of nested tuples; a list of numbers is an array."""
    if isinstance(value, tuple) or (isinstance(value, list) and any(hasattr(one, "shape") for one in value)):
        for one in value:
            yield from flat(one)
    else:
        yield value


def _listed(value: Mapping[Any, Any]) -> str:
    return shortened(", ".join(map(shown, value)))
