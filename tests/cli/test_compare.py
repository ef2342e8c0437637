"""`pyrnnx compare`, in a process of its own: what it prints and writes, and its exit status."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import in_terminal, pyrnnx
from onnx import numpy_helper
from onnx_streams import H, I, stepwise

from pyrnnx import compare
from pyrnnx.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIR = [str(EXAMPLES / "small_rnn.onnx"), str(EXAMPLES / "small_rnn.xml")]
NASTY = "\x1b[31mrot\n\u202e"  # a colour, a line break, and right to left


def command(*arguments: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    """`pyrnnx compare` with these arguments, away from the sources."""
    return pyrnnx("compare", *arguments, **keywords)


def test_result() -> None:
    done = command(*PAIR, "--seed", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{compare(PAIR[0], PAIR[1], seed=3)}\nthe same (atol=1e-05, rtol=1e-05)\n"


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The model with one weight that is another."""
    model = onnx.load(PAIR[0])
    R = next(one for one in model.graph.initializer if one.name == model.graph.node[0].input[2])
    array = numpy_helper.to_array(R).copy()
    array[1, 2, 3] += 0.25
    R.CopyFrom(numpy_helper.from_array(array, R.name))
    path = tmp_path_factory.mktemp("apart") / "apart.onnx"
    onnx.save(model, path)
    return str(path)


def test_different(apart: str) -> None:
    done = command(PAIR[0], apart)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == f"{compare(PAIR[0], apart)}\ndifferent (atol=1e-05, rtol=1e-05)\n"
    assert "R reverse: i 0.25" in done.stdout


def test_json(apart: str, capsys: pytest.CaptureFixture[str]) -> None:
    for other, status in ((PAIR[0], 0), (apart, 1)):
        assert main(["compare", PAIR[0], other, "--json", "--seed", "2"]) == status
        found = json.loads(capsys.readouterr().out)
        expected = compare(PAIR[0], other, seed=2).to_dict()
        assert found == json.loads(json.dumps({**expected, "atol": 1e-5, "rtol": 1e-5}, allow_nan=False))
        assert found["equal"] == (status == 0)


def test_tolerances(apart: str, capsys: pytest.CaptureFixture[str]) -> None:
    most = compare(PAIR[0], apart).largest_difference
    for options, status in (
        (["--atol", "1"], 0),
        (["--atol", f"{most / 2}", "--rtol", "0"], 1),
        (["--rtol", "1e6"], 0),
    ):
        assert main(["compare", PAIR[0], apart, *options, "--json"]) == status
        found = json.loads(capsys.readouterr().out)
        assert found["equal"] == (status == 0)
        assert f"{found['atol']:g}" == f"{float(options[1]) if options[0] == '--atol' else 1e-5:g}"


def test_the_text_is_by_the_tolerance_of_the_command(apart: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is said to be apart, and the verdict, never contradict each other."""
    assert main(["compare", PAIR[0], apart, "--atol", "1"]) == 0
    text = capsys.readouterr().out
    assert text.endswith("\nthe same (atol=1, rtol=1e-05)\n")
    assert "values that both have: " in text
    assert "none of them apart" in text
    assert "first " not in text
    assert main(["compare", PAIR[0], apart, "--atol", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first_difference"] is None
    assert main(["compare", PAIR[0], apart, "--atol", "1e-6"]) == 1
    text = capsys.readouterr().out
    assert "\nfirst apart (atol=1e-05, rtol=1e-05): Y " in text
    assert "\nfirst value apart: " in text
    assert text.endswith("\ndifferent (atol=1e-06, rtol=1e-05)\n")


def test_inputs(apart: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No difference in the reverse direction, where there is one step and h is zero."""
    X = np.ones((6, 2, 4), np.float32)
    given: dict[str, Any] = {
        "X": X,
        "sequence_lens": np.array([1, 1], np.int32),
        "initial_h": np.zeros((2, 2, 8), np.float32),
    }
    path = tmp_path / "in.npz"
    np.savez(path, **given)
    assert main(["compare", PAIR[0], apart, "--inputs", str(path), "--json"]) == 1  # of the layers, which run on others
    found = json.loads(capsys.readouterr().out)
    assert found["outputs"]["Y"]["largest"] == 0
    assert found["layers"]["small_rnn"]["largest_difference"] > 0


def test_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "step.onnx")
    onnx.save(stepwise(), path)
    assert main(["compare", path, path, "--dim", "N=6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["input_shapes"] == {"x": [3, 6, I], "h": [1, 6, H], "c": [1, 6, H]}
    assert main(["compare", path, path]) == 0
    assert "run on 'x' (3, 3, 4), 'h' (1, 3, 5), 'c' (1, 3, 5)" in capsys.readouterr().out
    assert main(["compare", PAIR[1], PAIR[1], "--dim", "batch_size=7", "--dim", "seq_length=2", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["outputs"]["Y"]["by_step"]) == 2


def test_files_are_written(apart: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    html, picture = tmp_path / "c.html", tmp_path / "c.png"
    assert main(["compare", PAIR[0], apart, "--html", str(html), "--plot", str(picture)]) == 1
    page = html.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert compare(PAIR[0], apart)._repr_html_() in page
    verdict = "<strong>different (atol=1e-05, rtol=1e-05)</strong>"
    assert page.index("<h1>") < page.index(verdict) < page.index("<table")
    assert "color-scheme: light dark" in page
    assert main(["compare", PAIR[0], apart, "--html", str(html), "--atol", "1"]) == 0
    page = html.read_text(encoding="utf-8")
    assert "<strong>the same (atol=1, rtol=1e-05)</strong>" in page
    assert "font-weight:bold" not in page
    assert "first " not in page
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_a_terminal(apart: str) -> None:
    for other, status, words in ((PAIR[1], 0, "\x1b[1;32mthe same"), (apart, 1, "\x1b[1;31mdifferent")):
        done = in_terminal("compare", PAIR[0], other)
        assert done[0] == status
        assert words in done[1]
        plain = re.sub("\x1b\\[[0-9;]*m", "", done[1])
        assert max(map(len, plain.splitlines())) <= 80
        assert "(atol=1e-05, rtol=1e-05)" in plain
        lines = plain.replace("\r", "").splitlines()
        headings = [k for k, line in enumerate(lines) if line.startswith(("Layers", "Models", "the same", "different"))]
        assert headings[0] == 0
        assert all(not lines[k - 1].strip() and lines[k - 2].strip() for k in headings[1:])


REJECTED: dict[str, tuple[list[str], str]] = {
    "no such file": (["missing.onnx", PAIR[1]], "missing.onnx"),
    "second file": ([PAIR[0], "missing.xml"], "missing.xml"),
    "another suffix": (["model.pb", PAIR[1]], "expected .onnx or .xml"),
    "a folder": ([str(EXAMPLES), PAIR[1]], "examples"),
    "seed": ([*PAIR, "--seed", "-1"], "compare: seed is -1; expected an integer, 0 or above"),
    "a nasty name": ([f"{NASTY}.onnx", PAIR[1]], r"\x1b[31mrot\n\u202e.onnx"),
    "a tolerance": ([*PAIR, "--atol", "-1"], "compare: --atol: '-1' is no number of 0 or above"),
    "a tolerance that is no number": ([*PAIR, "--rtol", "nan"], "compare: --rtol: 'nan' is no number of 0 or above"),
    "a size": ([*PAIR, "--dim", "N=3"], "compare: dims has 'N'; expected of layers seq_length, batch_size"),
    "a symbol": ([PAIR[0], PAIR[0], "--dim", "N=3"], "dims has 'N'; expected symbolic dimensions of the inputs: there"),
    "inputs": ([*PAIR, "--inputs", "missing.npz"], "compare: --inputs: 'missing.npz' cannot be read"),
    "a folder for a page": ([*PAIR, "--html", "/nowhere/c.html"], "compare: --html: '/nowhere/c.html' cannot be"),
    "a picture of another kind": ([*PAIR, "--plot", "/c.unheard"], "plot: '/c.unheard' cannot be written"),
    "bytes that are no text": ([os.fsdecode(b"\xff.onnx"), PAIR[1]], r"\udcff.onnx"),
}


IN_PROCESSES = {"no such file", "a nasty name", "bytes that are no text"}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, words = REJECTED[name]
    if "--plot" in arguments:
        pytest.importorskip("matplotlib")
    if name in IN_PROCESSES:
        done = command(*arguments)
    else:
        monkeypatch.chdir("/")
        status = main(["compare", *arguments])
        done = subprocess.CompletedProcess([], status, *capsys.readouterr())
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.startswith("pyrnnx: ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.removesuffix("\n").isprintable()


def test_usage() -> None:
    done = command(*PAIR, "--seed", "9" * 5000)
    assert done.returncode == 2
    assert "is no integer" in done.stderr
    assert len(done.stderr) < 1_000


def test_a_file_that_is_broken(tmp_path: Path) -> None:
    for name in ("broken.onnx", "broken.xml"):
        (tmp_path / name).write_bytes(b"<\x00\n" * 5)
        done = command(str(tmp_path / name), PAIR[1])
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.fixture
def nasty(tmp_path: Path) -> str:
    """The model with a name that a terminal would obey."""
    model = onnx.load(PAIR[0])
    model.graph.node[0].name = NASTY
    model.graph.output[0].name = model.graph.node[0].output[0] = NASTY
    path = tmp_path / f"{NASTY}.onnx"
    onnx.save(model, path)
    return str(path)


@pytest.mark.parametrize("other", ["itself", "a layer"])
def test_names_are_shown_escaped(nasty: str, other: str) -> None:
    done = command(nasty, nasty if other == "itself" else PAIR[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\x1b[31mrot\n\u202e" in done.stdout
    assert all(line.isprintable() for line in done.stdout.split("\n"))


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    path = tmp_path / "größe.xml"
    path.write_text(Path(PAIR[1]).read_text().replace("small_rnn", "größe"), encoding="utf-8")
    done = command(PAIR[0], str(path), env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert r"'gr\xf6\xdfe'" in done.stdout
    done = command(PAIR[0], str(path.with_suffix(".pb")), env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 2
    assert r"gr\xf6\xdfe.pb" in done.stderr
    assert done.stderr.count("\n") == 1


def test_warnings_are_a_line(tmp_path: Path) -> None:
    path = tmp_path / "layer.xml"
    path.write_text(Path(PAIR[1]).read_text().replace("<data ", '<data strange="1" '))
    done = command(PAIR[0], str(path), env={"PYTHONWARNINGS": "default"})
    assert done.returncode == 0
    assert done.stderr.startswith("pyrnnx: warning: ")
    assert "strange" in done.stderr
    assert done.stderr.count("\n") == 1


posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


@posix
def test_nobody_reads() -> None:
    """What `pyrnnx compare a b | head -1` does, when head has gone first."""
    read, write = os.pipe()
    os.close(read)
    done = command(*PAIR, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full of Linux")
def test_no_space() -> None:
    with open("/dev/full", "w") as full:
        done = command(*PAIR, stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith("pyrnnx: the result cannot be written (")
    assert done.stderr.count("\n") == 1


@posix
@pytest.mark.parametrize("closed", [1, 2], ids=["output", "errors"])
def test_closed_streams(closed: int) -> None:
    def close() -> None:
        os.close(closed)

    for arguments, status in ((PAIR, 0), (["missing.onnx", PAIR[1]], 2)):
        done = command(*arguments, preexec_fn=close)
        assert done.returncode == status
        assert "Traceback" not in done.stderr


INTERRUPT = """
import os, signal, sys, time
import pyrnnx.cli
import pyrnnx.comparison

def compare(*arguments, **keywords):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
pyrnnx.comparison.compare = compare
sys.exit(pyrnnx.cli.main(["compare", "a", "b"]))
"""


@posix
def test_interrupt() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPT], capture_output=True, cwd="/", check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, b"", b"")
