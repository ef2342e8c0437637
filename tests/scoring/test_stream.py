"""Items scored push by push: each equals the loop over ONNX Runtime on the unchanged model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peers import onnxruntime_session
from rows import each_row
from scoring_data import of_npz, write_npy, write_wav
from stream_graphs import CONTEXT, FRAME, GRAPHS, HIDDEN, SIZE, Graph, model_of

import pyrnnx
from pyrnnx import ArgumentError, PyrnnxError
from pyrnnx.testing.numbers import Array

onnx = pytest.importorskip("onnx")
text_format = pytest.importorskip("google.protobuf.text_format")
LENGTHS = (17, 4, 1, 33, 16, 0, 33, 8)  # of frames of 4: whole and not, short, none
RNG = np.random.default_rng(9)
# Values of very different sizes: a row that depended on another one would show.
ITEMS = [
    RNG.normal(scale=scale, size=length).astype(np.float32) for length, scale in zip(LENGTHS, (1, 5) * 4, strict=True)
]
OPTIONS: Any = {"frame": FRAME, "context": CONTEXT, "stream": True, "workers": 0}


def frames(samples: Array) -> list[Array]:
    """Frames in the order of time, each with the end of the samples before it."""
    padded = np.pad(samples, (CONTEXT, -len(samples) % FRAME))
    return [padded[start : start + SIZE] for start in range(0, len(samples), FRAME)]


def loop(graph: Graph, samples: Array, session: Any) -> Array:
    """The results of a plain loop, a frame and a row at a time, in ONNX Runtime."""
    inputs = dict(graph.options.get("inputs", {}))
    state = inputs.pop("state", np.zeros(graph.state, np.float32))
    others = {name: np.array(value) for name, value in inputs.items()}
    results = []
    rank = len(model_of(graph).graph.input[0].type.tensor_type.shape.dim)
    for frame in frames(samples):
        y, state = session.run(None, {"frame": frame[(np.newaxis,) * (rank - 1)], "state": state, **others})
        results.append(y.reshape(-1))
    return np.array(results)


@each_row("name", [name for name, graph in GRAPHS.items() if graph.state])
def test_stream(name: str, tmp_path: Path) -> None:
    graph = GRAPHS[name]
    source = write_npy(tmp_path / "in", ITEMS)
    batch: Any = {**OPTIONS, **graph.options, "batch": len(ITEMS)}
    if graph.error:
        with pytest.raises(PyrnnxError, match=graph.error):
            pyrnnx.score(model_of(graph), source, tmp_path / "out", **batch)
        del batch["batch"]
    pyrnnx.score(model_of(graph), source, tmp_path / "out", **batch)
    scored, session = of_npz(tmp_path / "out"), onnxruntime_session(model_of(graph))
    for index, item in enumerate(ITEMS):
        result = scored[f"{index:03}.npy"]
        wanted = loop(graph, item, session)
        assert list(result) == ["y1"]  # without the states
        assert len(result["y1"]) == -(-len(item) // FRAME)
        # float32 rounding of some ten steps; inputs up to 20
        np.testing.assert_allclose(result["y1"].reshape(wanted.shape), wanted, rtol=1e-5, atol=2e-5, err_msg=str(index))


def test_a_layer_with_its_own_state(tmp_path: Path) -> None:
    """The frames of a recording, push by push, are one sequence."""
    graph = GRAPHS["a layer's own state"]
    model = pyrnnx.load(model_of(graph))
    pyrnnx.score(model, write_npy(tmp_path / "in", ITEMS), tmp_path / "out", batch=3, **OPTIONS)
    for name, result in of_npz(tmp_path / "out").items():
        pieces = frames(ITEMS[int(name[:3])])
        if pieces:
            whole = model(np.array(pieces)[:, np.newaxis])["y1"]
            np.testing.assert_allclose(result["y1"].ravel(), whole.ravel(), rtol=0, atol=1e-6)  # sums in another order


def test_states_are_written_if_named(tmp_path: Path) -> None:
    graph = GRAPHS["rows first"]
    source = write_npy(tmp_path / "in", ITEMS)
    pyrnnx.score(model_of(graph), source, tmp_path / "out", outputs=["state_out", "y1"], **OPTIONS)
    for result in of_npz(tmp_path / "out").values():
        assert result["state_out"].shape[1:] == (HIDDEN,)
        np.testing.assert_allclose(1 / (1 + np.exp(-result["state_out"])), result["y1"], rtol=0, atol=1e-6)


def test_pairs_of_other_names(tmp_path: Path) -> None:
    graph = GRAPHS["rows first"]
    source = write_npy(tmp_path / "in", ITEMS)
    text = str(model_of(graph)).replace('"state"', '"x1"')
    model = text_format.Parse(text, onnx.ModelProto())
    with pytest.raises(ArgumentError, match=r"there are no states.*\(the states are the argument stream\)"):
        pyrnnx.score(model, source, tmp_path / "out", **OPTIONS)
    pyrnnx.score(model, source, tmp_path / "out", **{**OPTIONS, "stream": {"state_out": "x1"}})
    wanted = loop(graph, ITEMS[0], onnxruntime_session(model_of(graph)))
    np.testing.assert_allclose(of_npz(tmp_path / "out")["000.npy"]["y1"], wanted, rtol=1e-5, atol=2e-5)


GRAPH = GRAPHS["rows first"]
TWO_STEPS, OPEN_STATE = (
    GRAPH._replace(inputs=GRAPH.inputs.replace(*words)) for words in (("[N, 6]", "[2, 6]"), ("[N, 3]", "[N, ?]"))
)
CHOICE, AXES = GRAPHS["a choice by a constant"], GRAPHS["one axis more"]
WRONG: Mapping[str, tuple[Graph, dict[str, Any], str]] = {
    "no stream": (GRAPH, {"stream": False, "axes": "NTI"}, "or stream=True, which feeds 'state_out' as 'state' back"),
    "not a mapping": (GRAPH, {"stream": "yes"}, "stream is 'yes'; expected True, False or a mapping"),
    "lengths": (GRAPH, {"lengths": "state"}, "lengths is 'state'; expected None for a stream"),
    "tail": (GRAPH, {"tail": "cut"}, "tail is 'cut'; expected one of pad, drop"),
    "an unknown output": (GRAPH, {"outputs": ["s"]}, "outputs has 's'; expected names out of y1, state_out"),
    "an input without a value": (CHOICE, {}, "these inputs have no value: 'frame', 'sr'; set the one"),
    "the axes of a frame": (AXES, {}, "the axes of 'frame' .* in a push are unknown; expected axes"),
    "other axes": (GRAPH, {"axes": "NTI"}, "axes is 'NTI'; expected 2 letters"),
    "several time steps": (TWO_STEPS, {"axes": "TI"}, "has 2 time steps; expected 1"),
    "segments": (GRAPH, {"segments": 0.5}, r"outputs of an item are 'y1' \[T, 3\]; expected one output of one number"),
    "another frame": (GRAPH, {"frame": 5}, r"shape \(4, 7\) after frame=5 and context=2 cut it; expected \[T, 6\]"),
    "no frame": (GRAPH, {"frame": None, "context": 0}, r"expected \[T, 6\], or frame=6, which cuts samples into"),
    "a state of unknown size": (OPEN_STATE, {}, "the state 'state' .* has no initial value"),
}


@each_row("name", WRONG)
def test_wrong(name: str, tmp_path: Path) -> None:
    graph, options, message = WRONG[name]
    if name == "segments":
        write_wav(tmp_path / "in" / "a.wav", np.arange(99))
    source = tmp_path / "in" if name == "segments" else write_npy(tmp_path / "in", ITEMS)
    with pytest.raises(PyrnnxError, match=message):
        pyrnnx.score(model_of(graph), source, tmp_path / "out", **{**OPTIONS, **options})


def test_layers_take_whole_sequences(tmp_path: Path) -> None:
    from scoring_data import lstm

    with pytest.raises(ArgumentError, match="stream is True; expected None for a layer"):
        pyrnnx.score(lstm(), write_npy(tmp_path / "in", ITEMS), tmp_path / "out", **OPTIONS)


def silero_recordings(folder: Path) -> dict[str, Array]:
    """Speech of several lengths, loudness and noise, silence, less than a frame, and the samples as they are read."""
    from real_models import speech_like

    rng, samples = np.random.default_rng(2), {}
    for index, seconds in enumerate((3.1, 0.02, 2.0, 0.7, 4.0, 1.5, 2.56)):
        start = int(rng.integers(0, 16_000))
        sound = speech_like(6)[start : start + int(seconds * 16_000)] * rng.uniform(0.2, 1.5) * (index != 5)
        stored = np.clip((sound + rng.normal(0, 0.004, sound.shape)) * 2**15, -(2**15), 2**15 - 1).astype(np.int16)
        write_wav(folder / f"{index}.wav", stored)
        samples[f"{index}.wav"] = stored.astype(np.float32) / 2**15
    return samples


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["", "_16k_op15", "_half", "_op18_ifless"])
def test_silero(variant: str, silero_models: Path, tmp_path: Path) -> None:
    """Each probability is that of a loop over ONNX Runtime, whose last frame is padded."""
    path = silero_models / f"silero_vad{variant}.onnx"
    session = onnxruntime_session(path)
    others = {"sr": np.array(16_000)} if any(info.name == "sr" for info in session.get_inputs()) else {}
    samples = silero_recordings(tmp_path / "in")
    options: Any = {"stream": True, "frame": 512, "context": 64, "rate": 16_000, "inputs": others, "workers": 0}
    pyrnnx.score(path, tmp_path / "in", tmp_path / "out", batch=4, **options)
    everything = []
    for name, result in of_npz(tmp_path / "out").items():
        padded = np.concatenate([np.zeros(64, np.float32), samples[name]])
        padded = np.pad(padded, (0, -len(samples[name]) % 512))
        state, wanted = np.zeros((2, 1, 128), np.float32), []
        for start in range(0, len(padded) - 64, 512):
            y, state = session.run(None, {"input": padded[np.newaxis, start : start + 576], "state": state, **others})
            wanted.append(y)
        # a hundred steps of a recurrence in float32, of float16 in "_half"
        np.testing.assert_allclose(
            result["output"], np.concatenate(wanted), rtol=0, atol=5e-4 if variant == "_half" else 2e-5
        )
        everything.append(result["output"])
    assert np.ptp(np.concatenate(everything)) > 0.3  # the signal moves it
