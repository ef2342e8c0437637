"""Positions of functions in OrtApi of api.h: checked against all names in order, and in the installed ONNX Runtime.

ort_api.txt has the names of OrtApi's functions up to the last that is used, in the order of ONNX Runtime's header.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sessions import onnxruntime

from pyrnnx.layers import custom_operators

HEADER = Path(__file__).parents[2] / "pyrnnx/_kernels/onnxruntime/api.h"
PLACES = {name: int(place) for place, name in re.findall(r"FUNCTION\((\d+), [^,]+, (\w+)", HEADER.read_text())}
VERSION = int(re.findall(r"PYRNNX_ORT_API_VERSION = (\d+)", HEADER.read_text())[0])
FAIL, FLOAT = 1, 1
Pointer = ctypes.c_void_p


def test_places() -> None:
    order = (Path(__file__).parent / "ort_api.txt").read_text().split()
    assert len(set(order)) == len(order)
    assert {name: order.index(name) for name in PLACES} == PLACES
    assert len(PLACES) == HEADER.read_text().count("    FUNCTION(")


def address_at(place: int) -> int:
    """Return the pointer that lies at an address."""
    address = Pointer.from_address(place).value
    assert address is not None
    return address


@contextmanager
def registered() -> Iterator[tuple[Callable[..., Any], int]]:
    """Yield a function that calls OrtApi by name, and the address of session options."""
    library = ctypes.CDLL(custom_operators.library_path())
    entry = Pointer.in_dll(library, "pyrnnx_register_operators")
    before, addresses = entry.value, []
    register = ctypes.CFUNCTYPE(Pointer, Pointer, Pointer)(lambda *given: addresses.append(given))
    entry.value = ctypes.cast(register, Pointer).value
    options = onnxruntime.SessionOptions()
    try:
        options.register_custom_ops_library(custom_operators.library_path())
    finally:
        entry.value = before
    (option_address, base), *_ = addresses
    get_api = ctypes.CFUNCTYPE(Pointer, ctypes.c_uint32)(address_at(base))
    api = get_api(VERSION)

    def call(name: str, *arguments: Any, returns: Any = Pointer) -> Any:
        address = address_at(api + PLACES[name] * ctypes.sizeof(Pointer))
        types = [Pointer if isinstance(one, (int, type(None))) else type(one) for one in arguments]
        return ctypes.CFUNCTYPE(returns, *types)(address)(*arguments)

    yield call, option_address


def text(value: bytes) -> ctypes.c_char_p:
    return ctypes.c_char_p(value)


def test_statuses() -> None:
    with registered() as (call, _):
        status = call("CreateStatus", ctypes.c_int(FAIL), text(b"words"))
        assert call("GetErrorMessage", status, returns=ctypes.c_char_p) == b"words"
        call("ReleaseStatus", status, returns=None)


def test_types_and_shapes() -> None:
    with registered() as (call, _):
        info, rank, element = Pointer(), ctypes.c_size_t(2), ctypes.c_int()
        sizes, names = (ctypes.c_int64 * 2)(3, -1), (ctypes.c_char_p * 2)(b"", b"n")
        read_sizes, read_names, count = (ctypes.c_int64 * 2)(), (ctypes.c_char_p * 2)(), ctypes.c_size_t()
        assert call("CreateTensorTypeAndShapeInfo", ctypes.pointer(info)) is None
        assert call("SetTensorElementType", info, ctypes.c_int(FLOAT)) is None
        assert call("SetDimensions", info, sizes, rank) is None
        assert call("SetSymbolicDimensions", info, names, rank) is None
        assert call("GetTensorElementType", info, ctypes.pointer(element)) is None
        assert call("GetDimensionsCount", info, ctypes.pointer(count)) is None
        assert call("GetDimensions", info, read_sizes, rank) is None
        assert call("GetSymbolicDimensions", info, read_names, rank) is None
        assert (element.value, count.value, list(read_sizes), list(read_names)) == (FLOAT, 2, [3, -1], [b"", b"n"])
        call("ReleaseTensorTypeAndShapeInfo", info, returns=None)


def test_options() -> None:
    with registered() as (call, options):
        has = ctypes.c_int()
        for expected in (0, 1):
            assert call("HasSessionConfigEntry", options, text(b"key"), ctypes.pointer(has)) is None
            assert has.value == expected
            assert call("AddSessionConfigEntry", options, text(b"key"), text(b"value")) is None


def test_domains() -> None:
    """An operator without functions is named in the error of a session that has its domain."""
    with registered() as (call, options):
        domain = Pointer()
        assert call("CreateCustomOpDomain", text(b"a.domain"), ctypes.pointer(domain)) is None
        assert domain.value
        assert call("AddCustomOpDomain", options, domain) is None
