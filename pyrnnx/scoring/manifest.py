"""The folder that results are written to: what was run, which parts are finished, and with what checksums.

manifest.json     what is run: written first, and again with the list of parts when all are finished
parts/00000.npz   results of the items of a part
done/00000.json   that the part is finished: of which run, its checksum, and the items that were skipped
tmp/              what is being written
lock              held by the process that runs

What has other names is not ours, and is neither changed nor removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, printable, shown
from pyrnnx.scoring import durable
from pyrnnx.scoring.sinks import SINKS, zarr

FORMAT = 1
_SUFFIXES = "|".join(re.escape(one.suffix) for one in SINKS.values())
_PART = re.compile(rf"(\d{{5,}})(?:{_SUFFIXES})")
_RECORD = re.compile(r"(\d{5,})\.json")
_HALF = re.compile(rf"(?:\d{{5,}}(?:{_SUFFIXES}|\.json)|manifest\.json)\.[0-9a-f]{{32}}")  # of durable.write_whole


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
    def records(self) -> Path:
        return Path(self.path, "done")

    @property
    def tmp(self) -> Path:
        return Path(self.path, "tmp")

    def part(self, number: int) -> Path:
        return self.parts / f"{number:05}{self.suffix}"

    def done(self, number: int) -> Path:
        return self.records / f"{number:05}.json"

    def finished(self, number: int, names: Sequence[str], identity: str) -> dict[str, Any] | None:
        """The record of a part with these items, if a run with this `identity` wrote it and it is whole; else None."""
        try:
            record = _loaded(self.done(number))
            sound = _sound(record, number, names, identity)
            if sound and record["sha256"] == durable.checksum(self.part(number)):
                return record
        except (OSError, PyrnnxError):
            pass
        return None

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
            found = _loaded(self.manifest).get("run")
        except (OSError, PyrnnxError) as error:
            raise ArgumentError(f"score: sink {shown(self.path)} is not there for {_here()} ({error})") from None
        if found != run:
            raise ArgumentError(f"score: sink {shown(self.path)} has been taken by another run")

    def check(self, header: Mapping[str, Any], *, overwrite: bool) -> None:
        """Look whether a run may have the folder: a new one, or one that ran the same before; nothing is changed.

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

    def begin(self, header: Mapping[str, Any], *, overwrite: bool) -> None:
        """Take the folder for a run, after a `check`, and remove what is ours and not of this run.

        Records go first, and the manifest stays until the new one replaces it: a run that is killed in between leaves
        what is still told to be of the old run, and parts without records.

        Raises
        ------
        PyrnnxError
            As of `check`.
        """
        self.check(header, overwrite=overwrite)
        count = 0 if overwrite else header["parts"]
        planned = {path.name for number in range(count) for path in (self.part(number), self.done(number))}
        for folder, pattern in ((self.records, _RECORD), (self.parts, _PART)):
            for one in _entries(folder):
                if pattern.fullmatch(one.name) and one.name not in planned:
                    durable.remove(one)
        if overwrite and self.manifest.exists():
            (self.parts / zarr.GROUP).unlink(missing_ok=True)
        for one in _entries(self.tmp):
            if _HALF.fullmatch(one.name):
                with contextlib.suppress(OSError):  # a worker of a run whose scheduler was lost may still write there
                    durable.remove(one)
        self.tmp.mkdir(parents=True, exist_ok=True)
        self.write({**header, "complete": False})
        for folder in (self.parts, self.records):
            folder.mkdir(exist_ok=True)

    def complete(self, header: Mapping[str, Any], records: list[dict[str, Any]]) -> None:
        """Write that all parts are finished.

        Raises
        ------
        PyrnnxError
            A part that is not there any more, or of another size than when it was written.
        """
        for record in records:
            path = self.part(record["part"])
            try:
                size = durable.size(path)
            except OSError as error:
                raise PyrnnxError(
                    f"score: {shown(os.fspath(path))} was written and is lost ({error}); {AGAIN}"
                ) from None
            if size != record["bytes"]:
                raise PyrnnxError(
                    f"score: {shown(os.fspath(path))} has {size} bytes; expected {record['bytes']}, as written; {AGAIN}"
                )
        self.write({**header, "complete": True, "results": records})

    def write(self, manifest: Mapping[str, Any]) -> None:
        durable.write_text(self.manifest, self.tmp, f"{json.dumps(manifest, indent=1)}\n")

    def _before(self) -> dict[str, Any] | None:
        """The manifest that is there; None in an empty folder, or one that a run had only begun with."""
        if os.path.lexists(self.manifest):
            found = _loaded(self.manifest)
            if found.get("format") != FORMAT or not isinstance(found.get("run"), str):
                raise FormatError(
                    f"score: {shown(os.fspath(self.manifest))} is no manifest of format {FORMAT}, that of this version"
                )
            return found
        for one in sorted(_entries(Path(self.path))):
            if not self._only_begun(one):
                raise ArgumentError(
                    f"score: sink {shown(self.path)} holds {shown(one.name)} and no manifest.json; expected a folder "
                    "that is new or empty, or one of an earlier run"
                )
        return None

    def _only_begun(self, one: Path) -> bool:
        """Whether it is what a run makes before there is a manifest."""
        if one.name == "lock":
            return one.is_file() and not one.is_symlink() and not one.stat().st_size
        return one == self.tmp and not one.is_symlink() and all(_HALF.fullmatch(half.name) for half in _entries(one))


AGAIN = "the same call computes what is missing"


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _loaded(path: Path) -> dict[str, Any]:
    """A JSON object.

    Raises
    ------
    FormatError
        Anything else.
    OSError
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"score: {shown(os.fspath(path))} is no JSON ({printable(str(error))})") from None
    if not isinstance(found, dict):
        raise FormatError(f"score: {shown(os.fspath(path))} is a JSON {type(found).__name__}; expected an object")
    return found


def _sound(record: Mapping[str, Any], number: int, names: Sequence[str], identity: str) -> bool:
    """Whether a record tells of just this part."""
    items, skipped = record.get("items"), record.get("skipped")
    return (
        record.get("identity") == identity
        and type(record.get("part")) is int
        and record["part"] == number
        and type(items) is int
        and type(record.get("bytes")) is int
        and isinstance(skipped, dict)
        and all(isinstance(reason, str) for reason in skipped.values())
        and skipped.keys() <= set(names)
        and items + len(skipped) == len(names)
        and isinstance(record.get("run"), str)
        and isinstance(record.get("sha256"), str)
    )


_COMPARED = {"pyrnnx": "the version of pyrnnx", "model": "the model", "source": "the source", "options": "the options"}


def identity(header: Mapping[str, Any]) -> str:
    """A checksum of all that two runs have to agree in for one to go on with the parts of the other."""
    source = {name: value for name, value in header["source"].items() if name != "path"}
    compared = {**{key: header[key] for key in _COMPARED}, "source": source}
    return hashlib.sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
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
