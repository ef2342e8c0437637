"""Rejected arguments of each command: status 2, one line that names it, and nothing written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import pyrnnx
from onnx_streams import I
from rows import each_row
from run_files import EXAMPLES, ONNX, XML, make_files
from scoring_data import write_npy

PLACES = {
    "onnx": ONNX,
    "xml": XML,
    "examples": EXAMPLES,
    "nasty": "\x1b[31mrot\n\u202e",  # a colour, a line break, and right to left
}
OP = "--op GRU --shape 5,2,3,4 --repeat 5"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_files(tmp_path_factory.mktemp("files"))
    write_npy(folder / "in", [np.ones((4, I), np.float32)])
    return folder


# The arguments of each command, with names of `PLACES`, and words of the message
REJECTED: dict[str, dict[str, tuple[str, str]]] = {
    "check": {
        "dimension": ("{onnx} --dim T=3", "--dim: check: dims has 'T'; expected symbolic dimensions of the inputs"),
        "tolerance": ("{onnx} --atol -1", "'--atol': '-1'; expected a finite number, 0 or above"),
        "time": ("{onnx} --timeout 0", "timeout is 0.0; expected a number of seconds above 0"),
        "an input": ("{onnx} --input Z=3", "check: --input: 'Z' is unknown; expected one of X, sequence_lens"),
        "inputs": ("{onnx} --input {onnx}", "expected NAME=FILE.npy, NAME=NUMBER or"),
        "layer with dimensions": ("{xml} --dim T=3", "a single layer"),
        "runtime": ("{onnx} --against torch", "--against: check: against has 'torch'; expected names out of "),
    },
    "compare": {
        "no such file": ("missing.onnx {xml}", "missing.onnx"),
        "a nasty name": ("{nasty}.onnx {xml}", r"\x1b[31mrot\n\u202e.onnx"),
        "a tolerance": ("{onnx} {xml} --atol nan", "'--atol': 'nan'; expected a finite number"),
        "a size": ("{onnx} {xml} --dim N=3", "--dim: compare: dims has 'N'; expected, for layers, seq_length"),
    },
    "bench": {
        "nothing": ("", "bench: neither MODEL nor --op was given; expected one"),
        "both": ("{onnx} {op}", "bench: MODEL and --op were both given; expected one"),
        "operator": ("--op CNN", "bench: Invalid value for '--op': 'CNN' is not one of 'LSTM', 'GRU', 'RNN'."),
        "shape": ("--op LSTM --shape 1,2,3", "bench: --shape is '1,2,3'; expected four numbers T,N,I,H"),
        "form": ("--op LSTM --linear-before-reset", "expected GRU"),
        "of an operator": ("{onnx} --shape 1,2,3,4", "bench: --shape does not apply to a model"),
        "of a model": ("{op} --dim T=3", "bench: --dim does not apply to --op"),
        "threads": ("{op} --threads 0", "'--threads': '0'; expected an integer, 1 or above"),
        "runtime": ("{onnx} --against torch", "against has 'torch'; expected names out of onnxruntime, openvino"),
        "layer": ("{xml}", "is a single layer; expected a whole model, or --op"),
    },
    "convert": {
        "source": ("a.tflite b.xml", "expected one of .onnx, .xml, .safetensors"),
        "target": ("{onnx} b.pb", "ends in '.pb'; expected .onnx or .xml"),
        "itself": ("{onnx} {onnx} --force", "is the same file as"),
        "the same format": ("{onnx} b.onnx", "is a model in .onnx already; expected another suffix, or --layer"),
        "layer": ("{onnx} b.onnx --layer x", "layers has no 'x'; expected one of"),
        "no weights": ("{xml} b.onnx", "its weights are no constants"),
        "opset": ("{onnx} b.xml --opset 14", "--opset does not apply to"),
        "optional input": ("{onnx} b.xml --layer small_rnn --optional-input X", "--optional-input does not apply to"),
        "unknown optional input": (
            "{onnx} b.onnx --layer small_rnn --optional-input X",
            "inputs is ['X']; expected a list of some of sequence_lens",
        ),
        "input of a layer": (
            "{onnx} b.onnx --layer small_rnn --input X=1",
            "small_rnn.onnx', a layer, written as .onnx; expected",
        ),
        "prefix": ("{onnx} b.xml --prefix a.", "--prefix does not apply to"),
    },
    "inspect": {
        "no such file": ("missing.onnx --json", "'missing.onnx' cannot be read"),
        "another suffix": ("model.pb", "expected .onnx or .xml"),
    },
    "score": {
        "workers": ("--workers many", "score: Invalid value for '--workers': 'many'; expected an integer"),
        "no such input": ("--input q=1", "'q'"),
        "sequences": ("--sequences q", "--sequences: score: "),
        "channels": ("--channels mean", "channels is 'mean', and the source is npy; expected a source of audio"),
    },
    "run": {
        "inputs that are missing": ("{onnx}", "no array for 'X', 'sequence_lens', 'initial_h'; expected --input"),
        "an unknown name": (
            "{onnx} --input sequence_len={files}/X.npy",
            "'sequence_len' is unknown; expected one of X, sequence_lens, initial_h; did you mean 'sequence_lens'?",
        ),
        "a name twice": ("{onnx} --input {files}/all.npz --input X={files}/X.npy", "run: --input: 'X' is given twice"),
        "an archive by a name": ("{onnx} --input X={files}/all.npz", "all.npz without a name, because an .npz file"),
        "weights": ("lstm.pt --seed 0", "ends in '.pt'; expected .onnx or .xml (pyrnnx convert makes"),
        "another shape": (
            "{onnx} --seed 0 --input X={files}/long.npy",
            "input 'X' has shape (7, 3, 4); expected [6, 2, 4]",
        ),
        "objects": (
            "{onnx} --input X={files}/objects.npy",
            "objects.npy' cannot be read (it is an array of Python objects",
        ),
        "a text": ("{onnx} --input X", "run: --input: 'X'; expected NAME=FILE.npy, NAME=NUMBER or"),
        "no number": (
            "{files}/table.onnx --input factor=much",
            "'factor' is 'much'; expected an .npy file, or a number",
        ),
        "a number for open sizes": ("{files}/table.onnx --input rows=1", "'rows' is '1'; expected an .npy file"),
        "a number beyond the type": ("{onnx} --input sequence_lens=1e9", "expected an .npy file, or a number of type"),
        "a dimension": (
            "{files}/table.onnx --seed 0 --dim C=3",
            "--dim: run: dims has 'C'; expected symbolic dimensions of the inputs: B",
        ),
        "a size": ("{onnx} --seed 0 --dim B=-1", "run: --dim: 'B' is '-1'; expected an integer, 0 or above"),
        "sizes without random inputs": ("{files}/table.onnx --dim B=3", "expected --seed SEED as well"),
        "a layer": ("{xml} --seed 0", "is a single layer; expected a whole model"),
        "an output file": ("{onnx} --seed 0 --output out.npy", "expected the name of an .npz file"),
        "an output folder": ("{onnx} --seed 0 --output /nowhere/out.npz", "'/nowhere/out.npz' cannot be"),
    },
}
ROWS = [(command, name) for command, rows in REJECTED.items() for name in rows]


@each_row(("command", "name"), ROWS)
def test_rejected(command: str, name: str, files: Path, tmp_path: Path) -> None:
    text, words = REJECTED[command][name]
    if command == "score":
        text = f"{{files}}/gru.onnx {{files}}/in out --workers 0 {text}"
    if command in ("bench", "check"):
        pytest.importorskip("onnxruntime")
        pytest.importorskip("openvino")
    arguments = [word.format(**PLACES, files=files) for word in text.replace("{op}", OP).split()]
    done = pyrnnx(command, *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.startswith("pyrnnx: ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.removesuffix("\n").isprintable()
    assert len(done.stderr) < 1_000
    assert list(tmp_path.iterdir()) == []
