"""The folder that results are written to: what was run, which parts are finished, and with what checksums.

manifest.json     what is run: written first, and again with the list of parts when all are finished
parts/00000.npz   results of the items of a part
done/00000.json   that the part is finished: its checksum, and the items that were skipped
tmp/              what is being written
lock              held by the process that runs
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrnnx.errors import ArgumentError, FormatError, shown
from pyrnnx.scoring import durable

FORMAT = 1
_OWN = ("manifest.json", "parts", "done", "tmp", "lock")


@dataclass(frozen=True)
class Folder:
    """Where results are written; the same path in every process.

    Attributes
    ----------
    path : str
        Absolute.
    suffix : str
        Of the names of parts.
    """

    path: str
    suffix: str

    @property
    def manifest(self) -> Path:
        return Path(self.path, "manifest.json")

    @property
    def parts(self) -> Path:
        return Path(self.path, "parts")

    @property
    def tmp(self) -> Path:
        return Path(self.path, "tmp")

    def part(self, number: int) -> Path:
        return self.parts / f"{number:05}{self.suffix}"

    def done(self, number: int) -> Path:
        return Path(self.path, "done", f"{number:05}.json")

    def finished(self, number: int) -> dict[str, Any] | None:
        """The record of a part that is there as its checksum says; else None."""
        try:
            record: dict[str, Any] = json.loads(self.done(number).read_text(encoding="utf-8"))
            sound = (
                record["sha256"] == durable.checksum(self.part(number))
                and {"part", "run", "items", "skipped"} <= record.keys()
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return record if sound else None

    def finish(self, number: int, record: Mapping[str, Any]) -> None:
        """Write the record of a part that has been written."""
        durable.write_text(self.done(number), self.tmp, json.dumps(record, indent=1))

    def check_run(self, run: str) -> None:
        """Reject a folder that another run has, or that is not there, as on a machine that sees other files.

        Raises
        ------
        ArgumentError
        """
        try:
            found = json.loads(self.manifest.read_text(encoding="utf-8")).get("run")
        except (OSError, ValueError) as error:
            raise ArgumentError(f"score: sink {shown(self.path)} is not there for {_here()} ({error})") from None
        if found != run:
            raise ArgumentError(f"score: sink {shown(self.path)} has been taken by another run")

    def begin(self, header: Mapping[str, Any], *, overwrite: bool) -> None:
        """Take the folder for a run: a new one, or one that ran the same before.

        Raises
        ------
        PyrnnxError
            A folder with other files, or of a run that was another: what of it was, is told.
        """
        before = self._before()
        if before is not None and not overwrite:
            changed = list(_changes(before, header))
            if changed:
                raise ArgumentError(
                    f"score: sink {shown(self.path)} has results of another run: {'; '.join(changed)}; expected the "
                    "same, another sink, or overwrite=True, which removes them"
                )
        if overwrite:
            for name in _OWN:
                if name != "lock":
                    durable.remove(Path(self.path, name))
        if self.tmp.is_dir():
            for one in self.tmp.iterdir():
                with contextlib.suppress(OSError):  # a worker of a run whose scheduler was lost may still write there
                    durable.remove(one)
        for folder in (self.parts, self.tmp, Path(self.path, "done")):
            folder.mkdir(parents=True, exist_ok=True)
        self.write({**header, "complete": False})

    def write(self, manifest: Mapping[str, Any]) -> None:
        durable.write_text(self.manifest, self.tmp, f"{json.dumps(manifest, indent=1)}\n")

    def _before(self) -> dict[str, Any] | None:
        """The manifest that is there; None in an empty folder."""
        if self.manifest.exists():
            try:
                found = json.loads(self.manifest.read_text(encoding="utf-8"))
            except ValueError as error:
                raise FormatError(f"score: {shown(os.fspath(self.manifest))} is no JSON ({error})") from None
            if not isinstance(found, dict) or found.get("format") != FORMAT:
                raise FormatError(
                    f"score: {shown(os.fspath(self.manifest))} is no manifest of format {FORMAT}, that of this version"
                )
            return found
        others = sorted(set(os.listdir(self.path)) - set(_OWN))
        if others:
            raise ArgumentError(
                f"score: sink {shown(self.path)} holds {shown(others[0])} and no manifest.json; expected a folder that "
                "is new or empty, or one of an earlier run"
            )
        return None


_COMPARED = {"pyrnnx": "the version of pyrnnx", "model": "the model", "source": "the source", "options": "the options"}


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Any:
    """In words, what differs of two manifests."""
    for key, words in _COMPARED.items():
        one, other = before.get(key), now[key]
        if isinstance(one, dict) and isinstance(other, dict):
            for name in other:
                if name != "path" and one.get(name) != other[name]:
                    yield f"{words}: {name} was {shown(one.get(name))} and is {shown(other[name])}"
        elif one != other:
            yield f"{words} was {shown(one)} and is {shown(other)}"


def _here() -> str:
    import socket

    return f"process {os.getpid()} on {socket.gethostname()}"


class Lock:
    """That one process alone runs into a folder: as long as it lives, and the lock is not released."""

    def __init__(self, path: str) -> None:
        try:
            import fcntl
        except ImportError:  # no POSIX system
            self._file = None
            return
        self._file = open(Path(path, "lock"), "w", encoding="utf-8")  # noqa: SIM115  # held while the run goes on
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ArgumentError(f"score: another process is writing to sink {shown(path)}") from None

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
