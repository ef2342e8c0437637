"""Ways to break files of parts: zips, JSON before numbers, headers of arrays, and the words of a command line.

As in `mutations`, every function takes its choices from `rng` alone.
"""

from __future__ import annotations

import copy
import io
import json
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

from fuzz.mutations import INTEGERS, NUMBERS, TEXTS, Rng, broken_bytes, broken_numbers, how_many

Break = Callable[[bytes, bytes, Rng], bytes]
LARGEST_JSON = 20_000  # bytes: a tree that was repeated many times takes seconds
STAMP = (1980, 1, 1, 0, 0, 0)
ODD: tuple[Any, ...] = (None, True, "", [], {}, [0, 0], "F32", "BF16", "F8_E4M3", "\0", "x" * 1000)
HEADERS = (
    "descr", "shape", "fortran_order", "<f4", ">f8", "|O", "<U9", "|V0", "<f4,<f4", "True", "None", "()", "(2,)", "-1",
    "(0, 3)", f"({2**31}, {2**31})", f"({2**62}, 0)", "9" * 400, "{", "}", "(", "[" * 90, "'", "1e9", "lambda: 0", "\n",
)  # fmt: skip
WORDS = (
    "--json", "--html", "--input", "--seed", "--dim", "--layer", "--output", "--stream",
    "--optional-input", "--opset", "--prefix", "--operator", "--nonlinearity", "--batch-first", "--for",
    "--force", "--no-verify", "--help", "--atol", "--rtol", "--plot", "-h", "--", "-", "", "0", "-1", "1e9", "nan",
    "inf",
    "X", "X=", "=X", "X=0", "X=nan", "X=X.npy", "X=a.wav", "T=0", "T=-1", f"T={2**62}", "N=3", "sequence_lens=lens.npy",
    "small_rnn", "small_rnn.onnx", "small_rnn.xml", "small_model.xml", "small_model.bin", "X.npy", "a.wav",
    "w.safetensors",
    "missing.onnx", ".", "out.onnx", "out.xml", "out.npz", "p.html", "p.svg", "Y_h=initial_h", "inspect", "run",
    "compare",
    "convert", "config", "GRU", "relu", "17", str(2**63), "\u0665", "\ud800", "\x1b[31m", "x" * 5000,
)  # fmt: skip


def broken_json(data: bytes, other: bytes, rng: Rng) -> bytes:
    """JSON with some of its values altered; other bytes are altered as bytes."""
    if max(len(data), len(other)) > LARGEST_JSON:
        return broken_bytes(data, other, rng)
    try:
        tree, lender = json.loads(data), json.loads(other)
    except (ValueError, RecursionError):
        return broken_bytes(data, other, rng)
    for _ in range(how_many(rng)):
        places, lent = list(_places(tree)), list(_places(lender))
        if not places:
            break
        parent, key = rng.choice(places)
        choice = rng.random()
        if choice < 0.15:
            del parent[key]
        elif choice < 0.3 and isinstance(parent, list):
            parent.extend([parent[key]] * rng.choice((1, 2, 70)))
        elif choice < 0.3:
            parent[rng.choice((*TEXTS, *(str(key) for _, key in lent)))] = parent.pop(key)
        elif choice < 0.6 and lent:
            source, name = rng.choice(lent)
            parent[key] = json.loads(json.dumps(source[name]))
        elif choice < 0.7:
            parent[key] = [parent[key]] if rng.random() < 0.5 else {"config": parent[key]}
        else:
            parent[key] = copy.deepcopy(rng.choice((*ODD, *INTEGERS, *NUMBERS, *TEXTS)))
    return json.dumps(tree).encode(errors="surrogatepass")


def _places(tree: Any) -> Any:
    """Yield each container of a tree with each of its keys."""
    stack = [tree]
    while stack:
        parent = stack.pop()
        for key in list(parent) if isinstance(parent, dict) else range(len(parent)) if isinstance(parent, list) else ():
            yield parent, key
            stack.append(parent[key])


def broken_header(data: bytes, other: bytes, rng: Rng) -> bytes:
    """A .safetensors file with its JSON altered, and the length before it right."""
    header, values = _parted(data)
    header = broken_json(header, _parted(other)[0], rng)
    if rng.random() < 0.2:
        values = broken_numbers(values, rng)[: rng.choice((-1, None))]
    return len(header).to_bytes(8, "little") + header + values


def _parted(data: bytes) -> tuple[bytes, bytes]:
    size = int.from_bytes(data[:8], "little")
    return data[8 : 8 + size], data[8 + size :]


def broken_zip(data: bytes, other: bytes, rng: Rng) -> bytes:
    """A zip with members altered, renamed, repeated, left out, lent or compressed, and its checksums right."""
    try:
        members, lent = _members(data), _members(other)
    except Exception:
        return broken_bytes(data, other, rng)
    for _ in range(how_many(rng)):
        if not members:
            break
        k = rng.randrange(len(members))
        name, contents = members[k]
        same = [value for key, value in lent if key.rpartition("/")[2] == name.rpartition("/")[2]] or [contents]
        choice = rng.random()
        if choice < 0.65:
            members[k] = name, _broken_member(contents, rng.choice(same), rng)
        elif choice < 0.8:
            members[k] = name, rng.choice(same)
        elif choice < 0.87:
            del members[k]
        elif choice < 0.94:
            members[k] = rng.choice((rng.choice(members)[0], *TEXTS)), contents
        else:
            members.append(members[k])
    method = zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED
    try:
        return _zipped(members, method)
    except Exception:  # a name that is too long for a zip
        return broken_bytes(data, other, rng)


def _broken_member(contents: bytes, other: bytes, rng: Rng) -> bytes:
    if contents[:1] in (b"{", b"["):
        return broken_json(contents, other, rng)
    if contents.startswith(b"\x93NUMPY"):
        return broken_array(contents, other, rng)
    return broken_numbers(contents, rng) if rng.random() < 0.3 else broken_bytes(contents, other, rng)


def _members(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        if sum(member.file_size for member in file.infolist()) > 10**6:
            raise ValueError
        return [(member.filename, file.read(member)) for member in file.infolist()]


def _zipped(members: list[tuple[str, bytes]], method: int) -> bytes:
    contents = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(contents, "w", method) as file:
        warnings.simplefilter("ignore")  # of names that occur twice
        for name, part in members:
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode(), STAMP)
            info.compress_type = method
            file.writestr(info, part)
    return contents.getvalue()


def broken_array(data: bytes, other: bytes, rng: Rng) -> bytes:
    """An .npy or .npz file with a part of its header replaced, and the length before it right."""
    if data.startswith(b"PK"):
        return broken_zip(data, other, rng)
    wide = 4 if data[6:7] != b"\x01" else 2
    size = int.from_bytes(data[8 : 8 + wide], "little")
    text, values = data[8 + wide : 8 + wide + size].decode("latin-1"), data[8 + wide + size :]
    for _ in range(how_many(rng)):
        tokens = [place for place, letter in enumerate(text) if letter in "{}():,' "] or [0]
        start = rng.choice(tokens)
        end = next((place for place in tokens if place > start), start)
        text = text[: start + rng.randrange(2)] + rng.choice(HEADERS) + text[end:]
    header = text.encode("latin-1")
    if rng.random() < 0.3:
        values = broken_numbers(values, rng)[: rng.choice((-1, None))]
    return data[:8] + (len(header) % (1 << 8 * wide)).to_bytes(wide, "little") + header + values


def broken_sound(data: bytes, other: bytes, rng: Rng) -> bytes:
    """A .wav file with numbers of its chunks altered; they are in the first 44 bytes."""
    return broken_numbers(data[:44], rng) + data[44:]


def broken_line(data: bytes, other: bytes, rng: Rng) -> bytes:
    """A command line with words replaced, inserted, left out, moved, lent, or altered in a letter."""
    words, lent = data.split(b"\0"), other.split(b"\0")
    for _ in range(how_many(rng)):
        place, choice = rng.randrange(len(words) + 1), rng.random()
        new = rng.choice(WORDS).encode("utf-8", "surrogatepass")
        if choice < 0.35 or place == len(words):
            words[place : place + 1] = [new]
        elif choice < 0.5:
            words.insert(place, new)
        elif choice < 0.65:
            words.insert(place, rng.choice(lent))
        elif choice < 0.8:
            del words[place]
        elif choice < 0.9:
            words[place] = broken_bytes(words[place], new, rng).replace(b"\0", b"")
        else:
            words[place] += rng.choice((b"=", b",", b":", b"-", b" ")) + new
    return b"\0".join(words)


BREAKS: dict[str, Break] = {
    "safetensors": broken_header, "pt": broken_zip, "keras": broken_zip, "npy": broken_array, "wav": broken_sound,
    "command": broken_line,
}  # fmt: skip
