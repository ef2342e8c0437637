"""Archives: .keras files, which are zips of a JSON configuration and HDF5 weights, with limits of size."""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any, BinaryIO

from pyrnnx.errors import FormatError, UnsupportedError, printable, shortened, shown

METADATA, CONFIG, WEIGHTS = "metadata.json", "config.json", "model.weights.h5"
LARGEST_JSON = 2**24  # bytes; thousands of layers need a few millions
EXPANSION = 100  # limit of compression: Keras does not compress, and others compress weights less
OLDEST = 3  # major version of Keras


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
        """Return the parsed configuration of the model."""
        version = self._json(METADATA).get("keras_version")
        major = version.partition(".")[0] if isinstance(version, str) else ""
        if not major.isdecimal() or not major.isascii():
            raise FormatError(f"{self.label}: keras_version is {shown(version)}; expected a version")
        if len(major) < 2 and int(major) < OLDEST:
            raise UnsupportedError(f"{self.label}: Keras {shown(version)} wrote the file; expected Keras {OLDEST}")
        return self._json(CONFIG)

    def weights(self) -> bytes:
        """Return the bytes of the HDF5 file."""
        return self._read(WEIGHTS, self._most)

    def _json(self, name: str) -> dict[str, Any]:
        contents = self._read(name, min(LARGEST_JSON, self._most))
        try:
            parsed = json.loads(contents)
        except MemoryError:
            raise FormatError(f"{self.label}: {name} has {len(contents)} bytes, which exceed memory") from None
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
        except MemoryError:
            raise FormatError(f"{self.label}: {name} has {member.file_size} bytes, which exceed memory") from None
        except Exception as error:  # encrypted, damaged, or of an unsupported compression
            raise FormatError(f"{self.label}: {name} cannot be read ({shortened(str(error))})") from error
        return contents
