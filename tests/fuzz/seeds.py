"""Small valid models for the fuzzer to break, one for every operation that the tests know."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import openvino_nets as nets
import quantized_models
from hidden_layers import GATES, H, I, N, T, loop, scan, unrolled
from layers import random_inputs, random_layer
from onnx import helper
from onnx_models import simple_model
from random_graphs import drawn_model

import pyrnnx
from pyrnnx import OPENVINO_CELL, OPENVINO_SEQUENCE, PyrnnxError, RecurrentOp
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.openvino import write_model
from pyrnnx.operator.op import CELLS
from pyrnnx.testing.cases import CASES, OUTPUTS, Case, make_arrays
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.onnx_models import make_node

LARGEST = 9  # of any size: what a case takes time for are the steps around the numbers
LARGEST_MODEL = 8_000  # bytes
GRAPHS = 60
WEIGHTS = "weights.bin"


class Seed(NamedTuple):
    """A model as files, and arrays for its inputs in their order."""

    name: str
    data: bytes  # .onnx or .xml
    weights: bytes = b""  # .bin, or the external data of an ONNX model in WEIGHTS
    arrays: tuple[Any, ...] = ()


def _onnx(name: str, model: onnx.ModelProto, arrays: Iterable[Array], weights: bytes = b"") -> Seed:
    return Seed(name, model.SerializeToString(deterministic=True), weights, tuple(arrays))


def small_cases() -> Iterator[Case]:
    return (case for case in CASES if max(case.T, case.N, case.I, case.H) <= LARGEST)


def recurrent_nodes() -> Iterator[Seed]:
    """RNN, GRU and LSTM of every opset with every attribute and input, weights constant."""
    for case in small_cases():
        yield _onnx(case.name, *_of_case(case))


def _of_case(case: Case, given: tuple[str, ...] = ("X", "initial_h", "initial_c")) -> tuple[Any, Iterable[Array]]:
    arrays = make_arrays(case)
    inputs = {name: array for name, array in arrays.items() if name in given}
    constants = {name: array for name, array in arrays.items() if name not in given}
    model = simple_model([make_node(case, arrays)], inputs, OUTPUTS[case.operator], constants, case.opset)
    return model, inputs.values()


def constructs() -> Iterator[Seed]:
    """Return recurrent nodes among others, in bodies and functions, spelled out, quantized, with external data."""
    for number in range(GRAPHS):
        drawn = drawn_model(number)
        yield _onnx(f"graph {number}", drawn.proto, drawn.arrays(number, 3, 2).values())
    state = np.ones((N, H), np.float32)
    for make, kind in product((unrolled, scan, loop), GATES):
        inputs = [np.ones((T, N, I), np.float32), state, *([state] if kind == "LSTM" else [])]
        yield _onnx(f"{make.__name__} {kind}", make(kind), inputs)
    case = Case("in a construct", "LSTM", {}, ("B",), I=5)
    arrays: dict[str, Any] = make_arrays(case)
    yield _onnx("weights given", *_of_case(case, given=tuple(arrays)))
    yield _onnx("functions", *_in_functions(arrays))
    outside, (X,) = _of_case(case)
    onnx.external_data_helper.convert_model_to_external_data(outside, location=WEIGHTS, size_threshold=0)
    data = b"".join(_move_out(outside))
    yield _onnx("external data", outside, [X], data)
    yield _onnx("quantized weights", *_dequantized(arrays))
    for quantized in quantized_models.CASES:
        model, given = quantized_models.make_case(quantized)
        if model.ByteSize() < LARGEST_MODEL:
            yield _onnx(f"DynamicQuantizeLSTM {quantized.name}", model, given.values())


def _in_functions(arrays: Mapping[str, Array]) -> tuple[onnx.ModelProto, list[Array]]:
    linked = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"])
    linked.attribute.add(name="direction", ref_attr_name="direction", type=onnx.AttributeProto.STRING)
    imports = [helper.make_opsetid("", 17)]
    run = helper.make_function("test", "Run", ["x", "w", "r", "b"], ["y"], [linked], imports, ["direction"])
    calls = [
        helper.make_node("Run", ["X", "W", "R", "B"], [y], domain="test", direction=direction)
        for y, direction in (("Y", "forward"), ("Z", "reverse"))
    ]
    weights = {name: arrays[name] for name in ("W", "R", "B")}
    model = simple_model(calls, {"X": arrays["X"]}, ["Y", "Z"], weights, domains={"test": 1}, functions=[run])
    return model, [arrays["X"]]


def _move_out(model: onnx.ModelProto) -> Iterator[bytes]:
    """Yield the data of initializers that are declared external; replace it by its place."""
    offset = 0
    for tensor in model.graph.initializer:
        data = tensor.raw_data
        del tensor.external_data[:]
        for key, value in (("location", WEIGHTS), ("offset", str(offset)), ("length", str(len(data)))):
            tensor.external_data.add(key=key, value=value)
        tensor.ClearField("raw_data")
        offset += len(data)
        yield data


def _dequantized(arrays: Mapping[str, Array]) -> tuple[onnx.ModelProto, list[Array]]:
    codes = {f"{name}8": np.rint(arrays[name] * 100).astype(np.int8) for name in ("W", "R")}
    nodes = [helper.make_node("DequantizeLinear", [f"{name}8", "scale"], [name]) for name in ("W", "R")]
    nodes.append(helper.make_node("LSTM", ["X", "W", "R"], ["Y"], hidden_size=5))
    constants = {**codes, "scale": np.array(0.01, np.float32)}
    return simple_model(nodes, {"X": arrays["X"]}, ["Y"], constants), [arrays["X"]]


def node_tests() -> Iterator[Seed]:
    """The onnx package's own models of one node, of every operator."""
    from onnx.backend.test.case.node import collect_testcases

    np.random.seed(0)  # what those tests draw from
    for test in collect_testcases(None):
        arrays = test.data_sets[0][0] if test.data_sets else ()
        size = sum(getattr(array, "nbytes", LARGEST_MODEL) for array in arrays)
        if test.model is not None and test.model.ByteSize() + size < LARGEST_MODEL:
            yield _onnx(test.name, test.model, arrays)


def recurrent_layers() -> Iterator[Seed]:
    """Layers of every direction and attribute as IRs, their weights constant; and one among others."""
    xml, weights = nets.lstm_net()
    yield Seed("lstm_net", xml.encode(), weights, tuple(nets.lstm_inputs().values()))
    layers: list[Any] = [
        random_layer(RecurrentOp(row.name, 4), 3, convention=convention)
        for row, convention in product(CELLS.values(), (OPENVINO_CELL, OPENVINO_SEQUENCE))
    ]
    for case in small_cases():
        layers += [layer for layer in read_model(_of_case(case)[0]).layers.values() if not layer.constants]
    with tempfile.TemporaryDirectory() as folder:
        for number, layer in enumerate(layers):
            try:
                path = write_model(layer, Path(folder, "layer.xml"))
            except PyrnnxError:  # what an IR cannot express
                continue
            convention = OPENVINO_CELL if layer.convention is OPENVINO_CELL else OPENVINO_SEQUENCE
            arrays = random_inputs(layer.op, (2, 2, layer.input_size), layer.dtype, convention=convention)
            inputs = tuple(arrays[info.name] for info in pyrnnx.load(path).inputs)
            yield Seed(f"layer {number}", path.read_bytes(), path.with_suffix(".bin").read_bytes(), inputs)


def operations() -> Iterator[Seed]:
    """Every operation that is translated, with open and with fixed dimensions, as OpenVINO writes it."""
    from openvino_elementwise import ELEMENTWISE, SHAPES
    from openvino_indexing import INDEXING, REDUCTIONS
    from openvino_linear import IMAGES, LINEAR, POOLING, SPECTRA
    from openvino_operations import build

    for case in ELEMENTWISE + SHAPES + INDEXING + REDUCTIONS + LINEAR + POOLING + IMAGES + SPECTRA:
        for dynamic in (True, False) if case.dynamic else (False,):
            model, arrays = build(case, dynamic=dynamic)
            yield _saved(f"{case.name}{' dynamic' if dynamic else ''}", model, arrays)


def _saved(name: str, model: Any, arrays: Iterable[Array]) -> Seed:
    from openvino_irs import save

    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder), f16=len(name) % 2 == 0)
        return Seed(name, path.read_bytes(), path.with_suffix(".bin").read_bytes(), tuple(arrays))


def bodies() -> Iterator[Seed]:
    """Loops and choices, by hand and by OpenVINO, and variables."""
    import openvino_bodies as made
    import openvino_loops
    import openvino_states
    from openvino_irs import from_onnx
    from written_bodies import GRAPHS

    for cell in [row.name for row in CELLS.values()]:
        text, weights, arrays = openvino_loops.looped(cell, reverse=cell == "GRU")
        yield Seed(f"{cell} by hand", text.encode(), weights, tuple(arrays))
    yield _saved("slices", *made.iterated())
    yield _saved("Loop of slices", *made.counted(sliced=1))
    yield _saved("Loop until a condition", *made.counted(trips=-1, most=5.5))
    for flag in (True, False):
        yield _saved(f"If {flag}", *made.chosen(made.one_step_then_loop, flag))
    for name in ("scanned", "until a condition", "nested choices, two results", "around a recurrent node"):
        with tempfile.TemporaryDirectory() as folder:
            model = from_onnx(GRAPHS[name].model(), Path(folder))
        yield _saved(f"{name}, of ONNX", model, GRAPHS[name].inputs.values())
    stateful = [openvino_states.read_and_assign(initial=True), openvino_states.made_stateful()]
    stateful.append(openvino_states.low_latency(lambda: made.looped("GRU"), 2))
    for number, (model, calls) in enumerate(stateful):
        yield _saved(f"variables {number}", model, calls[0])


SOURCES: Mapping[str, Mapping[str, Callable[[], Iterator[Seed]]]] = {
    "onnx": {"recurrent": recurrent_nodes, "constructs": constructs, "node_tests": node_tests},
    "ir": {"recurrent": recurrent_layers, "operations": operations, "bodies": bodies},
}


def collect(kind: str, sources: Iterable[str] = ()) -> dict[str, tuple[Seed, ...]]:
    """The seeds of a format by their source; the same in every run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the packages that make them
        return {name: tuple(SOURCES[kind][name]()) for name in sources or SOURCES[kind]}


def collect_elsewhere(kind: str, sources: Iterable[str] = ()) -> dict[str, tuple[Seed, ...]]:
    """Run `collect` in another process: workers should not inherit OpenVINO's threads and memory."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from fuzz import seeds; seeds.write({kind!r}, {list(sources)!r})"
    made = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    return pickle.loads(made.stdout)  # type: ignore[no-any-return]


def write(kind: str, sources: Iterable[str]) -> None:
    """The seeds to standard output."""
    sys.stdout.buffer.write(pickle.dumps(collect(kind, sources)))
