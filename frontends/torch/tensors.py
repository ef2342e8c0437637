"""Conversion of PyTorch's tensors to arrays, without an import of PyTorch."""

from __future__ import annotations

from typing import Any

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import import_package
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.operator import check


def is_tensor(value: Any) -> bool:
    return not isinstance(value, type) and all(hasattr(value, method) for method in ("detach", "cpu", "numpy"))


def bfloat16() -> Any:
    return import_package("ml_dtypes", "an array in bfloat16", "onnx").bfloat16


def as_numpy(label: str, name: str, value: Any) -> AnyArray:
    """Convert an array, a tensor on any device, or lists of numbers to an array."""
    if not is_tensor(value):
        array: AnyArray = check.as_array(label, name, value)
        if array.dtype.kind == "O":
            raise ArgumentError(f"{label}: {name} is {shown(value)}; expected an array")
        return array
    is_bfloat16 = str(value.dtype).endswith("bfloat16")  # numpy() does not support it
    try:
        value = value.detach().cpu()
        array = (value.float() if is_bfloat16 else value).numpy()
    except Exception as error:
        raise ArgumentError(f"{label}: {name} cannot be converted to an array ({shortened(str(error))})") from error
    return array.astype(bfloat16()) if is_bfloat16 else array
