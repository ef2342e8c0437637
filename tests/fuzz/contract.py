"""The contract for any file: it is read, listed, called and exported, or rejected with a PyrnnxError."""

from __future__ import annotations

import math
import pickle
import random
import re
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes  # noqa: F401  # gives NumPy the names of its dtypes
import numpy as np
import onnx
from fuzz.seeds import WEIGHTS, Seed

import pyrnnx
from pyrnnx import PyrnnxError, PyrnnxWarning
from pyrnnx.frontends import onnx as onnx_frontend
from pyrnnx.frontends import openvino as openvino_frontend
from pyrnnx.testing.numbers import Array

LONGEST_MESSAGE = 4_200  # characters
# No machine has so much: what asks for it is refused at once, wherever it runs.
ADDRESSES = 2**47
# Folders of the package: where an editable install has its two parts, and where a wheel has one in the other.
FOLDERS = tuple({str(Path(str(module.__file__)).parent) + "/" for module in (pyrnnx, onnx_frontend, openvino_frontend)})


class BrokenError(Exception):
    """A result, an error message or a warning that breaks the contract."""


class Finding(NamedTuple):
    """A broken contract: the same signature for the same fault, and the traceback."""

    signature: str
    details: str


def check(kind: str, file: Seed, folder: Path, rng: random.Random) -> tuple[list[str], Finding | None]:
    """Do everything with a file; return the steps that gave a result, and the finding.

    `kind` is a key of `seeds.SOURCES`; files are written to the folder.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trial = _Trial(caught)
        try:
            _use(trial, kind, file, folder, rng)
        except Exception as error:
            return trial.passed, finding_of(trial.step, error)
    return trial.passed, None


class _Trial:
    def __init__(self, caught: list[warnings.WarningMessage]) -> None:
        self.caught = caught
        self.passed: list[str] = []
        self.step = ""  # the last one

    def __call__(self, step: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The function's result, or None where it is refused as it should be."""
        self.step = step
        try:
            result = function(*arguments)
        except PyrnnxError as error:
            _check_refusal(error)
            return None
        finally:
            while self.caught:
                _check_warning(self.caught.pop())
        self.passed.append(step)
        return result


def _use(trial: _Trial, kind: str, file: Seed, folder: Path, rng: random.Random) -> None:
    model = trial("read", read, kind, file, folder, rng.random() < 0.1)
    if model is None:
        return
    if not isinstance(model, pyrnnx.Model):  # an .xml of one <layer>
        trial("layer", repr, model)
        return
    trial("list", lambda: [repr(model), *map(repr, (*model.inputs, *model.outputs))])
    trial("call", lambda: model(*arrays_for(model.inputs, file.arrays, rng)))
    for key in trial("layers", lambda: list(model.layers)) or ():
        layer = trial("layer", lambda key=key: model.layers[key])
        if isinstance(layer, pyrnnx.Layer):
            _use_layer(trial, layer, folder, rng)
    if kind == "ir":
        proto = trial("export", openvino_frontend.to_onnx, model)
        if proto is not None:
            trial("exported", _check_export, proto)
    if rng.random() < 0.1:
        trial("pickle", lambda: pickle.loads(pickle.dumps(model)))


def read(kind: str, file: Seed, folder: Path, by_path: bool) -> Any:
    """The model, from memory where that is possible."""
    if not by_path and kind == "ir":
        return openvino_frontend.read_model(file.data, file.weights)
    if not by_path and not file.weights:
        return onnx_frontend.read_model(file.data)
    path = folder / f"model.{'xml' if kind == 'ir' else 'onnx'}"
    path.write_bytes(file.data)
    # A new file: the old one may be mapped still.
    weights = path.with_suffix(".bin") if kind == "ir" else folder / WEIGHTS
    weights.unlink(missing_ok=True)
    weights.write_bytes(file.weights)
    return pyrnnx.load(path)


def _use_layer(trial: _Trial, layer: pyrnnx.Layer, folder: Path, rng: random.Random) -> None:
    repr(layer)
    arrays = _layer_arrays(layer)
    trial("run", layer.run, arrays["X"])
    trial("run", lambda: layer.run(**arrays))
    if rng.random() < 0.2:
        trial("stream", lambda: layer.stream(3).push(arrays["X"]))
        trial("write", openvino_frontend.write_model, layer, folder / "written.xml")


def _layer_arrays(layer: pyrnnx.Layer) -> dict[str, Array]:
    """For three rows of up to two steps, by the names that `Layer.run` has."""
    sizes = {"T": 2, "N": 3, "I": layer.input_size, "D": layer.op.num_directions, "H": layer.op.hidden_size}
    arrays = {}
    for name in ("X", "initial_h", "initial_c")[: 3 if layer.op.has_cell_state else 2]:
        shape = [sizes[axis] for axis in layer.convention.axes_of(name)]
        arrays[name] = np.full(shape, 0.5, layer.dtype)
    return arrays if arrays["X"].ndim == 2 else {**arrays, "sequence_lens": np.array([2, 0, 1], np.int32)}


def _check_export(proto: onnx.ModelProto) -> None:
    """Check that pyrnnx and onnx's checker accept an export."""
    try:
        onnx_frontend.read_model(proto)
        onnx.checker.check_model(proto)
    except (PyrnnxError, onnx.checker.ValidationError) as error:
        raise BrokenError(f"an export that is not sound ({error})") from error


def arrays_for(infos: Iterable[pyrnnx.TensorInfo], given: Sequence[Array], rng: random.Random) -> Iterator[Array]:
    """Arrays for inputs: mostly those that belong to the original, else small ones of the declared shapes."""
    sizes: dict[str, int] = {}
    given = given if rng.random() < 0.85 else ()
    for k, info in enumerate(infos):
        if given and k >= len(given) and info.optional:
            return  # it and those after it have defaults
        if k < len(given) and info.dtype in (given[k].dtype.name, None):
            yield given[k]
        else:
            shape = [_size(dimension, sizes, rng) for dimension in (info.shape or ())[:32]]
            while math.prod(max(size, 1) for size in shape) > 1000:  # cut: a refusal is as good as any
                shape[np.argmax(shape)] = 1
            yield _array(info.dtype or "float32", shape, rng)


def _size(dimension: Any, sizes: dict[str, int], rng: random.Random) -> int:
    if isinstance(dimension, str):
        return sizes.setdefault(dimension, rng.choice((0, 1, 2, 3)))
    if isinstance(dimension, tuple):  # an interval
        dimension = dimension[0]
    return rng.choice((0, 1, 2, 3)) if dimension is None else min(dimension, 1000)


def _array(dtype: str, shape: Sequence[int], rng: random.Random) -> Array:
    if dtype == "str":
        return np.full(shape, "a", object)
    try:
        kind = np.dtype(dtype)
    except TypeError:  # an element type of ONNX alone
        kind = np.dtype(np.float32)
    return np.array([rng.choice((0, 1, 2)) for _ in range(math.prod(shape))], np.int8).reshape(shape).astype(kind)


def _check_refusal(error: PyrnnxError) -> None:
    message = str(error)
    if not message:
        raise BrokenError("an error without a message") from error
    if len(message) > LONGEST_MESSAGE:
        raise BrokenError(f"a message of more than {LONGEST_MESSAGE} characters") from error
    cause: BaseException | None = error
    while cause is not None:
        # Refused here for want of memory, elsewhere perhaps not.
        if isinstance(cause, MemoryError) and getattr(cause, "_total_size", 0) < ADDRESSES:
            raise BrokenError("memory exhausted") from cause
        cause = cause.__cause__ or cause.__context__


def _check_warning(warning: warnings.WarningMessage) -> None:
    text = str(warning.message)
    of_numbers = issubclass(warning.category, RuntimeWarning) or warning.category.__name__ == "ComplexWarning"
    if of_numbers and "/site-packages/" in warning.filename:
        return  # of NumPy, about numbers, in an operator of others
    if not issubclass(warning.category, PyrnnxWarning):
        start = re.split(r"['\[\d]", text)[0]  # before what differs from one to the next
        raise BrokenError(f"{warning.category.__name__} in {_short(warning.filename)}: {start} (...{text[-200:]})")
    if len(text) > LONGEST_MESSAGE:
        raise BrokenError(f"a warning of more than {LONGEST_MESSAGE} characters")


def finding_of(step: str, error: BaseException) -> Finding:
    """Return the outcome of a step, and the place in the package that raised it."""
    what, cause = type(error).__name__, error
    if isinstance(error, BrokenError):
        what, cause = str(error), error.__cause__ or error
    frames = [(frame.filename, frame.name) for frame in traceback.extract_tb(cause.__traceback__)]
    details = "".join(traceback.format_exception(cause))
    places = [] if cause is error and isinstance(error, BrokenError) else frames[::-1]
    return Finding(signature(f"{step}: {what.split(' (')[0]}", places), details[-20_000:])


def signature(what: str, frames: Sequence[tuple[str, str]]) -> str:
    """Return the error, its function in the package and the functions below it, innermost frame first."""
    own = next(((file, name) for file, name in frames if file.startswith(FOLDERS)), None)
    places = [] if own is None else [own]
    if frames and frames[0] != own:
        places.append(frames[0])
    return " < ".join([what, *(f"{_short(file)}:{name}" for file, name in places)])


def _short(file: str) -> str:
    return "/".join(Path(file).parts[-3 if file.startswith(FOLDERS) else -2 :])
