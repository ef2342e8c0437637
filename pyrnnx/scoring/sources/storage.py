"""Storage of the files of a source: paths of this machine, or URLs of an object store, which fsspec reads."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from pyrnnx._internal.files import is_path, open_checked
from pyrnnx.errors import ArgumentError, reason_of, shown
from pyrnnx.scoring.packages import import_fsspec

HEAD = 2**16  # bytes that a request for a header reads
MISSING = "no such object"  # the message of a FileNotFoundError of fsspec is only the path
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # also "s3:/bucket", which Path makes of "s3://bucket"
_VERSIONS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "mtime", "LastModified", "last_modified", "created")


class Status(NamedTuple):
    """Properties of a file that change with its contents."""

    size: int
    version: str  # time of the last change of the contents, or the ETag of an object
    changed: str  # time of the last change of the file, also of its name; "" for an object


class Files:
    """Files of this machine."""

    def open(self, path: str, block: int | None = None) -> BinaryIO:
        """Open a file for reading. `block` is the size of requests for an object; 0 reads the whole at once."""
        return open_checked(path)

    def statuses(self, folder: str) -> Callable[[str], Status | None]:
        """Return a function that returns the status of a file below a folder, None if there is none."""

        def status(path: str) -> Status | None:
            try:
                status = os.stat(path)
            except OSError:
                return None
            return Status(status.st_size, str(status.st_mtime_ns), str(status.st_ctime_ns))

        return status

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield the path of each folder, and the names of its folders and files, as `os.walk` does.

        Links to folders are left out.
        """
        left = [folder]
        while left:
            path, folders, files = left.pop(), [], []
            try:
                with os.scandir(path) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            folders.append(entry.name)
                        elif not (entry.is_symlink() and os.path.isdir(entry.path)):
                            files.append(entry.name)
            except OSError as error:
                raise _unreadable(error.filename or path, error) from None
            yield path, folders, files
            left += [os.path.join(path, name) for name in folders]

    def is_file(self, path: str) -> bool:
        return os.path.isfile(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def has(self, path: str) -> bool:
        """Return whether there is something with this name, if only a broken link."""
        return os.path.lexists(path)

    def join(self, folder: str, name: str) -> str:
        return os.path.join(folder, name)

    def relative(self, path: str, folder: str) -> str:
        return os.path.relpath(path, folder)


class Objects(Files):
    """Objects of a store, whose names are those of files in folders."""

    def __init__(self, url: str) -> None:
        try:
            self._system = import_fsspec().core.url_to_fs(url)[0]
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

    def statuses(self, folder: str) -> Callable[[str], Status | None]:
        try:
            infos = self._asked("find", folder, detail=True)
        except FileNotFoundError as error:  # of the whole bucket
            raise _unreadable(folder, error) from error
        root = self._name(folder)
        return {folder + name.removeprefix(root): _status_of(info) for name, info in infos.items()}.get

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        # fsspec's own `walk` leaves out a subfolder whose listing fails.
        root, pending = self._name(folder), [folder]
        while pending:
            parent = pending.pop()
            try:
                infos = self._asked("ls", parent, fresh=parent == folder, detail=True)
            except FileNotFoundError as error:
                raise _unreadable(parent, error) from error
            names: dict[bool, list[str]] = {True: [], False: []}
            for info in infos:
                path = info["name"].rstrip("/")
                if path != self._name(parent):  # a marker of the folder itself
                    names[info["type"] == "directory"].append(path.rpartition("/")[2])
            yield folder + self._name(parent).removeprefix(root), names[True], names[False]
            pending += [self.join(parent, name) for name in names[True]]

    def is_file(self, path: str) -> bool:
        return self._type(path) not in (None, "directory")

    def is_folder(self, path: str) -> bool:
        return self._type(path) == "directory"

    def has(self, path: str) -> bool:
        return self._type(path) is not None

    def _type(self, path: str) -> str | None:
        """Return "file" or "directory", None if there is neither; fsspec's `isfile` returns False for any error."""
        try:
            return str(self._asked("info", path)["type"])
        except FileNotFoundError:
            return None

    def join(self, folder: str, name: str) -> str:
        return f"{folder}/{name}"

    def relative(self, path: str, folder: str) -> str:
        return path.removeprefix(f"{folder}/")

    def _asked(self, question: str, path: str, *, fresh: bool = True, **options: Any) -> Any:
        """Return the store's answer, as it is now, or unless `fresh` as since the last fresh one."""
        if fresh:
            self._system.invalidate_cache()  # fsspec keeps listings
        try:
            return getattr(self._system, question)(path, **options)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise _unreadable(path, error) from error

    def _name(self, url: str) -> str:
        """Return the name of a URL in fsspec's listings."""
        return str(self._system._strip_protocol(url))


def _unreadable(url: str, error: Exception) -> ArgumentError:
    reason = MISSING if isinstance(error, FileNotFoundError) and is_url(url) else reason_of(error)
    return ArgumentError(f"score: source {shown_path(url)} cannot be read ({reason})")


def _status_of(info: dict[str, Any]) -> Status:
    version = next((info[key] for key in _VERSIONS if info.get(key)), "")
    # Some stores give seconds in a listing, but a datetime for the object itself.
    return Status(
        int(info.get("size") or 0), str(version.timestamp() if hasattr(version, "timestamp") else version), ""
    )


def is_url(path: Any) -> bool:
    """Return whether a text is a URL, such as "s3://bucket/folder", and not a path."""
    return isinstance(path, str) and "://" in path and _URL.match(path) is not None


def _may_have_secret(url: str) -> bool:
    """Return whether a URL has a user, a password or a query, or is a chain of several URLs."""
    user, at, _ = url.partition("://")[2].partition("@")  # a password may have a slash
    return (bool(at) and ("/" not in user or ":" in user)) or "?" in url or "::" in url


def normal(path: str) -> str:
    """Return an absolute path, or a URL without a slash at its end."""
    if not is_url(path):
        return os.path.abspath(path)
    if _may_have_secret(path):
        raise ArgumentError(
            f"score: source is {shown_path(path)}; expected the URL of one store without user, password and query, "
            "because fsspec takes credentials from the environment"
        )
    return path.rstrip("/")


def shown_path(path: Any) -> str:
    """Return a path for a message, only the scheme of a URL that may have a secret; the type of anything else."""
    if not is_path(path):
        return f"of type {type(path).__name__}"
    text = os.fspath(path)
    is_secret = _URL.match(text) and re.search(r"[@?]|::", text)
    return shown(f"{text.partition(':')[0]}://..." if is_secret else text)


def storage_of(path: str) -> Files:
    """Return the storage of a path or URL."""
    return Objects(path) if is_url(path) else Files()
