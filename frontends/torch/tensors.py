"""Tensors of PyTorch as arrays, known by their methods: PyTorch is not imported for them."""

from __future__ import annotations

from typing import Any

from pyrnnx import check
from pyrnnx.dtypes import AnyArray, named_dtype
from pyrnnx.errors import ArgumentError, PyrnnxError, shortened, shown


def is_tensor(value: Any) -> bool:
    return not isinstance(value, type) and all(hasattr(value, method) for method in ("detach", "cpu", "numpy"))


def bfloat16() -> Any:
    """NumPy's dtype of that name.

    Raises
    ------
    PyrnnxError
        ml_dtypes, which has it, is not installed.
    """
    try:
        return named_dtype("bfloat16")
    except ImportError as error:
        raise PyrnnxError("arrays in bfloat16 need the ml_dtypes package; install pyrnnx[onnx]") from error


def as_numpy(label: str, name: str, value: Any) -> AnyArray:
    """An array of what was given: one of NumPy, a tensor on any device, numbers in lists.

    Raises
    ------
    ArgumentError
        What is no array of numbers, such as a tensor that is quantized, sparse or without data.
    """
    if not is_tensor(value):
        given = check.as_array(label, name, value)
        if given.dtype.kind == "O":
            raise ArgumentError(f"{label}: {name} is {shown(value)}; expected an array")
        return given
    is_bfloat16 = str(value.dtype).endswith("bfloat16")  # NumPy's arrays of it are those of ml_dtypes
    try:
        value = value.detach().cpu()
        array: AnyArray = (value.float() if is_bfloat16 else value).numpy()
    except Exception as error:
        raise ArgumentError(f"{label}: {name} cannot be taken as an array ({shortened(str(error))})") from error
    return array.astype(bfloat16()) if is_bfloat16 else array
