"""Plans of models: the engine of each part, the reason, and the warnings."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import LSTM, branches, make_graph, simple_model, weights_of

import pyrnnx
from pyrnnx import ArgumentError, SlowRuntimeWarning, UnsupportedError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.runtime import session
from pyrnnx.testing.numbers import Array

onnxruntime = pytest.importorskip("onnxruntime")
node = helper.make_node
ORT, OURS, SLOW = "ONNX Runtime", "pyrnnx", "reference evaluator"
X = np.linspace(-1, 1, LSTM.T * LSTM.N * LSTM.I, dtype=np.float32).reshape(LSTM.T, LSTM.N, LSTM.I)


def lstm(source: str, result: str, name: str = "lstm") -> onnx.NodeProto:
    return node("LSTM", [source, "W", "R", "B"], [result], hidden_size=LSTM.H, name=name)


def around(before: str, after: str, *, dtype: Any = np.float32, opset: int = 17) -> tuple[onnx.ModelProto, Array]:
    """An operator, an LSTM, an operator."""
    nodes = [node(before, ["x"], ["a"], name="before"), lstm("a", "b"), node(after, ["b"], ["y"], name="after")]
    weights = {name: array.astype(dtype) for name, array in weights_of(LSTM).items()}
    given = X.astype(dtype)
    return simple_model(nodes, {"x": given}, ["y"], weights, opset), given


def strings() -> tuple[onnx.ModelProto, Array]:
    """Strings that become numbers, by an operator of another domain."""
    names = np.array(["b", "a", "b"], object)
    encode = node("LabelEncoder", ["s"], ["k"], domain="ai.onnx.ml", keys_strings=["a", "b"], values_floats=[1.0, 2.0])
    nodes = [encode, node("Neg", ["k"], ["y"], name="after")]
    return simple_model(nodes, {"s": names}, ["y"], domains={"ai.onnx.ml": 2}), names


def mixed() -> tuple[onnx.ModelProto, Array]:
    """float64 in one operator alone, between those that ONNX Runtime has."""
    nodes = [
        lstm("x", "a"),
        node("Cast", ["a"], ["b"], to=onnx.TensorProto.DOUBLE),
        node("Selu", ["b"], ["c"], name="wide"),
        node("Cast", ["c"], ["d"], to=onnx.TensorProto.FLOAT),
        node("Relu", ["d"], ["y"]),
    ]
    return simple_model(nodes, {"x": X}, ["y"], weights_of(LSTM)), X


def unsafe() -> tuple[onnx.ModelProto, Array]:
    nodes = [lstm("x", "a"), node("Unique", ["a"], ["u"]), node("Neg", ["u"], ["y"])]
    return simple_model(nodes, {"x": X}, ["y"], weights_of(LSTM)), X


def newer() -> tuple[onnx.ModelProto, Array]:
    """The newest opset that onnx has, which may be above ONNX Runtime's."""
    return around("Abs", "Softsign", opset=onnx.defs.onnx_opset_version())


Table = list[tuple[str, str]]
WHOLE: Table = [(ORT, "Relu, Neg"), (OURS, "LSTM 'lstm'")]
# The model; who runs what; why the reference evaluator does.
PLANS: dict[str, tuple[Callable[[], tuple[onnx.ModelProto, Array]], Table, str]] = {
    "float32": (lambda: around("Relu", "Neg"), WHOLE, ""),
    "float64": (lambda: around("Relu", "Neg", dtype=np.float64), WHOLE, ""),
    "float16": (lambda: around("Relu", "Neg", dtype=np.float16), WHOLE, ""),
    "no kernel for float64": (
        lambda: around("Selu", "Neg", dtype=np.float64),
        [(ORT, "Neg"), (SLOW, "Selu 'before'"), (OURS, "LSTM 'lstm'")],
        "Could not find an implementation for Selu",
    ),
    "float64 within": (
        mixed,
        [(ORT, "2 Cast, Relu"), (OURS, "LSTM 'lstm'"), (SLOW, "Selu 'wide'")],
        "Could not find an implementation for Selu",
    ),
    "bfloat16": (
        lambda: around("Relu", "Neg", dtype=ml_dtypes.bfloat16, opset=22),
        [(SLOW, "Relu 'before'"), (OURS, "LSTM 'lstm'"), (SLOW, "Neg 'after'")],
        "its values are bfloat16",
    ),
    "strings": (strings, [(SLOW, "LabelEncoder, Neg")], "LabelEncoder (output 'k')"),
    "opset 6": (
        lambda: around("Relu", "Neg", opset=6),
        [(SLOW, "Relu, Neg"), (OURS, "LSTM 'lstm'")],
        "begins with opset 7",
    ),
    "the newest opset": (newer, [(ORT, "Abs, Softsign"), (OURS, "LSTM 'lstm'")], ""),
    "an operator that is not safe": (
        unsafe,
        [(ORT, "Neg"), (OURS, "LSTM 'lstm'"), (SLOW, "Unique (output 'u')")],
        "ONNX Runtime crashes the process",
    ),
}


def slow_warnings(use: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
    slow = [one for one in caught if issubclass(one.category, SlowRuntimeWarning)]
    assert {one.filename for one in slow} <= {__file__}  # the caller's line, not one of pyrnnx
    return [str(one.message) for one in slow]


@pytest.mark.parametrize("name", PLANS)
def test_who_runs_what(name: str) -> None:
    make, expected, why = PLANS[name]
    proto, given = make()
    model = read_model(proto, runtime="auto")
    said = slow_warnings(lambda: model(given))
    rows = model.plan.rows()
    assert [(runner, what) for runner, what, _ in rows] == expected
    for runner, _, reason in rows:
        assert (why in reason and reason != "") if runner == SLOW else reason == ""
    assert len(said) == (why != "")  # once, and only where it is slow
    assert all(why in text and "many times slower" in text and "model.plan" in text for text in said)
    assert slow_warnings(lambda: model(given)) == []


@pytest.mark.parametrize("name", PLANS)
def test_the_same_by_the_reference_evaluator_alone(name: str) -> None:
    proto, given = PLANS[name][0]()
    model = read_model(proto, runtime="reference")
    assert slow_warnings(lambda: model(given)) == []
    assert {runner for runner, _, _ in model.plan.rows()} - {OURS} == {SLOW}
    # Rounded to 8 and 11 bits after each of three operators; the others: float32, some steps.
    tolerance = {"bfloat16": 1e-2, "float16": 2e-3}.get(given.dtype.name, 1e-6)
    for output, value in read_model(proto, runtime="auto")(given).items():
        expected = model(given)[output]
        assert value.dtype == expected.dtype
        np.testing.assert_allclose(value.astype(np.float64), expected.astype(np.float64), rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", PLANS)
def test_onnxruntime_or_an_error(name: str) -> None:
    make, expected, why = PLANS[name]
    proto, given = make()
    model = read_model(proto, runtime="onnxruntime")
    if not why:
        assert slow_warnings(lambda: model(given)) == []
        assert [(runner, what) for runner, what, _ in model.plan.rows()] == expected
        return
    with pytest.raises(UnsupportedError, match='ONNX model: runtime is "onnxruntime"; ') as caught:
        model(given)
    assert why in str(caught.value)
    slow = next((what for runner, what in expected if runner == SLOW), "")
    assert slow in str(caught.value) or "," in slow  # more than one node


def test_an_error_names_the_node() -> None:
    proto, given = around("Relu", "Selu", dtype=np.float64)
    with pytest.raises(UnsupportedError, match=r"Selu 'after' cannot be run by it"):
        read_model(proto, runtime="onnxruntime")(given)


@pytest.mark.parametrize("runtime", ["auto", "onnxruntime", "reference"])
@pytest.mark.parametrize("domain", ["", "test"])
def test_an_operator_that_nobody_knows(domain: str, runtime: str) -> None:
    nodes = [lstm("x", "a"), node("Frob", ["a"], ["y"], name="it", domain=domain)]
    model = read_model(simple_model(nodes, {"x": X}, ["y"], weights_of(LSTM), domains={"test": 1}), runtime=runtime)
    assert list(model.layers) == ["lstm"]
    for use in (lambda: model.plan, lambda: model(X)):
        with pytest.raises(UnsupportedError, match=r"test[.:]Frob" if domain else "Frob 'it'"):
            use()


@pytest.mark.parametrize("name", PLANS)
def test_pickled(name: str) -> None:
    """A copy of a plan is printed alike, and so is the plan of a copy of the model, which runs."""
    make, _, _ = PLANS[name]
    proto, given = make()
    model = read_model(proto, runtime="auto")
    copies: list[Any] = []
    slow_warnings(lambda: copies.append(pickle.loads(pickle.dumps(model))))
    results: list[Any] = []
    slow_warnings(lambda: results.extend((model(given), copies[0](given))))
    assert str(pickle.loads(pickle.dumps(model.plan))) == str(model.plan) == str(copies[0].plan)
    for output, value in results[0].items():
        np.testing.assert_array_equal(value, results[1][output])


def test_printed() -> None:
    proto, _ = mixed()
    lines = str(read_model(proto).plan).splitlines()
    assert lines[:2] == ["ONNX Runtime         2 Cast, Relu", "pyrnnx               LSTM 'lstm'"]
    (last,) = lines[2:]
    assert last.startswith("reference evaluator  Selu 'wide'   [ONNXRuntimeError]")


def test_printed_with_bodies() -> None:
    proto, _ = branches()
    assert str(read_model(proto).plan).splitlines() == [
        "ONNX Runtime  If (2 Recurrent)",
        "pyrnnx        LSTM 'Y/else_branch/h', in else_branch of If 'choice'",
        "pyrnnx        LSTM 'Y/then_branch/h', in then_branch of If 'choice'",
        "pyrnnx        LSTM 'own'",
    ]


def test_printed_with_a_graph_of_no_node() -> None:
    model = read_model(simple_model([], {"x": X}, ["x"]))
    assert str(model.plan) == ""
    np.testing.assert_array_equal(model(X)["x"], X)


def test_bodies_without_recurrent_nodes_run_in_the_session() -> None:
    then, other = (make_graph([node(op, ["x"], ["p"])], {}, ["p"]) for op in ("Neg", "Abs"))
    choice = node("If", ["c"], ["a"], then_branch=then, else_branch=other)
    nodes = [node("Relu", ["x"], ["r"]), choice, node("Add", ["a", "r"], ["y"])]
    model = read_model(simple_model(nodes, {"x": X, "c": np.array(True)}, ["y"]))
    assert model.plan.rows() == [(ORT, "Relu, If (Abs, Neg), Add", "")]
    for condition in (True, False):
        expected = np.maximum(X, 0) + (-X if condition else np.abs(X))
        np.testing.assert_array_equal(model(X, np.array(condition))["y"], expected)


def test_intermediate_values_have_sessions_of_their_own() -> None:
    proto, given = around("Relu", "Neg")
    model = read_model(proto)
    np.testing.assert_array_equal(model(given, outputs=["a"])["a"], np.maximum(given, 0))
    both = model(given, outputs=["y", "b"])
    np.testing.assert_array_equal(both["y"], -both["b"])
    assert list(model(given)) == ["y"]


def test_a_session_that_fails_is_followed_by_the_evaluator() -> None:
    """A zero point for each channel of the weights, which ONNX Runtime's ConvInteger refuses when it runs."""
    x = np.full((1, 1, 2, 2), 3, np.uint8)
    constants = {"w": np.ones((2, 1, 2, 2), np.uint8), "xz": np.array(2, np.uint8), "wz": np.array([0, 2], np.uint8)}
    convolution = node("ConvInteger", ["x", "w", "xz", "wz"], ["y"])
    proto = simple_model([convolution], {"x": x}, ["y"], constants, opset=10)
    results: list[Array] = []
    said = slow_warnings(lambda: results.append(read_model(proto, runtime="auto")(x)["y"]))
    assert len(said) == 1
    assert "ONNX Runtime failed in a session of 1 nodes" in said[0]
    np.testing.assert_array_equal(results[0].ravel(), [4, -4])


def test_operators_newer_than_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operators that have not changed since still run there."""
    monkeypatch.setattr(session, "last_opset", lambda: 19)
    model = read_model(around("Gelu", "Selu", opset=22)[0])
    rows = model.plan.rows()
    assert [runner for runner, _, _ in rows] == [SLOW, OURS, SLOW]  # Gelu-20, Selu-22
    assert {why for _, _, why in rows} == {"", "ONNX Runtime supports operators up to opset 19"}
    unchanged = read_model(around("Relu", "Neg", opset=22)[0])
    assert [runner for runner, _, _ in unchanged.plan.rows()] == [ORT, OURS]
    np.testing.assert_array_equal(unchanged(X)["y"], read_model(around("Relu", "Neg")[0])(X)["y"])


# The choice of a runtime


@pytest.fixture
def variable(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda value: monkeypatch.setenv("PYRNNX_RUNTIME", value)


@pytest.mark.parametrize(("value", "runner"), [("reference", SLOW), ("auto", ORT), (" OnnxRuntime ", ORT), ("", ORT)])
def test_the_environment_chooses(variable: Callable[[str], None], value: str, runner: str) -> None:
    variable(value)
    proto, _ = around("Relu", "Neg")
    assert read_model(proto).plan.rows()[0][0] == runner
    assert pyrnnx.load(proto).plan.rows()[0][0] == runner
    assert read_model(proto, runtime="auto").plan.rows()[0][0] == ORT  # an argument is stronger


def test_a_wrong_environment(variable: Callable[[str], None]) -> None:
    variable("fast")
    with pytest.raises(ArgumentError, match="PYRNNX_RUNTIME is 'fast'; expected one of auto, onnxruntime, reference"):
        read_model(around("Relu", "Neg")[0])


@pytest.mark.parametrize("runtime", ["fast", "Auto", "", 1, True, ["auto"], b"auto"])
def test_wrong_runtimes(runtime: Any) -> None:
    proto, _ = around("Relu", "Neg")
    for load in (read_model, pyrnnx.load):
        with pytest.raises(ArgumentError, match=r"runtime is .*; expected one of auto, onnxruntime, reference"):
            load(proto, runtime=runtime)


WITHOUT = """
import sys, warnings
sys.modules["onnxruntime"] = None
import numpy as np, pyrnnx
X = np.ones(({T}, {N}, {I}), np.float32)
for runtime in ("auto", "onnxruntime", "reference"):
    model = pyrnnx.load({path!r}, runtime=runtime)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            print(round(float(model(X)["y"].sum()), 3), [runner for runner, _, _ in model.plan.rows()], len(caught))
            print(*(one.message for one in caught), sep="\\n")
        except pyrnnx.PyrnnxError as error:
            print(type(error).__name__, error)
    print("=")
"""


def test_without_onnxruntime(tmp_path: Any) -> None:
    proto, given = around("Relu", "Neg")
    onnx.save(proto, tmp_path / "model.onnx")
    expected = round(float(read_model(proto)(np.ones_like(given))["y"].sum()), 3)
    code = WITHOUT.format(path=str(tmp_path / "model.onnx"), T=LSTM.T, N=LSTM.N, I=LSTM.I)
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    auto, onnxruntime, reference, end = (part.split("\n", 1) for part in said.split("=\n"))
    assert auto[0].startswith(f"{expected} ")
    assert auto[0].endswith(" 1")
    assert "ONNX Runtime is not installed (pip install onnxruntime)" in auto[1]
    assert "UnsupportedError" in onnxruntime[0]
    assert "ONNX Runtime is not installed (pip install onnxruntime)" in onnxruntime[0]
    assert reference[0] == f"{expected} ['{SLOW}', '{OURS}'] 0"
    assert end == [""]
