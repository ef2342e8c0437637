"""Small valid models for the fuzzer to break, one for every operation that the tests know."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import openvino_nets as nets
from hidden_layers import GATES, H, I, N, T, loop, scan, unrolled
from onnx import helper
from onnx_models import simple_model
from openvino_layers import shapes_of
from random_graphs import drawn_model

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx.operators.schemas import QUANTIZED_LSTM
from pyrnnx.frontends.openvino import OPERATIONS, Operation, read_model, to_onnx
from pyrnnx.operator.op import CELLS
from pyrnnx.testing.cases import CASES, OUTPUTS, Case, draw, make_arrays
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
    for direction in ("forward", "reverse", "bidirectional"):
        yield _onnx(f"DynamicQuantizeLSTM {direction}", *_dynamic_quantize(direction))


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


def _dynamic_quantize(direction: str) -> tuple[onnx.ModelProto, list[Array]]:
    D, I, H = 2 if direction == "bidirectional" else 1, 3, 5
    rng = np.random.default_rng(D)
    weights: dict[str, Array] = {
        "W": rng.integers(0, 256, (D, I, 4 * H), np.uint8), "R": rng.integers(0, 256, (D, H, 4 * H), np.uint8),
        "B": rng.uniform(-1, 1, (D, 8 * H)).astype(np.float32), "sequence_lens": np.array([4, 0], np.int32),
        "P": rng.uniform(-1, 1, (D, 3 * H)).astype(np.float32),
    }  # fmt: skip
    for name in ("W", "R"):
        weights[f"{name}_scale"] = np.full(D, 0.004, np.float32)
        weights[f"{name}_zero_point"] = np.full(D, 128, np.uint8)
    X = rng.uniform(-1, 1, (4, 2, I)).astype(np.float32)
    names = [name if name == "X" or name in weights else "" for name in QUANTIZED_LSTM.inputs]
    attributes: dict[str, Any] = {"domain": "com.microsoft", "hidden_size": H, "direction": direction}
    quantized = helper.make_node("DynamicQuantizeLSTM", names, OUTPUTS["LSTM"], **attributes)
    domains = {"com.microsoft": 1}
    return simple_model([quantized], {"X": X}, OUTPUTS["LSTM"], weights, domains=domains), [X]


def node_tests() -> Iterator[Seed]:
    """The onnx package's own models of one node, of every operator."""
    from onnx.backend.test.case.node import collect_testcases

    np.random.seed(0)  # what those tests draw from
    for test in collect_testcases(None):
        arrays = test.data_sets[0][0] if test.data_sets else ()
        size = sum(getattr(one, "nbytes", LARGEST_MODEL) for one in arrays)
        if test.model is not None and test.model.ByteSize() + size < LARGEST_MODEL:
            yield _onnx(test.name, test.model, arrays)


def exported() -> Iterator[Seed]:
    """Yield the ONNX models that `to_onnx` makes of the IRs."""
    for seed in (*operations(), *recurrent_layers()):
        try:
            model = to_onnx(read_model(seed.data, seed.weights))
        except PyrnnxError:  # what ONNX cannot express
            continue
        yield _onnx(seed.name, model, seed.arrays)


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


def _saved(name: str, model: Any, arrays: Iterable[Array], *, f16: bool = False) -> Seed:
    from openvino_irs import save

    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder), f16=f16)
        return Seed(name, path.read_bytes(), path.with_suffix(".bin").read_bytes(), tuple(arrays))


def converted() -> Iterator[Seed]:
    """Return the IRs that OpenVINO makes of the ONNX models: sequences between operations that permute axes."""
    from openvino_irs import from_onnx

    for number, case in enumerate(small_cases()):
        # It wants hidden_size, which the operator's text does not.
        proto, arrays = _of_case(replace(case, attributes={**case.attributes, "hidden_size": case.H}, opset=17))
        with tempfile.TemporaryDirectory() as folder:
            try:
                model = from_onnx(proto, Path(folder))
            except RuntimeError:  # what OpenVINO does not convert
                continue
        yield _saved(case.name, model, arrays, f16=bool(number % 2))


def recurrent_layers() -> Iterator[Seed]:
    """Every version of every recurrent operation, its weights constant or not; and one among others."""
    yield Seed("lstm_net", *_encoded(*nets.lstm_net()), tuple(nets.lstm_inputs().values()))
    for kind, operation in OPERATIONS.items():
        for constant, data in product((True, False), _variants(operation)):
            yield _recurrent_layer(kind, operation, data, constant=constant)


def bodies() -> Iterator[Seed]:
    """Loops and choices, by hand and by OpenVINO, and variables."""
    import openvino_bodies as made
    import openvino_loops
    import openvino_states
    from openvino_irs import from_onnx
    from written_bodies import GRAPHS

    for cell in [row.name for row in CELLS.values()]:
        text, weights, arrays = openvino_loops.looped(cell, reverse=cell == "GRU")
        yield Seed(f"{cell} by hand", *_encoded(text, weights), tuple(arrays))
    yield Seed("nested", *_encoded(openvino_loops.nested(3), b""), (np.ones(2, np.float32),))
    yield _saved("slices", *made.iterated())
    yield _saved("Loop", *made.counted())
    yield _saved("Loop of slices", *made.counted(sliced=1))
    yield _saved("Loop until a condition", *made.counted(trips=-1, most=5.5))
    yield _saved("Loop computed", *made.counted(computed=True))
    for flag in (True, False):
        yield _saved(f"If {flag}", *made.chosen(made.one_step_then_loop, flag))
    for name in ("scanned", "until a condition", "nested choices, two results", "around a recurrent node"):
        with tempfile.TemporaryDirectory() as folder:
            model = from_onnx(GRAPHS[name].model(), Path(folder))
        yield _saved(f"{name}, of ONNX", model, GRAPHS[name].inputs.values())
    stateful = [openvino_states.read_and_assign(initial=True), openvino_states.read_and_assign(initial=False)]
    stateful += [openvino_states.made_stateful(), openvino_states.low_latency(lambda: made.looped("GRU"), 2)]
    for kind in ("TensorIterator", "If", "Loop"):
        more: list[Array] = {"TensorIterator": [], "If": [np.array(True)], "Loop": [np.array(2, np.int32)]}[kind]
        rows = np.ones((made.T, made.N), np.float32)
        yield _saved(f"variable of {kind}", openvino_states.in_a_body(kind, initial=0.5), [rows, *more])
    for number, (model, calls) in enumerate(stateful):
        yield _saved(f"variables {number}", model, calls[0])


def _encoded(xml: str, weights: bytes) -> tuple[bytes, bytes]:
    return xml.encode(), weights


def _variants(operation: Operation) -> Iterator[dict[str, Any]]:
    own: dict[str, Any] = {"hidden_size": nets.H}
    yield own
    functions = ("HardSigmoid", "relu", "tanh")[: len(CELLS[operation.cell].activations)]
    lists = {"activations": functions, "activations_alpha": ["0.2"] * len(functions)}
    lists["activations_beta"] = lists["activations_alpha"]
    yield own | {name: ",".join(values) for name, values in lists.items()} | {"clip": "0.4"}
    if "direction" in operation.attributes:
        yield from (own | {"direction": way} for way in ("reverse", "BIDIRECTIONAL"))
    for name in {"linear_before_reset", "input_forget"} & {*operation.attributes}:
        yield own | {name: "true"}


def _recurrent_layer(kind: str, operation: Operation, data: dict[str, Any], *, constant: bool) -> Seed:
    """Parameters and constants, the layer, and a Result for each of its outputs."""
    D = 2 if data.get("direction") == "BIDIRECTIONAL" else 1
    inputs, outputs = shapes_of(kind, D, "linear_before_reset" in data)
    rng, store = np.random.default_rng(0), nets.Bin()
    arrays, layers, ends = [], [], []
    for k, (name, shape) in enumerate(zip(operation.inputs, inputs, strict=True)):
        lengths = name == "sequence_lens"
        array = np.array([5, 0, 2], np.int32) if lengths else draw(rng, name, shape).astype(np.float32)
        if constant and name in ("W", "R", "B", "P"):
            layers.append(store.constant(k, name, array, "f32", "FP32"))
        else:
            open_shape = (-1, *shape[1:]) if name not in ("W", "R", "B", "P") else shape
            text = ",".join(map(str, open_shape))
            layers.append(nets.parameter(k, name, text, open_shape, "i32" if lengths else "f32", name))
            arrays.append(array)
        ends.append(f"{k}.0 90.{k}")
    precisions = ["I32" if name == "sequence_lens" else "FP32" for name in operation.inputs]
    ports = [(precision, shape) for precision, shape in zip(precisions, inputs, strict=True)]
    results = [("FP32", (-1, *shape[1:])) for shape in outputs]
    layers.append(nets.layer(90, "it", operation.type, data, ports, results, f"opset{operation.first_opset}"))
    for k, (_, shape) in enumerate(results):
        layers.append(nets.result(91 + k, f"Y{k}/sink_port_0", shape))
        ends.append(f"90.{len(inputs) + k} {91 + k}.0")
    name = f"{kind} {data}{' constant' if constant else ''}"
    return Seed(name, nets.net(layers, nets.edges(*ends)).encode(), store.data, tuple(arrays))


SOURCES: Mapping[str, Mapping[str, Callable[[], Iterator[Seed]]]] = {
    "onnx": {
        "recurrent": recurrent_nodes, "constructs": constructs, "exported": exported, "node_tests": node_tests
    },
    "ir": {"recurrent": recurrent_layers, "operations": operations, "converted": converted, "bodies": bodies},
}  # fmt: skip


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
