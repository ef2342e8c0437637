"""pyrnnx.onnxruntime.InferenceSession compared with ONNX Runtime's own."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from layers import random_weights
from onnx import helper, numpy_helper
from rows import each_row
from sessions import CPU, FLOAT, INT32, model, onnxruntime

from pyrnnx import ArgumentError, RecurrentOp
from pyrnnx.onnxruntime import InferenceSession, SessionOptions

if TYPE_CHECKING:
    from pyrnnx.operator.op import DirectionName


def bidirectional_model() -> onnx.ModelProto:
    """Names of sizes, a layer between other operators, and lengths."""
    weights = random_weights(RecurrentOp("LSTM", 5, "bidirectional"), 3)
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["doubled"]),
        helper.make_node(
            "LSTM", ["doubled", "W", "R", "B", "lens"], ["Y", "", "c"], hidden_size=5, direction="bidirectional"
        ),
        helper.make_node("ReduceSum", ["Y"], ["y"], keepdims=0),
    ]
    tensors = [numpy_helper.from_array(a, name) for name, a in weights.items()]
    tensors.append(numpy_helper.from_array(np.array(2, np.float32), "two"))
    inputs = [("x", FLOAT, ["T", "N", 3]), ("lens", INT32, ["N"])]
    proto = model(nodes, inputs, [("y", FLOAT, []), ("c", FLOAT), ("Y", FLOAT)], tensors)
    proto.producer_name, proto.doc_string, proto.graph.doc_string = "someone", "a model", "a graph"
    proto.metadata_props.add(key="a", value="b")
    return proto


PROTO = bidirectional_model()
MODEL = PROTO.SerializeToString()


def feeds(T: int = 6, N: int = 3, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    lens = random.integers(1, T + 1, N).astype(np.int32)
    return {"x": random.normal(size=(T, N, 3)).astype(np.float32), "lens": lens}


def close(results: Any, expected: Any) -> bool:
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-5) for a, b in zip(results, expected, strict=True))


@pytest.fixture(scope="module")
def theirs() -> Any:
    return onnxruntime.InferenceSession(MODEL, providers=CPU)


@pytest.fixture(scope="module")
def ours() -> Any:
    return InferenceSession(MODEL, providers=CPU)


def test_calls_with_other_inputs_and_shapes(ours: Any, theirs: Any) -> None:
    assert isinstance(ours, onnxruntime.InferenceSession)
    first = ours.run(None, feeds())
    for T, N, seed in ((6, 3, 0), (6, 3, 1), (6, 3, 2), (6, 3, 3), (6, 3, 4), (1, 1, 5), (40, 20, 6), (2, 7, 7)):
        given = feeds(T, N, seed)
        assert close(ours.run(None, given), theirs.run(None, given)), (T, N, seed)
    assert all(np.array_equal(a, b) for a, b in zip(ours.run(None, feeds()), first, strict=True))


def test_what_a_session_says_of_itself(ours: Any, theirs: Any) -> None:
    for method in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        described = [[(one.name, one.type, one.shape) for one in getattr(s, method)()] for s in (ours, theirs)]
        assert described[0] == described[1], method
    assert ours.get_providers() == theirs.get_providers()
    assert ours.get_provider_options() == theirs.get_provider_options()
    for field in ("producer_name", "graph_name", "domain", "description", "graph_description", "version",
                  "custom_metadata_map"):  # fmt: skip
        assert getattr(ours.get_modelmeta(), field) == getattr(theirs.get_modelmeta(), field), field
    assert list(ours.layers) == ["Y"]


def test_sizes_without_names_stay_without() -> None:
    proto = onnx.ModelProto.FromString(MODEL)
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    (y, c, Y) = InferenceSession(proto.SerializeToString()).get_outputs()
    assert (y.shape, c.shape, Y.shape) == ([], [2, None, 5], [None, 2, None, 5])
    assert (Y.name, Y.type) == ("Y", "tensor(float)")


def test_documentation_that_is_no_text() -> None:
    proto = onnx.ModelProto.FromString(MODEL)
    for node in proto.graph.node:
        node.doc_string = "NNNN"
    own = InferenceSession(proto.SerializeToString().replace(b"NNNN", b"\xff\xfeNN"), providers=CPU)
    assert len(own.run(None, feeds())) == 3


def test_every_way_to_run(ours: Any, theirs: Any) -> None:
    given = feeds()
    expected = theirs.run(["c", "y"], given)
    assert close(ours.run(["c", "y"], given), expected)
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in given.items()}
    assert close([one.numpy() for one in ours.run_with_ort_values(["c", "y"], values)], expected)
    binding = ours.io_binding()
    for name, array in given.items():
        binding.bind_cpu_input(name, array)
    c = np.empty((2, 3, 5), np.float32)
    binding.bind_output("c", "cpu", 0, np.float32, c.shape, c.ctypes.data)
    binding.bind_output("y")
    ours.run_with_iobinding(binding)
    assert close([c, binding.copy_outputs_to_cpu()[1]], expected)
    done, found = threading.Event(), []

    def keep(results: Any, data: Any, error: Any) -> Any:
        found.append((results, data, error))
        done.set()

    ours.run_async(["c", "y"], given, keep, "data")
    assert done.wait(30)
    ((results, data, error),) = found
    assert close(results, expected)
    assert (data, error) == ("data", "")


def test_paths_and_external_data(tmp_path: Any, theirs: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Data of layers is read; the other stays where it is, of which ONNX Runtime has nothing to log."""
    path = tmp_path / "model.onnx"
    proto = onnx.ModelProto.FromString(MODEL)
    big = numpy_helper.from_array(np.full((6, 3, 3), 2, np.float32), "two")
    proto.graph.initializer[-1].CopyFrom(big)
    onnx.save_model(proto, path, save_as_external_data=True, location="data.bin", size_threshold=0)
    InferenceSession(path, providers=CPU).set_providers(CPU)
    assert capfd.readouterr() == ("", "")
    options = SessionOptions()
    for given in (path, str(path)):
        own = InferenceSession(given, options, providers=CPU)
        assert close(own.run(None, feeds()), theirs.run(None, feeds()))
    own.set_providers(CPU)
    assert close(own.run(None, feeds()), theirs.run(None, feeds()))
    assert onnxruntime.InferenceSession(path, options, providers=CPU).get_inputs()


def test_models_that_are_passed_on(tmp_path: Any) -> None:
    """Without layers, or in ONNX Runtime's own format."""
    proto = model([helper.make_node("Neg", ["x"], ["y"])], [("x", FLOAT)], [("y", FLOAT)])
    path, options = tmp_path / "model.ort", SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=CPU)
    for source in (proto.SerializeToString(), str(path), path.read_bytes()):
        own = InferenceSession(source, providers=CPU)
        assert own.run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [-1, -1]
        assert not own.layers


def test_errors() -> None:
    own = InferenceSession(MODEL, providers=CPU)
    bad = feeds() | {"lens": np.array([1, 2, 9], np.int32)}
    for _ in range(2):
        with pytest.raises(ArgumentError, match=r"LSTM 'Y': sequence_lens\[2\] is 9"):
            own.run(None, bad)
    values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in bad.items()}
    with pytest.raises(ArgumentError, match="sequence_lens"):
        own.run_with_ort_values(None, values)
    with pytest.raises(ValueError, match="missing"):  # as ONNX Runtime raises it
        own.run(None, {"x": bad["x"]})
    with pytest.raises(TypeError):
        InferenceSession(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot pickle"):  # as theirs
        pickle.dumps(own)


def test_sixteen_threads_call_one_session_while_others_end(ours: Any) -> None:
    """Each gets its own results."""
    given = [feeds(6, 40, seed) for seed in range(16)]
    expected, wrong = [ours.run(None, one) for one in given], []

    def call(k: int) -> None:
        own = InferenceSession(MODEL, providers=CPU) if k % 4 == 0 else ours
        for _ in range(3):
            results = own.run(None, given[k])
            if not all(np.array_equal(a, b) for a, b in zip(results, expected[k], strict=True)):
                wrong.append(k)
        del own

    workers = [threading.Thread(target=call, args=(k,)) for k in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@each_row(
    ("T", "N", "H", "direction"),
    [(10, 50, 64, "forward"), (60, 1, 256, "forward"), (30, 1, 256, "bidirectional")],
    ids=["rows", "units of one row", "units of both directions"],
)
def test_threads_do_not_change_results(T: int, N: int, H: int, direction: DirectionName) -> None:
    """Calls that are large enough to be divided, of one session at a time and of several."""
    random, weights = np.random.default_rng(0), random_weights(RecurrentOp("GRU", H, direction), 32)
    tensors = [numpy_helper.from_array(a, name) for name, a in weights.items()]
    node = helper.make_node("GRU", ["x", "W", "R", "B"], ["Y"], hidden_size=H, direction=direction)
    contents = model([node], [("x", FLOAT)], [("Y", FLOAT)], tensors).SerializeToString()
    x, sessions = random.normal(size=(T, N, 32)).astype(np.float32), []
    for threads in (1, 2, 3, 5):
        options = SessionOptions()
        options.intra_op_num_threads = threads
        sessions.append(InferenceSession(contents, options, CPU))
    expected = sessions[0].run(None, {"x": x})[0]
    assert np.array_equal(sessions[1].run(None, {"x": x})[0], expected)
    with ThreadPoolExecutor(4) as callers:
        results = list(callers.map(lambda k: sessions[k % 4].run(None, {"x": x})[0], range(40)))
    assert all(np.array_equal(result, expected) for result in results)
