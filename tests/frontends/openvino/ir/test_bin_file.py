"""Constants of an IR: every element type, offsets, alignment, laziness; and everything that is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from openvino_nets import Bin, edges, layer, net, result

from pyrnnx import PyrnnxError
from pyrnnx.frontends.openvino import NetLayer, read_model, read_net
from pyrnnx.frontends.openvino.ir.bin_file import BinFile
from pyrnnx.frontends.openvino.ir.element_types import ELEMENT_TYPES

Element = dict[str, Any]


def const(data: Element, dims: tuple[int, ...] = ()) -> str:
    """A net of one constant, called c."""
    kind = ELEMENT_TYPES.get(str(data.get("element_type")))
    precision = kind.precision if kind else "FP32"
    text = layer(7, "c", "Const", data, outputs=[(precision, dims)])
    return net([text, result(8, "r", dims, precision)], edges("7.0 8.0"))


def read_const(data: Element, dims: tuple[int, ...] = ()) -> NetLayer:
    return read_net(const(data, dims)).layers[0]


VALUES: dict[str, Any] = {
    "f32": [1.5, -2.25, 0.0, np.inf],
    "f16": [1.5, -2.25, 65504.0],
    "f64": [1e300, -1e-300],
    "i8": [-128, 127, -1],
    "i16": [-(2**15), 2**15 - 1],
    "i32": [-(2**31), 2**31 - 1],
    "i64": [-(2**63), 2**63 - 1],
    "u8": [0, 255],
    "u16": [0, 2**16 - 1],
    "u32": [0, 2**32 - 1],
    "u64": [0, 2**64 - 1],
}


@pytest.mark.parametrize("shift", [0, 1, 3])
@pytest.mark.parametrize("kind", VALUES)
def test_values_where_they_lie(kind: str, shift: int) -> None:
    """At any offset; a copy only where numpy needs one."""
    wanted = np.array(VALUES[kind], ELEMENT_TYPES[kind].dtype)
    data = bytes(shift) + wanted.tobytes() + b"\xff" * 5
    source = np.frombuffer(data, np.uint8)
    given = {"element_type": kind, "shape": len(wanted), "offset": shift, "size": wanted.nbytes}
    array = BinFile(data).constant(read_const(given, wanted.shape))
    np.testing.assert_array_equal(array, wanted, strict=True)
    assert not array.flags.writeable
    aligned = (source.ctypes.data + shift) % wanted.dtype.alignment == 0
    assert np.shares_memory(array, source) == aligned


def test_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    wanted = np.array([1.5, -2.25, 3e38], ml_dtypes.bfloat16)
    given = {"element_type": "bf16", "shape": "3", "offset": 0, "size": 6}
    array = BinFile(wanted.tobytes()).constant(read_const(given, (3,)))
    assert array.dtype == wanted.dtype
    assert array.tobytes() == wanted.tobytes()


STORED = {  # bytes, values of each type that nothing is computed in
    "f8e4m3": (b"\x38\x30\xc0\x7e", [1.0, 0.5, -2.0, 448.0]),
    "f8e5m2": (b"\x3c\x38\xc0\x7b", [1.0, 0.5, -2.0, 57344.0]),
    "f8e8m0": (b"\x7f\x7e\x82", [1.0, 0.5, 8.0]),
    "f4e2m1": (b"\x12\x7a\x0f", [1.0, 0.5, -1.0, 6.0, -6.0]),
}


@pytest.mark.parametrize("kind", STORED)
def test_types_that_nothing_is_computed_in(kind: str) -> None:
    pytest.importorskip("ml_dtypes")
    data, values = STORED[kind]
    given = {"element_type": kind, "shape": len(values), "offset": 1, "size": len(data)}
    array = BinFile(b"\xff" + data + b"\xff").constant(read_const(given, (len(values),)))
    assert array.dtype.name == ELEMENT_TYPES[kind].dtype
    np.testing.assert_array_equal(array.astype(np.float32), np.array(values, np.float32))
    assert not array.flags.writeable


PACKED = {  # bytes, values
    "u2": (b"\xe4\x01", [0, 1, 2, 3, 1]),
    "u4": (b"\x10\x32\x0f", [0, 1, 2, 3, 15]),
    "i4": (b"\x10\x8f\x07", [0, 1, -1, -8, 7]),
    "u1": (b"\x68\x80", [0, 1, 1, 0, 1, 0, 0, 0, 1]),
}


def test_every_type_that_is_read_is_tested() -> None:
    read = {row.name for row in ELEMENT_TYPES.values() if row.dtype is not None}
    assert read == {*VALUES, *PACKED, *STORED, "bf16", "boolean"}


@pytest.mark.parametrize("kind", PACKED)
def test_packed_types(kind: str) -> None:
    data, values = PACKED[kind]
    given = {"element_type": kind, "shape": len(values), "offset": 2, "size": len(data)}
    array = BinFile(b"\xff\xff" + data + b"\xff").constant(read_const(given, (len(values),)))
    np.testing.assert_array_equal(array, np.array(values, ELEMENT_TYPES[kind].dtype), strict=True)
    assert not array.flags.writeable


@pytest.mark.parametrize("kind", ["u4", "i4", "u1", "boolean", "bf16", "f16", "i8", "u64"])
def test_values_as_openvino_writes_them(kind: str, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    operations = pytest.importorskip("openvino.opset13")
    wanted = [0, 1, 1, 0, 1] if kind in ("u1", "boolean") else [7, 0, -8 if kind == "i4" else 3, 1, 5, 2, 6]
    constants = [operations.constant(values, dtype=getattr(openvino.Type, kind)) for values in (wanted, wanted[:3])]
    model = openvino.Model([operations.result(one) for one in constants], [], "one")
    openvino.save_model(model, tmp_path / "one.xml", compress_to_fp16=False)
    read = read_model(tmp_path / "one.xml")
    arrays = sorted((read.weights.constant(one).tolist() for one in read.net.layers if one.type == "Const"), key=len)
    assert arrays == [wanted[:3], wanted]


def test_booleans_are_what_is_not_zero() -> None:
    given = {"element_type": "boolean", "shape": "2, 2", "offset": 0, "size": 4}
    array = BinFile(b"\x00\x01\x02\xff").constant(read_const(given, (2, 2)))
    np.testing.assert_array_equal(array, [[False, True], [True, True]], strict=True)


@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("shape", ["0", "0, 3", "2,0,3"])
def test_constants_without_elements(shape: str, size: int) -> None:
    """OpenVINO writes them with size 1. They need no .bin."""
    given = {"element_type": "f32", "shape": shape, "offset": 0, "size": size}
    wanted = tuple(int(one) for one in shape.split(","))
    for source in (None, b"", b"\x01\x02\x03\x04"):
        array = BinFile(source).constant(read_const(given, wanted))
        assert array.shape == wanted
        assert array.dtype == np.float32


def test_scalars() -> None:
    given = {"element_type": "i64", "shape": "", "offset": 1, "size": 8}
    array = BinFile(b"\xff" + (-5).to_bytes(8, "little", signed=True)).constant(read_const(given))
    assert array.shape == ()
    assert array.dtype == np.int64
    assert array == -5


def test_constants_may_share_bytes_as_other_types() -> None:
    data = np.array([1.0, 2.0], np.float32).tobytes()
    as_bytes = BinFile(data).constant(read_const({"element_type": "u8", "shape": "8", "offset": 0, "size": 8}, (8,)))
    as_float = BinFile(data).constant(read_const({"element_type": "f32", "shape": "1", "offset": 4, "size": 4}, (1,)))
    assert as_bytes.tobytes() == data
    assert as_float.tolist() == [2.0]


# Sources


def path_of(data: bytes, folder: Path) -> Path:
    (folder / "some.bin").write_bytes(data)
    return folder / "some.bin"


SOURCES: dict[str, Callable[[bytes, Path], Any]] = {
    "bytes": lambda data, folder: data,
    "bytearray": lambda data, folder: bytearray(data),
    "memoryview": lambda data, folder: memoryview(data),
    "memoryview of floats": lambda data, folder: memoryview(data).cast("f"),
    "path": path_of,
    "path as text": lambda data, folder: str(path_of(data, folder)),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_sources(source: Callable[[bytes, Path], Any], tmp_path: Path) -> None:
    data = np.array([1.0, 2.0], np.float32).tobytes()
    opened = BinFile(source(data, tmp_path))
    array = opened.constant(read_const({"element_type": "f32", "shape": "2", "offset": 0, "size": 8}, (2,)))
    assert array.tolist() == [1.0, 2.0]
    assert not array.flags.writeable
    assert opened.size == 8


def test_a_file_is_read_only_where_asked(tmp_path: Path) -> None:
    """A sparse file far larger than memory serves: nothing of it is read but what is asked for and allowed."""
    size = 2**40
    path = tmp_path / "big.bin"
    with path.open("wb") as file:
        try:
            file.truncate(size)
        except OSError as error:
            pytest.skip(f"no sparse file of that size here ({error})")
        file.seek(size - 8)
        file.write(np.array([1.5, 2.5], np.float32).tobytes())
    opened = BinFile(path)
    last = {"element_type": "f32", "shape": "2", "offset": size - 8, "size": 8}
    assert opened.constant(read_const(last, (2,))).tolist() == [1.5, 2.5]
    whole = {"element_type": "f32", "shape": size // 4, "offset": 0, "size": size}
    with pytest.raises(PyrnnxError, match=rf"Const 'c' \(id 7\): its {size} bytes exceed the limit"):
        opened.constant(read_const(whole, (size // 4,)))


@pytest.mark.parametrize("source", [3, 1.5, [b""], {}, object(), np.zeros(4)], ids=lambda one: type(one).__name__)
def test_sources_that_are_none(source: Any) -> None:
    with pytest.raises(PyrnnxError, match=f"weights is {type(source).__name__}; expected the path of a .bin file"):
        BinFile(source)


def test_bytes_with_gaps() -> None:
    with pytest.raises(PyrnnxError, match="weights cannot be taken as bytes"):
        BinFile(memoryview(bytes(8))[::2])


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.bin", tmp_path, "a\0b"):
        with pytest.raises(PyrnnxError, match="cannot be read"):
            read_model(const({"element_type": "f32", "shape": "0", "offset": 0, "size": 0}, (0,)), path)


# What is wrong with a Const: found when the model is read

GOOD: Element = {"element_type": "f32", "shape": "2, 3", "offset": 4, "size": 24}
HUGE = "18446744073709551616"  # 2^64
LABEL = "Const 'c' (id 7)"
BAD: dict[str, tuple[Element, tuple[str, ...]]] = {
    **{f"no {key}": ({key: None}, (f"{key} is missing",)) for key in GOOD},
    "unknown type": ({"element_type": "f33"}, ("'f33' is unknown", "f32")),
    "precision as type": ({"element_type": "FP32"}, ("'FP32' is unknown",)),
    "empty type": ({"element_type": ""}, ("'' is unknown",)),
    "short": ({"size": 20}, ("size is 20", "expected 24", "(2, 3) of f32")),
    "long": ({"size": 28, "offset": 0}, ("size is 28", "expected 24")),
    "size of another type": ({"element_type": "f16"}, ("size is 24", "expected 12", "f16")),
    "half a byte too few": ({"element_type": "u4", "shape": "3", "size": 1}, ("size is 1", "expected 2")),
    "beyond the end": ({"offset": 5}, ("offset 5", "size 24", "beyond the end", "28 bytes")),
    "far beyond the end": ({"offset": 10**9}, ("offset 1000000000", "28 bytes")),
    "offset that wraps in 64 bits": ({"offset": 2**64 - 4}, ("offset 18446744073709551612",)),
    "size that wraps in 64 bits": (
        {"shape": f"{2**32}, {2**30}", "size": 0},
        ("size is 0", f"expected {2**64}"),
    ),
    "shape and size that are huge": (
        {"shape": f"{2**32}, {2**29}", "size": 2**63},
        (f"size {2**63}", "beyond the end"),
    ),
    "negative offset": ({"offset": -4}, ("offset is '-4'",)),
    "negative size": ({"size": -24}, ("size is '-24'",)),
    "offset of many digits": ({"offset": "9" * 5000}, ("offset is '999",)),
    "fractional offset": ({"offset": "4.0"}, ("offset is '4.0'",)),
    "empty size": ({"size": ""}, ("size is ''",)),
    "hexadecimal": ({"offset": "0x4"}, ("offset is '0x4'",)),
    "open shape": ({"shape": "?,3"}, ("shape is '?,3'", "sizes that are known")),
    "any rank": ({"shape": "..."}, ("shape is '...'",)),
    "negative dimension": ({"shape": "-2, 3"}, ("shape is '-2, 3'",)),
    "no number": ({"shape": "two"}, ("shape is 'two'",)),
    "huge dimension": ({"shape": HUGE}, ("shape is",)),
    "dimension of many digits": ({"shape": "9" * 5000}, ("shape is '999",)),
}


@pytest.mark.parametrize(("change", "words"), BAD.values(), ids=BAD)
def test_bad_constants(change: Element, words: tuple[str, ...]) -> None:
    data = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    read_model(const(GOOD, (2, 3)), bytes(28))
    with pytest.raises(PyrnnxError) as caught:
        read_model(const(data), bytes(28))
    message = str(caught.value)
    assert all(word in message for word in (LABEL, *words)), message


def test_no_overflow_of_the_product_of_dimensions() -> None:
    """2^22 in each of three dimensions is 2^66: 0 in 64 bits."""
    shape = ", ".join([str(2**22)] * 3)
    assert math.prod([2**22] * 3) == 2**66
    with pytest.raises(PyrnnxError, match=f"size is 0; expected {2**68}"):
        read_model(const({**GOOD, "shape": shape, "size": 0}), bytes(28))


@pytest.mark.parametrize("kind", [row.name for row in ELEMENT_TYPES.values() if row.dtype is None])
def test_types_that_are_not_read_are_errors_only_when_asked_for(kind: str) -> None:
    model = read_model(const({**GOOD, "element_type": kind}, (2, 3)), bytes(28))
    with pytest.raises(PyrnnxError, match=rf"Const 'c' \(id 7\): values of element type '{kind}' are not read"):
        model.weights.constant(model.net.layers[0])


# Where the .bin is


def test_missing_bin(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(const(GOOD, (2, 3)))
    with pytest.raises(PyrnnxError, match=rf"its 24 bytes are needed.*{path.with_suffix('.bin').name}.*does not exist"):
        read_model(path)
    with pytest.raises(PyrnnxError, match=r"Const 'c' \(id 7\): .*no weights were given; expected the .bin"):
        read_model(path.read_text())
    path.with_suffix(".bin").write_bytes(bytes(27))
    with pytest.raises(PyrnnxError, match=r"offset 4 and size 24 lead beyond the end of .*model\.bin.* 27 bytes"):
        read_model(path)
    path.with_suffix(".bin").write_bytes(b"")
    with pytest.raises(PyrnnxError, match="which has 0 bytes"):
        read_model(path)
    path.with_suffix(".bin").write_bytes(bytes(28))
    assert read_model(path).label == str(path)
    read_model(str(path), bytes(28))


def test_bin_that_no_constant_needs_may_be_absent(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(const({**GOOD, "shape": "0", "size": 1}, (0,)))
    assert [info.shape for info in read_model(path).outputs] == [(0,)]


def test_bin_of_another_name(tmp_path: Path) -> None:
    store = Bin()
    text = store.constant(7, "c", np.array([1.5, 2.5]), "f64", "FP64")
    xml = net([text, result(8, "r", (2,), "FP64")], edges("7.0 8.0"))
    (tmp_path / "a.xml").write_text(xml)
    (tmp_path / "b.weights").write_bytes(store.data)
    model = read_model(tmp_path / "a.xml", tmp_path / "b.weights")
    assert model.weights.constant(model.net.layers[0]).tolist() == [1.5, 2.5]
