"""Reader of recurrent layers in .keras files, without Keras and without running code of the file."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from pyrnnx._internal.files import is_path, open_regular
from pyrnnx.errors import ArgumentError, FormatError, UnsupportedError, listed, printable, shortened, shown
from pyrnnx.stacks.stack import Stack

from .config import DEPTH, RECURRENT, UniqueNames, is_layer_of_keras, read_config
from .process import read_weights
from .weights import build_stack, read_arrays

METADATA, CONFIG, WEIGHTS = "metadata.json", "config.json", "model.weights.h5"
LARGEST_JSON = 2**24  # bytes; thousands of layers need a few millions
EXPANSION = 100  # limit of compression: Keras does not compress, and others compress weights less
OLDEST = 3  # major version of Keras


@dataclass(frozen=True)
class _Entry:
    """A layer in the configuration of a model.

    `parents` has pairs of names: of each model that contains it, from the outermost, then of the layer itself. The
    second name of a pair is Keras' default for the group of weights, in files that store no names.
    """

    class_name: str
    config: Any
    parents: tuple[tuple[str, str], ...]
    is_of_keras: bool = True

    @property
    def path(self) -> str:
        return "/".join(name for name, _ in self.parents)

    @property
    def name(self) -> str:
        return self.parents[-1][0]

    @property
    def is_recurrent(self) -> bool:
        return self.class_name in RECURRENT and self.is_of_keras


def from_file(
    path: str | os.PathLike[str], layer: str | None = None, *, name: str | None = None, weight_dtype: str | None = None
) -> Stack:
    """Read a recurrent layer of a model in a .keras file of Keras 3; it needs h5py, but not Keras.

    Parameters
    ----------
    path : path
        Path of the file. No code in it is run.
    layer : str, optional
        Name of the layer; in a model inside the model "inner/name", or the name if it is unique. Default: the only
        recurrent layer.
    name : str, optional
        Name of the stack in errors. Default: the name of the layer.
    weight_dtype : str, optional
        "bfloat16" or "int8": store W and R in fewer bits, see `pyrnnx.Layer`. Default: the dtype of the weights.

    Returns
    -------
    Stack
        The stack of `from_layer`.

    Raises
    ------
    ArgumentError
        The file cannot be opened, the model does not have the layer, or the name is ambiguous.
    FormatError
        The file is broken: it is not a zip file, or parts are missing, too large, or contradict each other. HDF5 reads
        the weights in another process, because it may crash or hang on damaged files.
    UnsupportedError
        As in `from_layer`; or Keras 2 wrote the file.
    PyrnnxError
        h5py is not installed, or no process can be started.

    Source: the .keras format of Keras 3.
    """
    if not is_path(path):
        raise ArgumentError(f"from_file: path is {shown(path)}; expected the path of a .keras file")
    if layer is not None and not isinstance(layer, str):
        raise ArgumentError(f"from_file: layer is {shown(layer)}; expected a name, or None")
    label = printable(shortened(os.fspath(path)))
    with open_regular("from_file", path, expected="a .keras file") as file:
        archive = Archive(label, file)
        config = archive.config()
        entry = _selected(label, layer, list(_layers(label, config, (), 0)))
        label = f"{label}: {entry.class_name} {shown(entry.path)}"
        layer_config = read_config(label, entry.class_name, entry.config)
        contents = archive.weights()
    counts = [(cell.path, 3 if cell.use_bias else 2) for cell in layer_config.cells]
    arrays = read_arrays(label, read_weights(label, contents, entry.parents, counts))
    return build_stack(label, layer_config, arrays, entry.name if name is None else name, weight_dtype)


def _layers(label: str, model: Mapping[str, Any], parents: tuple[tuple[str, str], ...], depth: int) -> Iterator[_Entry]:
    """Yield the layers of a model, with models in it replaced by their layers."""
    config = model.get("config")
    layers = config.get("layers") if isinstance(config, dict) else None
    if not isinstance(layers, list):
        return
    if depth > DEPTH:
        raise FormatError(f"{label}: it has models nested {depth} deep; expected at most {DEPTH}")
    names = UniqueNames()
    for layer in layers:
        if not isinstance(layer, dict) or not isinstance(layer.get("class_name"), str):
            raise FormatError(f"{label}: it has {shown(layer)} among its layers; expected objects with a class_name")
        class_name, own = layer["class_name"], layer.get("config")
        name = own.get("name") if isinstance(own, dict) else None
        here = (*parents, (name if isinstance(name, str) else class_name, names.of(class_name)))
        entry = _Entry(class_name, own, here, is_layer_of_keras(layer))
        if not entry.is_recurrent and isinstance(own, dict) and isinstance(own.get("layers"), list):
            yield from _layers(label, layer, here, depth + 1)
        else:
            yield entry


def _selected(label: str, layer: str | None, entries: list[_Entry]) -> _Entry:
    """Return the recurrent layer with a path or name; the only one without a name."""
    recurrent = [entry for entry in entries if entry.is_recurrent]
    if not recurrent:
        raise ArgumentError(f"{label}: it has no recurrent layer; expected one of {', '.join(RECURRENT)}")
    matches = [entry for entry in recurrent if layer in (None, entry.path)]
    matches = matches or [entry for entry in recurrent if layer == entry.name]
    if len(matches) == 1:
        return matches[0]
    text = "was not given" if layer is None else f"is {shown(layer)}"
    raise ArgumentError(f"{label}: layer {text}; expected one of {listed(shown(row.path) for row in recurrent)}")


class Archive:
    """An open .keras file; `label` is its name in errors."""

    def __init__(self, label: str, file: BinaryIO) -> None:
        self.label = label
        try:
            self._zip = zipfile.ZipFile(file)
        except Exception as error:  # zipfile raises several types
            raise FormatError(f"{label}: not a .keras file ({shortened(str(error))})") from error
        self._most = EXPANSION * max(os.fstat(file.fileno()).st_size, 1)

    def config(self) -> Any:
        version = self._json(METADATA).get("keras_version")
        major = version.partition(".")[0] if isinstance(version, str) else ""
        if not major.isdecimal() or not major.isascii():
            raise FormatError(f"{self.label}: keras_version is {shown(version)}; expected a version")
        if len(major) < 2 and int(major) < OLDEST:
            raise UnsupportedError(f"{self.label}: Keras {shown(version)} wrote the file; expected Keras {OLDEST}")
        return self._json(CONFIG)

    def weights(self) -> bytes:
        return self._read(WEIGHTS, self._most)

    def _json(self, name: str) -> dict[str, Any]:
        contents = self._read(name, min(LARGEST_JSON, self._most))
        try:
            parsed = json.loads(contents)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{self.label}: {name} is not JSON ({printable(shortened(str(error)))})") from error
        if not isinstance(parsed, dict):
            raise FormatError(f"{self.label}: {name} is {shown(parsed)}; expected an object")
        return parsed

    def _read(self, name: str, most: int) -> bytes:
        try:
            member = self._zip.getinfo(name)
        except KeyError:
            raise FormatError(
                f"{self.label}: it has no {name}; expected a file of model.save(...) of Keras 3"
            ) from None
        if member.file_size > most:
            raise FormatError(f"{self.label}: {name} has {member.file_size} bytes; expected at most {most}")
        try:
            with self._zip.open(member) as file:
                contents = file.read(member.file_size + 1)
        except Exception as error:  # encrypted, damaged, or of an unsupported compression
            raise FormatError(f"{self.label}: {name} cannot be read ({shortened(str(error))})") from error
        return contents
