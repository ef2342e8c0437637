"""Arrays of NumPy and PyTorch, and function results by name. PyTorch is used only if the caller imported it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.frontends.torch.tensors import as_numpy
from pyrnnx.testing.same.signatures import lookup


def torch_package() -> Any:
    """Return PyTorch if it is already imported, else None."""
    return sys.modules.get("torch")


def as_tensor(array: AnyArray, like: Any) -> Any:
    """Return a tensor on the device of another, with NumPy's bfloat16 as PyTorch's."""
    torch = torch_package()
    if array.dtype.name == "bfloat16":
        tensor = torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    else:
        tensor = torch.from_numpy(np.ascontiguousarray(array).copy())
    return tensor if like is None else tensor.to(like.device)


def named_results(
    label: str, value: Any, expected: Sequence[str], names: Mapping[str, Sequence[str]]
) -> dict[str, AnyArray]:
    """Return a function's results by the names of `expected`, from a mapping, a tuple or one array.

    Tuples may be nested, as PyTorch's (output, (h_n, c_n)); None means a missing output.

    Raises
    ------
    ArgumentError
        Names that are unknown, more arrays than expected, or what is no array.
    """
    if isinstance(value, Mapping):
        name_of = lookup(names)
        arrays = {name_of(str(name)) or name: array for name, array in value.items()}
    else:
        values = list(flat(value))
        arrays = dict(zip([*expected, *range(len(expected), len(values))], values, strict=False))
    unknown = [name for name in arrays if name not in expected]
    if unknown:
        returned = f"{len(arrays)} outputs" if not isinstance(value, Mapping) else f"outputs named {_listed(value)}"
        allowed = ", ".join(names[name][0] for name in expected)
        raise ArgumentError(f"assert_same: {label} returned {returned}; expected at most {allowed}")
    return {
        name: as_numpy(f"assert_same: {label}", f"output {names[name][0]}", array)
        for name, array in arrays.items()
        if array is not None
    }


def flat(value: Any) -> Iterator[Any]:
    """Yield the arrays of nested tuples; a list of numbers is an array."""
    if isinstance(value, tuple) or (isinstance(value, list) and any(hasattr(item, "shape") for item in value)):
        for item in value:
            yield from flat(item)
    else:
        yield value


def _listed(value: Mapping[Any, Any]) -> str:
    return shortened(", ".join(map(shown, value)))


def check_outputs(names: Sequence[str], known: Collection[str]) -> None:
    """Check the names of outputs that a caller passes.

    Raises
    ------
    ArgumentError
        Not a sequence of strings, an empty one, or an unknown name.
    """
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    unknown = [name for name in names if name not in known] if is_list else [names]
    if unknown or not names:
        what = f"is {shown(names)}" if not is_list or not names else f"has {shown(unknown[0])}"
        raise ArgumentError(f"assert_same: outputs {what}; expected names out of {', '.join(known)}")
