"""What a .keras file holds: a zip of a JSON configuration and an HDF5 file of weights, of sizes that can be meant."""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any, BinaryIO

from pyrnnx.errors import FormatError, UnsupportedError, printable, shortened, shown

METADATA, CONFIG, WEIGHTS = "metadata.json", "config.json", "model.weights.h5"
LARGEST_JSON = 2**24  # bytes; a configuration of thousands of layers has a few millions
EXPANSION = 100  # Keras compresses nothing; weights that others compress do not become so much smaller
OLDEST = 3  # the major version of Keras whose files these are


class Archive:
    """An open .keras file.

    Attributes
    ----------
    label : str
        How errors name the file.

    Raises
    ------
    FormatError
        No zip file.
    """

    def __init__(self, label: str, file: BinaryIO) -> None:
        self.label = label
        try:
            self._zip = zipfile.ZipFile(file)
        except Exception as error:  # zipfile raises errors of several kinds
            raise FormatError(f"{label}: no .keras file ({shortened(str(error))})") from error
        self._most = EXPANSION * max(os.fstat(file.fileno()).st_size, 1)

    def config(self) -> Any:
        """The configuration of the model, parsed.

        Raises
        ------
        FormatError
            It is missing, too large, or no JSON.
        UnsupportedError
            The file was written by Keras 2.
        """
        version = self._json(METADATA).get("keras_version")
        major = version.partition(".")[0] if isinstance(version, str) else ""
        if not major.isdecimal() or not major.isascii():
            raise FormatError(f"{self.label}: keras_version is {shown(version)}; expected a version")
        if len(major) < 2 and int(major) < OLDEST:
            raise UnsupportedError(f"{self.label}: was written by Keras {shown(version)}; expected Keras {OLDEST}")
        return self._json(CONFIG)

    def weights(self) -> bytes:
        """The HDF5 file.

        Raises
        ------
        FormatError
            It is missing, or larger than it can be.
        """
        return self._read(WEIGHTS, self._most)

    def _json(self, name: str) -> dict[str, Any]:
        contents = self._read(name, min(LARGEST_JSON, self._most))
        try:
            parsed = json.loads(contents)
        except MemoryError:
            raise FormatError(f"{self.label}: {name}, of {len(contents)} bytes, exceeds memory") from None
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{self.label}: {name} is no JSON ({printable(shortened(str(error)))})") from error
        if not isinstance(parsed, dict):
            raise FormatError(f"{self.label}: {name} is {shown(parsed)}; expected an object")
        return parsed

    def _read(self, name: str, most: int) -> bytes:
        try:
            member = self._zip.getinfo(name)
        except KeyError:
            raise FormatError(f"{self.label}: has no {name}; expected a file of model.save(...) of Keras 3") from None
        if member.file_size > most:
            raise FormatError(f"{self.label}: {name} has {member.file_size} bytes; expected at most {most}")
        try:
            with self._zip.open(member) as file:
                contents = file.read(member.file_size + 1)
        except MemoryError:
            raise FormatError(f"{self.label}: {name}, of {member.file_size} bytes, exceeds memory") from None
        except Exception as error:  # encrypted, damaged, compressed as this Python cannot
            raise FormatError(f"{self.label}: {name} cannot be read ({shortened(str(error))})") from error
        return contents
