"""Constants of an IR: element types, offsets, alignment, lazy reading, and files that change or are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets
import pytest
from openvino_nets import edges, layer, net, result
from rows import each_row

from pyrnnx import FormatError, PyrnnxError, get_memory_limit, set_memory_limit
from pyrnnx.frontends.openvino import NetLayer, read_model, read_net, to_onnx
from pyrnnx.frontends.openvino.ir.bin_file import BinFile
from pyrnnx.frontends.openvino.ir.element_types import ELEMENT_TYPES

Element = dict[str, Any]


def const(data: Element, dims: tuple[int, ...] = ()) -> str:
    """A net of one constant, called c."""
    kind = ELEMENT_TYPES.get(str(data.get("element_type")))
    precision = kind.precision if kind else "FP32"
    text = layer(7, "c", "Const", data, outputs=[(precision, dims)])
    return net([text, result(8, "r", dims, precision)], edges("7.0 8.0"))


def element(kind: str, shape: Any, offset: int, size: int) -> Element:
    return {"element_type": kind, "shape": shape, "offset": offset, "size": size}


def read_const(data: Element, dims: tuple[int, ...] = ()) -> NetLayer:
    return read_net(const(data, dims)).layers[0]


PACKED: dict[
    str, tuple[bytes, list[Any]]
] = {  # bytes, values of types with several in a byte, and of those that nothing is computed in
    "u2": (b"\xe4\x01", [0, 1, 2, 3, 1]),
    "u4": (b"\x10\x32\x0f", [0, 1, 2, 3, 15]),
    "i4": (b"\x10\x8f\x07", [0, 1, -1, -8, 7]),
    "u1": (b"\x68\x80", [0, 1, 1, 0, 1, 0, 0, 0, 1]),
    "boolean": (b"\x00\x01\x02\xff", [0, 1, 1, 1]),
    "bf16": (b"\xc0\x3f\x10\xc0", [1.5, -2.25]),
    "f8e4m3": (b"\x38\x30\xc0\x7e", [1.0, 0.5, -2.0, 448.0]),
    "f8e5m2": (b"\x3c\x38\xc0\x7b", [1.0, 0.5, -2.0, 57344.0]),
    "f8e8m0": (b"\x7f\x7e\x82", [1.0, 0.5, 8.0]),
    "f4e2m1": (b"\x12\x7a\x0f", [1.0, 0.5, -1.0, 6.0, -6.0]),
}
PLAIN = ("f32", "f16", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
READ = [row for row in ELEMENT_TYPES.values() if row.dtype is not None]


def test_every_type_that_is_read_is_tested() -> None:
    assert {row.name for row in READ} == {*PLAIN, *PACKED}


@each_row("shift", [0, 1, 3])
@each_row("kind", PLAIN)
def test_values_where_they_lie(kind: str, shift: int) -> None:
    """They are copied only if numpy needs it."""
    dtype = np.dtype(ELEMENT_TYPES[kind].dtype)
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    wanted = np.array([limits.min, 1, limits.max], dtype)
    data = bytes(shift) + wanted.tobytes() + b"\xff" * 5
    source = np.frombuffer(data, np.uint8)
    array = BinFile(data).constant(read_const(element(kind, 3, shift, wanted.nbytes), (3,)))
    np.testing.assert_array_equal(array, wanted, strict=True)
    assert not array.flags.writeable
    assert np.shares_memory(array, source) == ((source.ctypes.data + shift) % dtype.alignment == 0)


@each_row("kind", PACKED)
def test_packed_types(kind: str) -> None:
    pytest.importorskip("ml_dtypes")
    data, values = PACKED[kind]
    array = BinFile(b"\xff\xff" + data + b"\xff").constant(
        read_const(element(kind, len(values), 2, len(data)), (len(values),))
    )
    assert array.dtype.name in (ELEMENT_TYPES[kind].dtype, np.dtype(ELEMENT_TYPES[kind].dtype).name)
    np.testing.assert_array_equal(array.astype(np.float64), values)
    assert not array.flags.writeable


@each_row("source", [None, b"", bytes(4)])
def test_constants_without_elements(source: bytes | None) -> None:
    """OpenVINO writes them with size 1. They need no .bin."""
    array = BinFile(source).constant(read_const(element("f32", "2,0,3", 0, 1), (2, 0, 3)))
    assert (array.shape, array.dtype.name) == ((2, 0, 3), "float32")


def test_sources(tmp_path: Path) -> None:
    data, path = np.array([1.0, 2.0], np.float32).tobytes(), tmp_path / "some.bin"
    path.write_bytes(data)
    for source in (data, bytearray(data), memoryview(data), memoryview(data).cast("f"), path, str(path)):
        opened = BinFile(source)
        array = opened.constant(read_const(element("f32", 2, 0, 8), (2,)))
        assert (array.tolist(), array.flags.writeable, opened.size) == ([1.0, 2.0], False, 8)
    for wrong in (3, [b""], object(), np.zeros(4)):
        with pytest.raises(PyrnnxError, match=f"weights is {type(wrong).__name__}; expected the path of a .bin file"):
            BinFile(wrong)
    with pytest.raises(PyrnnxError, match="weights cannot be read as bytes"):
        BinFile(memoryview(bytes(8))[::2])


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
    assert opened.constant(read_const(element("f32", 2, size - 8, 8), (2,))).tolist() == [1.5, 2.5]
    with pytest.raises(PyrnnxError, match=rf"Const 'c' \(id 7\): its {size} bytes exceed the limit"):
        opened.constant(read_const(element("f32", size // 4, 0, size), (size // 4,)))


GOOD: Element = {"element_type": "f32", "shape": "2, 3", "offset": 4, "size": 24}
HUGE = "18446744073709551616"  # 2^64
LABEL = "Const 'c' (id 7)"
BAD: dict[str, tuple[Element, tuple[str, ...]]] = {
    **{f"no {key}": ({key: None}, (f"{key} is missing",)) for key in GOOD},
    "unknown type": ({"element_type": "f33"}, ("'f33' is unknown", "f32")),
    "long": ({"size": 28, "offset": 0}, ("size is 28", "expected 24")),
    "size of another type": ({"element_type": "f16"}, ("size is 24", "expected 12", "f16")),
    "exceed": ({"offset": 5}, ("offset 5", "size 24", "exceed", "28 bytes")),
    "offset that wraps in 64 bits": ({"offset": 2**64 - 4}, ("offset is '18446744073709551612'",)),
    "size that wraps in 64 bits": ({"shape": f"{2**32}, {2**30}", "size": 0}, ("size is 0", f"expected {2**64}")),
    "open shape": ({"shape": "?,3"}, ("shape is '?,3'", "none of them dynamic")),
    "huge dimension": ({"shape": HUGE}, ("shape is",)),
}  # fmt: skip


@each_row(("change", "words"), BAD.values(), ids=BAD)
def test_bad_constants(change: Element, words: tuple[str, ...]) -> None:
    data = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    read_model(const(GOOD, (2, 3)), bytes(28))
    with pytest.raises(PyrnnxError) as caught:
        read_model(const(data), bytes(28))
    message = str(caught.value)
    assert all(word in message for word in (LABEL, *words)), message


def test_missing_bin(tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    path.write_text(const(GOOD, (2, 3)))
    with pytest.raises(PyrnnxError, match=rf"its 24 bytes are needed.*{path.with_suffix('.bin').name}.*does not exist"):
        read_model(path)
    with pytest.raises(PyrnnxError, match=r"Const 'c' \(id 7\): .*no weights were given; expected the .bin"):
        read_model(path.read_text())
    path.with_suffix(".bin").write_bytes(bytes(27))
    with pytest.raises(PyrnnxError, match=r"offset 4 and size 24 exceed the 27 bytes of .*model\.bin"):
        read_model(path)
    path.with_suffix(".bin").write_bytes(bytes(28))
    assert read_model(path).label == str(path)
    read_model(str(path), bytes(28))


XML, BIN = nets.lstm_net()


def save(folder: Path) -> Path:
    path = folder / "model.xml"
    path.write_text(XML)
    path.with_suffix(".bin").write_bytes(BIN)
    return path


def test_bin_that_is_cut_short_later(tmp_path: Path) -> None:
    path = save(tmp_path)
    model = read_model(path)
    (W,) = (model.weights.constant(layer) for layer in model.net.layers if layer.name == "W")
    path.with_suffix(".bin").write_bytes(BIN[: len(BIN) // 2])
    np.testing.assert_array_equal(W, nets.weights()["W"])
    words = rf"ends at byte {len(BIN) // 2}.*it had {len(BIN)} bytes when it was opened"
    with pytest.raises(FormatError, match=rf"Const 'R' \(id 5\): .*model\.bin' {words}"):
        model.weights.constant(next(layer for layer in model.net.layers if layer.name == "R"))


def test_constant_beyond_the_memory_limit(tmp_path: Path) -> None:
    """Refused before anything is allocated, by the layer, the call and the export; allowed by who raises the limit."""
    pytest.importorskip("onnx")
    model, limit = read_model(save(tmp_path)), get_memory_limit()
    set_memory_limit(100)
    try:
        for act in (lambda: model.layers["lstm"], lambda: model(nets.lstm_inputs()), lambda: to_onnx(model)):
            with pytest.raises(PyrnnxError, match=r"Const 'W' \(id 4\): its 384 bytes exceed the limit of 100"):
                act()
    finally:
        set_memory_limit(limit)
    model.layers["lstm"](*nets.lstm_inputs().values())


def test_shapes_of_which_there_is_no_array() -> None:
    for shape in (f"0,{2**62},{2**62}", ",".join(["1"] * 65)):
        text = XML.replace("1, 24, 4", shape).replace("<dim>1</dim><dim>24</dim><dim>4</dim>", "")
        with pytest.raises(FormatError, match=r"Const 'W' \(id 4\): shape "):
            read_model(text, BIN)
