"""Sources in an object store: a local S3 server, and fsspec's own memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row
from scoring_data import PART, assert_equal, contents, expected, lstm, named, of_npz, sequences, write_npy

import pyrnnx
from pyrnnx import PyrnnxError

fsspec = pytest.importorskip("fsspec")
MemoryFileSystem = fsspec.get_filesystem_class("memory")
ITEMS = sequences()
NAMED = named(ITEMS)
BUSY = OSError("SlowDown")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[str]:
    """A folder of fsspec's memory with the items."""
    fsspec.filesystem("memory").put(f"{write_npy(tmp_path / 'in', ITEMS)}/", "memory://sequences/", recursive=True)
    yield "memory://sequences"
    fsspec.filesystem("memory").rm("memory://sequences", recursive=True)


def run(source: str, out: Path, **options: Any) -> Any:
    return pyrnnx.score(lstm(), source, out, **{"workers": 0, "memory": PART, **options})


def local(tmp_path: Path) -> dict[str, bytes]:
    """The parts of the same items in files."""
    run(str(tmp_path / "in"), tmp_path / "local")
    return contents(tmp_path / "local" / "parts")


@contextmanager
def failing(error: Exception, question: str, *ends: str) -> Iterator[None]:
    """Within failing(error, question), fsspec's memory raises it for paths with these ends."""
    real = getattr(MemoryFileSystem, question)

    def instead(self: Any, path: str, *arguments: Any, **options: Any) -> Any:
        if path.endswith(ends):
            raise error
        return real(self, path, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryFileSystem, question, instead)
        yield


def test_memory(memory: str, tmp_path: Path) -> None:
    """The parts are those of files, and a run is resumed."""
    report = run(f"{memory}/", tmp_path / "out")
    assert (report.items, report.resumed) == (len(ITEMS), 0)
    assert contents(tmp_path / "out" / "parts") == local(tmp_path)
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["source"]["path"] == memory
    assert run(memory, tmp_path / "out").computed == 0
    assert run(f"{memory}/003.npy", tmp_path / "one").items == 1


def test_an_object_that_changes(memory: str, tmp_path: Path) -> None:
    """By its version, during a run and after it; sizes are the same."""

    def replace(done: int, total: int) -> None:
        if done == total:
            path = tmp_path / "new.npy"
            np.save(path, -ITEMS[2])
            fsspec.filesystem("memory").put(str(path), f"{memory}/002.npy")

    with pytest.raises(PyrnnxError, match=r"file '.*002.npy' has changed since it was listed"):
        run(memory, tmp_path / "out", progress=replace)
    with pytest.raises(PyrnnxError, match="the source: fingerprint was"):
        run(memory, tmp_path / "out")
    run(memory, tmp_path / "out", overwrite=True)
    assert_equal(of_npz(tmp_path / "out"), expected(lstm(), {**NAMED, "002.npy": -ITEMS[2]}))


def test_urls_that_are_rejected(memory: str, tmp_path: Path) -> None:
    for url, words in {
        "memory://nothing": "'memory://nothing' does not exist",
        "nobody://x": "'nobody://x' cannot be read",
        "ftp://127.0.0.1:1/x": "'ftp://127.0.0.1:1/x' cannot be read",
        "zip://a.npy::memory://x.zip": "expected the URL of one store without user, password and query",
    }.items():
        with pytest.raises(PyrnnxError, match=re.escape(words)):
            run(url, tmp_path / "out")


SECRETS = (
    "s3://key:secret@bucket/x",
    "HTTPS://user:secret@host/x.npy?sig=secret",
    "s3://bucket/x?X-Amz-Signature=secret",
    Path("https://user:secret@host/x"),
)


@each_row("url", SECRETS)
def test_secrets_in_urls(url: Any, memory: str, tmp_path: Path) -> None:
    """No message, manifest or record has them."""
    for source, sink in ((url, tmp_path / "out"), (memory, str(url).replace(":/u", "://u"))):
        with pytest.raises(PyrnnxError) as error:
            pyrnnx.score(lstm(), source, sink, workers=0)
        assert "secret" not in str(error.value).replace("Path", "")
    assert not (tmp_path / "out").exists()


def test_errors_of_the_store(memory: str, tmp_path: Path) -> None:
    """A folder that cannot be listed is not left out, and an error is not taken for a missing object."""
    fsspec.filesystem("memory").copy(f"{memory}/", f"{memory}/deep/er/", recursive=True)
    gone = FileNotFoundError("/x")
    for error, question, end, words in (
        (BUSY, "ls", "/deep", r"sequences/deep' cannot be read \(SlowDown\)"),
        (gone, "ls", "/er", r"\(no such object\)"),
        (gone, "find", "s", r"s' .*\(no such object\)"),
        (BUSY, "info", "sequences", r"cannot be read \(SlowDown\)"),
    ):
        with failing(error, question, end), pytest.raises(PyrnnxError, match=words):
            run(memory, tmp_path / "out")
    with failing(BUSY, "info", "/003.npy"), pytest.raises(PyrnnxError, match=r"cannot be read \(SlowDown\)"):
        run(f"{memory}/003.npy", tmp_path / "out")
    assert run(memory, tmp_path / "out").items == 2 * len(ITEMS)


def test_files_of_several_items_that_fail_in_turn(tmp_path: Path) -> None:
    """An unreadable file is one item, so that parts have other items: none is reused for another, and none is lost."""
    system = fsspec.filesystem("memory")
    items: dict[str, Any] = {}
    for name in "abcd":
        own = {str(index): item for index, item in enumerate(sequences((1, 1, 1), seed=ord(name)))}
        np.savez(tmp_path / f"{name}.npz", **own)  # type: ignore[arg-type]
        system.put(str(tmp_path / f"{name}.npz"), f"memory://turns/{name}.npz")
        items |= {f"{name}.npz/{key}": item for key, item in own.items()}
    out = tmp_path / "out"
    for name in "ab":
        with failing(BUSY, "open", f"{name}.npz"):
            report = run("memory://turns", out, memory=2_400, skip_errors=True)
        assert dict(report.skipped) == {f"{name}.npz": "it cannot be read (SlowDown)"}
        assert_equal(of_npz(out), expected(lstm(), {key: item for key, item in items.items() if key[0] != name}))
    assert run("memory://turns", out, memory=2_400).resumed
    assert_equal(of_npz(out), expected(lstm(), items))
    system.rm("memory://turns", recursive=True)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A folder of a local S3 server, as the environment describes it to fsspec."""
    import boto3
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    for name, value in {"ACCESS_KEY_ID": "testing", "SECRET_ACCESS_KEY": "testing", "ENDPOINT_URL": url}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="bucket")
    for path in write_npy(tmp_path / "in", ITEMS).iterdir():
        client.put_object(Bucket="bucket", Key=f"sequences/{path.name}", Body=path.read_bytes())
    s3fs.S3FileSystem.clear_instance_cache()
    yield "s3://bucket/sequences"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.mark.e2e
@pytest.mark.skipif(not (find_spec("s3fs") and find_spec("moto")), reason="needs s3fs and moto")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")  # of moto and aiobotocore
@pytest.mark.parametrize("workers", [0, 1])
def test_s3(workers: int, bucket: str, tmp_path: Path) -> None:
    """Workers get the settings from their own environment."""
    if workers:
        pytest.importorskip("distributed")
    report = run(bucket, tmp_path / "out", workers=workers)
    assert report.items == len(ITEMS)
    assert contents(tmp_path / "out" / "parts") == local(tmp_path)
    assert "testing" not in (tmp_path / "out" / "manifest.json").read_text()
    assert run(bucket, tmp_path / "out", workers=workers).computed == 0
