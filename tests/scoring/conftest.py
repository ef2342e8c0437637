"""Interrupted runs, and files that are not synchronized to the disk."""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pyrnnx._internal import writing
from pyrnnx.scoring import run
from pyrnnx.scoring.plan import Run, planned


@pytest.fixture(autouse=True)
def _as_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs in this process score by a job as a worker has it, without waiting for the disk."""

    def instead(*arguments: Any) -> Run:
        plan = planned(*arguments)
        return dataclasses.replace(plan, job=pickle.loads(pickle.dumps(plan.job)))

    monkeypatch.setattr(run, "planned", instead)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


class Killed(BaseException):
    """The end of a process: nothing is removed or written any more."""


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str, Path], bool]], AbstractContextManager[None]]:
    """Within killed(when), the run ends as by SIGKILL where `when`, of a function of `writing` and a path, is true."""

    @contextmanager
    def ending(when: Callable[[str, Path], bool]) -> Iterator[None]:
        dead = False

        def patched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def instead(path: Path, *arguments: Any) -> Any:
                nonlocal dead
                dead = dead or when(name, path)
                if dead:
                    raise Killed
                return real(path, *arguments)

            return instead

        with monkeypatch.context() as patch:
            for name in ("remove", "sync_folder"):
                patch.setattr(writing, name, patched(name, getattr(writing, name)))
            with pytest.raises(Killed):
                yield

    return ending
