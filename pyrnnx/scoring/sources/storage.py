"""Storage of the files of a source: paths of this machine, or URLs of an object store, which fsspec reads."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from pyrnnx._internal.extras import import_package
from pyrnnx._internal.files import is_path, open_checked
from pyrnnx.errors import ArgumentError, reason_of, shown

HEAD = 2**16  # bytes that a request for a header reads
FILE, FOLDER = "file", "directory"
MISSING = "no such object"  # the message of a FileNotFoundError of fsspec is only the path
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # also "s3:/bucket", which Path makes of "s3://bucket"
_SECRET = re.compile(r"[@?]|::")  # a user, a password or a query, or a chain of several URLs
_VERSIONS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "mtime", "LastModified", "last_modified", "created")


class Files:
    """Files of this machine."""

    def open(self, path: str, block: int | None = None) -> BinaryIO:
        """Open a file for reading. `block` is the size of requests for an object; 0 reads the whole at once."""
        return open_checked(path)

    def versions(self, folder: str) -> Callable[[str], str | None]:
        """Return a function that returns for a file below a folder a text that changes with its contents, else None."""

        def version(path: str) -> str | None:
            try:
                status = os.stat(path)
            except OSError:
                return None
            return f"{status.st_size} {status.st_mtime_ns}"

        return version

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield folders as `os.walk` does, without following links to folders."""

        def fail(error: OSError) -> None:
            raise _unreadable(error.filename, error) from None

        return os.walk(folder, onerror=fail)

    def kind(self, path: str) -> str | None:
        """Return `FILE` or `FOLDER`, None if there is neither."""
        return FOLDER if os.path.isdir(path) else FILE if os.path.exists(path) else None


class Objects(Files):
    """Objects of a store, whose names are those of files in folders."""

    def __init__(self, url: str) -> None:
        fsspec = import_package("fsspec.core", "score: URLs", "score")
        try:
            self._system = fsspec.url_to_fs(url)[0]
        except Exception as error:  # packages of stores raise errors of many types, and some connect here
            raise _unreadable(url, error) from error

    def open(self, path: str, block: int | None = None) -> BinaryIO:
        try:
            if block == 0:
                return io.BytesIO(self._system.cat_file(path))
            file: BinaryIO = self._system.open(path, "rb", **({} if block is None else {"block_size": block}))
        except FileNotFoundError as error:
            raise FileNotFoundError(MISSING) from error
        return file

    def versions(self, folder: str) -> Callable[[str], str | None]:
        root = self._name(folder)
        infos = self._asked("find", folder, detail=True)
        return {folder + name.removeprefix(root): _version_of(info) for name, info in infos.items()}.get

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        # fsspec's own `walk` leaves out a subfolder whose listing fails.
        root, pending = self._name(folder), [folder]
        while pending:
            parent = pending.pop()
            names: dict[bool, list[str]] = {True: [], False: []}
            for info in self._asked("ls", parent, detail=True):
                path = info["name"].rstrip("/")
                if path != self._name(parent):  # a marker of the folder itself
                    names[info["type"] == FOLDER].append(path.rpartition("/")[2])
            yield folder + self._name(parent).removeprefix(root), names[True], names[False]
            pending += [f"{parent}/{name}" for name in names[True]]

    def kind(self, path: str) -> str | None:
        info = self._asked("info", path, {"type": None})  # fsspec's `isfile` returns False for any error
        return info["type"] and (FOLDER if info["type"] == FOLDER else FILE)

    def _asked(self, question: str, path: str, missing: Any = None, **options: Any) -> Any:
        """Return the store's answer, as it is now, or `missing` if there is no such object."""
        self._system.invalidate_cache()  # fsspec caches listings
        try:
            return getattr(self._system, question)(path, **options)
        except Exception as error:
            if missing is not None and isinstance(error, FileNotFoundError):
                return missing
            raise _unreadable(path, error) from error

    def _name(self, url: str) -> str:
        """Return the name of a URL in fsspec's listings."""
        return str(self._system._strip_protocol(url))


def _unreadable(path: str, error: Exception) -> ArgumentError:
    reason = MISSING if isinstance(error, FileNotFoundError) and is_url(path) else reason_of(error)
    return ArgumentError(f"score: source {shown_path(path)} cannot be read ({reason})")


def _version_of(info: dict[str, Any]) -> str:
    version = next((info[key] for key in _VERSIONS if info.get(key)), "")
    # Some stores give seconds in a listing, but a datetime for the object itself.
    return f"{info.get('size') or 0} {version.timestamp() if hasattr(version, 'timestamp') else version}"


def is_url(path: Any) -> bool:
    """Return whether a text is a URL, such as "s3://bucket/folder", and not a path."""
    return isinstance(path, str) and "://" in path and _URL.match(path) is not None


def absolute(path: Any) -> str:
    """Return the absolute path of a source that exists, or its URL without a slash at its end."""
    if not is_path(path) or "\0" in os.fspath(path):
        raise ArgumentError(f"score: source is {shown_path(path)}; expected a path")
    normal = os.fspath(path)
    if is_url(normal) and _SECRET.search(normal):
        raise ArgumentError(
            f"score: source is {shown_path(path)}; expected the URL of one store without user, password and query, "
            "because fsspec takes credentials from the environment"
        )
    normal = normal.rstrip("/") if is_url(normal) else os.path.abspath(normal)
    if storage_of(normal).kind(normal) is None:
        raise ArgumentError(f"score: source {shown_path(path)} does not exist; expected a file, a folder or a URL")
    return normal


def shown_path(path: Any) -> str:
    """Return a path for a message, only the scheme of a URL that may have a secret; the type of anything else."""
    if not is_path(path):
        return f"of type {type(path).__name__}"
    text = os.fspath(path)
    is_secret = _URL.match(text) and _SECRET.search(text)
    return shown(f"{text.partition(':')[0]}://..." if is_secret else text)


def storage_of(path: str) -> Files:
    return Objects(path) if is_url(path) else Files()
