"""Storage of the files of a source: paths of this machine, or URLs of an object store, which fsspec reads."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from pyrnnx.errors import ArgumentError, reason_of, shown
from pyrnnx.scoring.opened import open_file
from pyrnnx.scoring.packages import import_fsspec

HEAD = 2**16  # bytes that a request for a header reads
_URL = re.compile(r"([a-z][a-z0-9+.-]+)://(.*)")
_VERSIONS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "mtime", "LastModified", "last_modified", "created")


class Status(NamedTuple):
    """Properties of a file that change with its contents.

    Attributes
    ----------
    size : int
    version : str
        Time of the last change of the contents, or the ETag of an object.
    changed : str
        Time of the last change of the file, also of its name; "" for an object.
    """

    size: int
    version: str
    changed: str


class Files:
    """Files of this machine."""

    def open(self, path: str, block: int | None = None) -> BinaryIO:
        """Open a file for reading. `block` is the size of requests for an object; 0 reads the whole at once."""
        return open_file(path, follow=True)

    def status(self, path: str) -> Status | None:
        """Return the status of a file; None if there is none."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        return Status(status.st_size, str(status.st_mtime_ns), str(status.st_ctime_ns))

    def statuses(self, folder: str) -> Callable[[str], Status | None]:
        """Return a function like `status` for many files below a folder, as they are now."""
        return self.status

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """Yield the path of each folder, and the names of its folders and files, as `os.walk` does."""
        return os.walk(folder)

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
        self._scheme = url.partition("://")[0]
        try:
            self._system = import_fsspec().core.url_to_fs(url)[0]
        except (ImportError, ValueError) as error:  # the package of a store is missing; an unknown scheme
            raise _unreadable(url, error) from None

    def open(self, path: str, block: int | None = None) -> BinaryIO:
        if block == 0:
            return io.BytesIO(self._system.cat_file(path))
        file: BinaryIO = self._system.open(path, "rb", **({} if block is None else {"block_size": block}))
        return file

    def status(self, path: str) -> Status | None:
        try:
            return _status_of(self._asked("info", path))
        except FileNotFoundError:
            return None

    def statuses(self, folder: str) -> Callable[[str], Status | None]:
        infos = self._asked("find", folder, detail=True)
        return {self._url(name): _status_of(info) for name, info in infos.items()}.get

    def walk(self, folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
        entries = self._asked("walk", folder, on_error="raise")
        while True:
            try:
                parent, folders, files = next(entries)
            except StopIteration:
                return
            except Exception as error:
                raise _unreadable(folder, error) from error
            yield self._url(parent), folders, files

    def is_file(self, path: str) -> bool:
        return bool(self._asked("isfile", path))

    def is_folder(self, path: str) -> bool:
        return bool(self._asked("isdir", path))

    def has(self, path: str) -> bool:
        return self.is_file(path) or self.is_folder(path)

    def join(self, folder: str, name: str) -> str:
        return f"{folder}/{name}"

    def relative(self, path: str, folder: str) -> str:
        return path.removeprefix(f"{folder}/")

    def _asked(self, question: str, path: str, **options: Any) -> Any:
        """Return the store's answer, as it is now.

        Raises
        ------
        FileNotFoundError
            No such object.
        ArgumentError
            Any other error of the store or the network, which have many types.
        """
        self._system.invalidate_cache()  # listings of before, which fsspec keeps
        try:
            return getattr(self._system, question)(path, **options)
        except FileNotFoundError:
            raise
        except Exception as error:
            raise _unreadable(path, error) from error

    def _url(self, name: str) -> str:
        return f"{self._scheme}://{name.lstrip('/')}"


def _unreadable(url: str, error: Exception) -> ArgumentError:
    return ArgumentError(f"score: source {shown(url)} cannot be read ({reason_of(error)})")


def _status_of(info: dict[str, Any]) -> Status:
    version = next((info[key] for key in _VERSIONS if info.get(key)), "")
    # Some stores give seconds in a listing, but a datetime for the object itself.
    return Status(
        int(info.get("size") or 0), str(version.timestamp() if hasattr(version, "timestamp") else version), ""
    )


def is_url(path: Any) -> bool:
    """Return whether a text is a URL, such as "s3://bucket/folder", and not a path."""
    return isinstance(path, str) and _URL.match(path) is not None


def normal(path: str) -> str:
    """Return an absolute path, or a URL without a slash at its end.

    Raises
    ------
    ArgumentError
        A URL that has a password, which the manifest would show, or that chains several.
    """
    if not is_url(path):
        return os.path.abspath(path)
    if "::" in path or "@" in path.partition("://")[2].partition("/")[0]:
        raise ArgumentError(
            f"score: source is {shown(re.sub('//[^/]*@', '//...@', path))}; expected the URL of one store without "
            "credentials, which fsspec takes from the environment"
        )
    return path.rstrip("/")


def storage_of(path: str) -> Files:
    """Return the storage of a path or URL."""
    return Objects(path) if is_url(path) else Files()
