"""The sink folder: manifest, parts, and a record with a checksum for each finished part.

manifest.json     description of the run: written first, and again with the list of parts when all are finished
segments.csv      segments of all recordings, if they are asked for
parts/00000.npz   results of the items of a part
done/00000.json   record of a finished part: its run, its checksum, the skipped items, and the segments
tmp/              unfinished files; those of parts and records in a folder named after the run
.lock             locked by the running process

Files with other names belong to somebody else, and are neither changed nor removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrnnx._internal import writing
from pyrnnx._internal.files import open_checked
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, reason_of, shown
from pyrnnx.scoring.segments import HEADER
from pyrnnx.scoring.sinks import SINKS, ZARR_GROUP

if TYPE_CHECKING:
    from pyrnnx.scoring.task import Part

FORMAT = 1
LOCK = ".lock"
BLOCK = 2**20  # bytes read at once
_SUFFIXES = "|".join(re.escape(sink.suffix) for sink in SINKS.values())
_PART = re.compile(rf"(\d{{5,}})(?:{_SUFFIXES})")
_RECORD = re.compile(r"(\d{5,})\.json")
_RUN = re.compile(r"[0-9a-f]{32}")
_UNFINISHED = re.compile(r"(manifest\.json|segments\.csv)\.[0-9a-f]{32}")


class Folder:
    """The sink folder, under the same path in every process; `suffix` ends the names of parts."""

    def __init__(self, path: str, suffix: str) -> None:
        self.path, self.suffix = path, suffix
        self.manifest, self.segments = Path(path, "manifest.json"), Path(path, "segments.csv")
        self.parts, self.records, self.tmp = Path(path, "parts"), Path(path, "done"), Path(path, "tmp")

    def part(self, number: int) -> Path:
        return self.parts / f"{number:05}{self.suffix}"

    def done(self, number: int) -> Path:
        return self.records / f"{number:05}.json"

    def unfinished(self, run: str) -> Path:
        # A run removes the folders of all others, whose workers may be stopped or cut off for any time, when it begins,
        # and its own when it ends: nothing can be renamed out of them then.
        return self.tmp / run

    def finished(self, part: Part, identity: str) -> dict[str, Any] | None:
        """Return the record of a part with these items, the run's `identity` and the right checksums, else None."""
        try:
            record = _loaded(self.done(part.number))
            is_same = record["identity"] == part_identity(identity, part)
            return record if is_same and record["sha256"] == _checksum(self.part(part.number)) else None
        except (OSError, ValueError, KeyError):
            return None

    def write_part(self, number: int, run: str, write: Callable[[Path], object]) -> dict[str, Any]:
        """Write the results of a part atomically, and return their checksum and size for its record."""

        def checked(temporary: Path) -> None:
            write(temporary)
            self.check_run(run)  # zarr makes missing folders again

        checksum = _write_whole(self.part(number), self.unfinished(run), checked)
        return {"sha256": checksum, "bytes": _size(self.part(number))}

    def finish(self, record: Mapping[str, Any]) -> None:
        _write_text(self.done(record["part"]), self.unfinished(record["run"]), json.dumps(record, indent=1))

    def check_run(self, run: str) -> None:
        """Raise an `ArgumentError` if another run uses the folder, or if this process cannot read its manifest."""
        try:
            current = _loaded(self.manifest).get("run")
        except (OSError, ValueError) as error:
            here = f"process {os.getpid()} on {socket.gethostname()}"
            raise ArgumentError(
                f"score: sink {shown(self.path)}: {here} cannot read its manifest.json ({reason_of(error)}); "
                "expected a folder that every worker can read and write under this path"
            ) from None
        if current != run:
            raise ArgumentError(
                f"score: sink {shown(self.path)} has the manifest of another run, which began after this one; expected "
                "one run for each sink"
            )

    def check(self, header: Mapping[str, Any], *, overwrite: bool) -> None:
        """Raise unless the folder is new or has results of the same run; change nothing."""
        before = self._before()
        changed = [] if before is None or overwrite else list(_changes(before, header))
        if changed:
            raise ArgumentError(
                f"score: sink {shown(self.path)} has results of another run: {'; '.join(changed)}; expected the same, "
                "another sink, or overwrite=True (--overwrite), which removes them"
            )

    def begin(self, header: Mapping[str, Any], *, overwrite: bool) -> None:
        """Take the folder for a run, after a `check`, and remove the files of earlier runs that this one cannot use.

        Records are removed first, and the new manifest replaces the old one after the parts. So a run that is killed in
        between leaves parts without records, under the manifest of the old run.
        """
        self.check(header, overwrite=overwrite)
        count = 0 if overwrite else header["parts"]
        planned = {path.name for number in range(count) for path in (self.part(number), self.done(number))}
        for folder, pattern in ((self.records, _RECORD), (self.parts, _PART)):
            for path in _entries(folder):
                if pattern.fullmatch(path.name) and path.name not in planned:
                    writing.remove(path)
        if overwrite and self.manifest.exists():
            (self.parts / ZARR_GROUP).unlink(missing_ok=True)
            self.segments.unlink(missing_ok=True)
        self.tmp.mkdir(parents=True, exist_ok=True)
        self.write({**header, "complete": False})
        for path in _entries(self.tmp):  # after the new manifest: a worker that has found the old one cannot rename now
            if _RUN.fullmatch(path.name):
                self.end(path.name)
            elif _UNFINISHED.fullmatch(path.name):
                writing.remove(path)
        for folder in (self.parts, self.records, self.unfinished(header["run"])):
            folder.mkdir(exist_ok=True)

    def end(self, run: str) -> None:
        """Remove the folder of a run's unfinished files, atomically for workers that still write there."""
        closed = self.tmp / uuid.uuid4().hex
        with contextlib.suppress(OSError):  # there is none, or the next run removes what is left
            os.replace(self.unfinished(run), closed)
            writing.remove(closed)

    def complete(self, header: Mapping[str, Any], records: list[dict[str, Any]]) -> None:
        self.end(header["run"])
        for record in records:
            path = self.part(record["part"])
            size = _size(path) if path.exists() else 0
            if size != record["bytes"]:
                raise PyrnnxError(
                    f"score: {shown(os.fspath(path))} has {size} bytes; expected {record['bytes']}, as written; the "
                    "same call computes what is missing"
                )
        if header["options"]["segments"] is not None:
            lines = "".join(record["segments"] for record in records)
            _write_text(self.segments, self.tmp, HEADER + lines)
        results = [{key: value for key, value in record.items() if key != "segments"} for record in records]
        self.write({**header, "complete": True, "results": results})

    def write(self, manifest: Mapping[str, Any]) -> None:
        _write_text(self.manifest, self.tmp, f"{json.dumps(manifest, indent=1)}\n")

    def _before(self) -> dict[str, Any] | None:
        """Return the manifest of an earlier run; None if the folder is empty or the run died before it wrote one."""
        if os.path.lexists(self.manifest):
            manifest = _loaded(self.manifest)
            if manifest.get("format") != FORMAT or not isinstance(manifest.get("run"), str):
                raise FormatError(
                    f"score: {shown(os.fspath(self.manifest))} is no manifest of format {FORMAT}, that of this version"
                )
            return manifest
        own = {LOCK, self.tmp.name}  # of a run that died before it wrote one
        others = sorted({path.name for path in _entries(Path(self.path))} - own)
        if others:
            raise ArgumentError(
                f"score: sink {shown(self.path)} has {shown(others[0])} but no manifest.json; expected a new or empty "
                "folder, or the sink of an earlier run"
            )
        return None


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _loaded(path: Path) -> dict[str, Any]:
    try:
        with open_checked(path) as file:
            value = json.loads(file.read().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"score: {shown(os.fspath(path))} is no JSON file ({reason_of(error)})") from None
    if not isinstance(value, dict):
        raise FormatError(f"score: {shown(os.fspath(path))} is a JSON {type(value).__name__}; expected an object")
    return value


def _write_whole(path: Path, folder: Path, write: Callable[[Path], object]) -> str:
    """Write atomically: call `write` on a temporary path in `folder`, rename it to `path`, return its checksum."""
    temporary = folder / f"{path.name}.{uuid.uuid4().hex}"
    with writing.renamed({temporary: path}):
        write(temporary)
        checksum = _checksum(temporary, sync=True)
    writing.sync_folder(path.parent)
    return checksum


def _write_text(path: Path, folder: Path, text: str) -> None:
    _write_whole(path, folder, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _checksum(path: Path, *, sync: bool = False) -> str:
    """Return the checksum of a file, or of the names, sizes and contents of all files of a folder.

    With `sync`, flush them to disk.
    """
    digest = hashlib.sha256()
    for file in _files(path):
        if file != path:
            digest.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\n".encode())
        with open_checked(file) as opened:
            while block := opened.read(BLOCK):
                digest.update(block)
            if sync:
                os.fsync(opened.fileno())
    if sync and path.is_dir():
        for folder in (path, *(inner for inner in path.rglob("*") if inner.is_dir())):
            writing.sync_folder(folder)
    return digest.hexdigest()


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in _files(path))


def _files(path: Path) -> list[Path]:
    return sorted(inner for inner in path.rglob("*") if not inner.is_dir()) if path.is_dir() else [path]


def part_identity(run_identity: str, part: Part) -> str:
    """Return a checksum of everything that makes a part: the run's identity, and the items.

    Parts of the same source may have other items: one that cannot be read when it is listed has no size, and a file
    of several items is one item then.
    """
    return hashlib.sha256(json.dumps([run_identity, part.number, part.first, part.names]).encode()).hexdigest()


_COMPARED = {"pyrnnx": "the version of pyrnnx", "model": "the model", "source": "the source", "options": "the options"}
# Entries of the source. Without a change of the fingerprint, the items depend only on which files can be read.
_NOT_COMPARED = ("path", "items", "hidden")


def identity(header: Mapping[str, Any]) -> str:
    """Return a checksum of everything that two runs must share for one to reuse the parts of the other."""
    source = {name: value for name, value in header["source"].items() if name not in _NOT_COMPARED}
    compared = {**{key: header[key] for key in _COMPARED}, "source": source}
    return hashlib.sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, words in _COMPARED.items():
        old, new = before.get(key), now[key]
        if isinstance(old, dict) and isinstance(new, dict):
            for name in new:
                if name not in _NOT_COMPARED and old.get(name) != new[name]:
                    yield f"{words}: {name} was {shown(old.get(name))} and is {shown(new[name])}"
        elif old != new:
            yield f"{words} was {shown(old)} and is {shown(new)}"
