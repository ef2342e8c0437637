"""If, Loop and Scan around recurrent operators, compared with the oracle and with onnx's evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import make_graph, simple_model
from whole_models import check_calls

from pyrnnx import PyrnnxError, reference
from pyrnnx.frontends.onnx import read_model
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of

pytest.importorskip("onnxruntime")
node = helper.make_node
CASE = Case("lstm in a body", "LSTM", {}, ("B", "initial_h", "initial_c"), T=4, N=3, I=5, H=5)
ARRAYS = make_arrays(CASE)
X, H0, C0 = ARRAYS["X"], ARRAYS["initial_h"], ARRAYS["initial_c"]
WEIGHTS: dict[str, Any] = {name: ARRAYS[name] for name in ("W", "R", "B")}
T, N, H = CASE.T, CASE.N, CASE.H
TRUE, FALSE = np.array(True), np.array(False)
TOLERANCE = tolerance_of(np.dtype(np.float32))


def lstm(X: Array, h: Array = H0, c: Array = C0, **others: Any) -> tuple[Array, ...]:
    return reference.run("LSTM", X=X, **WEIGHTS, initial_h=h, initial_c=c, **others)


def step(x: str = "x", h: str = "h", c: str = "c", prefix: str = "", **attributes: Any) -> list[onnx.NodeProto]:
    """One time step: [N, I] -> [1, N, I] -> LSTM, with weights of the outer graph."""
    return [
        node("Unsqueeze", [x, "zero"], [f"{prefix}x1"]),
        node(
            "LSTM",
            [f"{prefix}x1", "W", "R", "B", "", h, c],
            ["", f"{prefix}h1", f"{prefix}c1"],
            hidden_size=H,
            **attributes,
        ),
        node("Squeeze", [f"{prefix}h1", "zero"], [f"{prefix}y1"]),
    ]


def body(nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Any], outputs: Sequence[str]) -> onnx.GraphProto:
    """Inputs by their element types; outputs are float32, but for conditions."""
    graph = helper.make_graph(
        list(nodes),
        "body",
        [helper.make_tensor_value_info(name, kind, None) for name, kind in inputs.items()],
        [helper.make_tensor_value_info(o, BOOL if o.startswith("go") else FLOAT, None) for o in outputs],
    )
    return graph


FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL
CONSTANTS = {**WEIGHTS, "zero": np.array([0]), "two": np.array(2), "T": np.array(T), "none": np.array(0)}
GIVEN = {"X": X, "h0": H0, "c0": C0}


def model(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], **more: Array) -> onnx.ModelProto:
    return simple_model(nodes, {**GIVEN, **more}, outputs, CONSTANTS)


def results(proto: onnx.ModelProto, **more: Array) -> list[Array]:
    """Return the results of a plan, which the reference evaluator has too, in several calls."""
    given = {**GIVEN, **more}
    planned = read_model(proto, runtime="auto")
    check_calls(planned, read_model(proto, runtime="reference"), given, atol=TOLERANCE)
    return list(planned(given).values())


# Loop


def looped(limit: str, condition: str, *, stop: bool = False) -> list[onnx.NodeProto]:
    """An LSTM over the rows of X, a step in each iteration; with `stop`, up to the one with index 2."""
    proceed = [node("Less", ["i", "two"], ["go_on"])] if stop else [node("Identity", ["go"], ["go_on"])]
    inside = body(
        [*proceed, node("Gather", ["X", "i"], ["x"], axis=0), *step()],
        {"i": INT64, "go": BOOL, "h": FLOAT, "c": FLOAT},
        ["go_on", "h1", "c1", "y1"],
    )
    return [node("Loop", [limit, condition, "h0", "c0"], ["h_n", "c_n", "Y"], body=inside, name="loop")]


# Most iterations, condition, whether it stops by itself; how many steps there are.
LOOPS = {
    "counted": ("T", "", False, T),
    "counted, with a condition": ("T", "yes", False, T),
    "stops": ("T", "yes", True, 3),
    "stops, with neither": ("", "", True, 3),
    "stops, without a count": ("", "yes", True, 3),
    "no iteration": ("none", "", False, 0),
    "no iteration, though the condition holds": ("none", "yes", True, 0),
    "a condition that never held": ("T", "no", False, 0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loop(name: str) -> None:
    limit, condition, stop, steps = LOOPS[name]
    h, c, Y = results(
        model(looped(limit, condition, stop=stop), ["h_n", "c_n", "Y"], yes=TRUE, no=FALSE), yes=TRUE, no=FALSE
    )
    expected = lstm(X[:steps]) if steps else (np.zeros((0, 1, N, H)), H0, C0)
    assert_close((h, c), expected[1:], TOLERANCE)
    if steps:
        assert_close((Y,), (expected[0][:, 0],), TOLERANCE)
    else:
        assert len(Y) == 0  # of how many axes is not declared


def test_a_loop_in_a_loop() -> None:
    """The inner one runs all of X again, from where the outer one is; both count."""
    inner = body(
        [node("Identity", ["go2"], ["go_2"]), node("Gather", ["X", "j"], ["x"], axis=0), *step("x", "p", "q", "n_")],
        {"j": INT64, "go2": BOOL, "p": FLOAT, "q": FLOAT},
        ["go_2", "n_h1", "n_c1"],
    )
    outer = body(
        [node("Identity", ["go1"], ["go_1"]), node("Loop", ["T", "", "h", "c"], ["h2", "c2"], body=inner)],
        {"i": INT64, "go1": BOOL, "h": FLOAT, "c": FLOAT},
        ["go_1", "h2", "c2"],
    )
    proto = model([node("Loop", ["two", "", "h0", "c0"], ["h_n", "c_n"], body=outer)], ["h_n", "c_n"])
    _, h, c = lstm(np.concatenate([X, X]))
    assert_close(results(proto), (h, c), TOLERANCE)


# If


def test_branches_at_two_depths() -> None:
    """Weights are the main graph's, states are captured, the sign is a constant of the innermost body."""
    sign = numpy_helper.from_array(np.array(-1, np.float32), "sign")
    deepest = make_graph(
        [node("Mul", ["x2", "sign"], ["m"]), node("LSTM", ["m", "W", "R", "B", "", "h0", "c0"], ["q"], hidden_size=H)],
        {},
        ["q"],
    )
    deepest.initializer.append(sign)
    other = make_graph([node("LSTM", ["X", "W", "R", "B", "", "h0", "c0"], ["q"], hidden_size=H)], {}, ["q"])
    inner = make_graph(
        [node("Add", ["X", "X"], ["x2"]), node("If", ["b"], ["p"], then_branch=deepest, else_branch=other)], {}, ["p"]
    )
    plain = make_graph([node("Unsqueeze", ["X", "one"], ["p"])], {}, ["p"])
    proto = model([node("If", ["a"], ["Y"], then_branch=inner, else_branch=plain)], ["Y"], a=TRUE, b=TRUE)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1]), "one"))
    expected = {(1, 1): lstm(-2 * X)[0], (1, 0): lstm(X)[0], (0, 1): X[:, None], (0, 0): X[:, None]}
    for (a, b), Y in expected.items():
        assert_close(results(proto, a=np.array(bool(a)), b=np.array(bool(b))), (Y,), TOLERANCE)


def test_branches_that_give_what_is_outside() -> None:
    """A captured value, and a constant of the body, without a node in between."""
    then = make_graph([node("LSTM", ["X", "W", "R", "B"], ["Y1", "h1"], hidden_size=H)], {}, ["h1", "X"])
    other = make_graph([], {}, ["h0", "k"])
    other.initializer.append(numpy_helper.from_array(2 * X, "k"))
    proto = model([node("If", ["a"], ["p", "q"], then_branch=then, else_branch=other)], ["p", "q"], a=TRUE)
    assert_close(results(proto, a=TRUE), (lstm(X, 0 * H0, 0 * C0)[1], X), TOLERANCE)
    assert_close(results(proto, a=FALSE), (H0, 2 * X), TOLERANCE)


def test_a_branch_in_a_loop_in_a_branch() -> None:
    """Steps with an odd index run the LSTM, the others hold its state."""
    then = make_graph([node("Gather", ["X", "i"], ["x"], axis=0), *step()], {}, ["h1", "c1"])
    other = make_graph([], {}, ["h", "c"])
    inside = body(
        [
            node("Identity", ["go"], ["go_on"]),
            node("Mod", ["i", "two"], ["m"]),
            node("Cast", ["m"], ["odd"], to=BOOL),
            node("If", ["odd"], ["h2", "c2"], then_branch=then, else_branch=other),
        ],
        {"i": INT64, "go": BOOL, "h": FLOAT, "c": FLOAT},
        ["go_on", "h2", "c2"],
    )
    loop = make_graph([node("Loop", ["T", "", "h0", "c0"], ["hn", "cn"], body=inside)], {}, ["hn", "cn"])
    proto = model(
        [node("If", ["a"], ["h_n", "c_n"], then_branch=loop, else_branch=make_graph([], {}, ["c0", "h0"]))],
        ["h_n", "c_n"],
        a=TRUE,
    )
    _, h, c = lstm(X[1::2])
    assert_close(results(proto, a=TRUE), (h, c), TOLERANCE)
    assert_close(results(proto, a=FALSE), (C0, H0), TOLERANCE)


# Scan

# Axis of time of the scanned input, its direction; axis of time in the result, its direction.
SCANS = {
    "first axis": (0, 0, 0, 0),
    "second axis": (1, 0, 1, 0),
    "into the last axis": (0, 0, 2, 0),
    "negative axes": (-2, 0, -1, 0),
    "backwards": (0, 1, 0, 0),
    "backwards, and turned again": (0, 1, 0, 1),
    "turned": (1, 0, 1, 1),
}


@pytest.mark.parametrize("name", SCANS)
def test_scan(name: str) -> None:
    axis, reverse, axis_out, reverse_out = SCANS[name]
    inside = body(step(), {"h": FLOAT, "c": FLOAT, "x": FLOAT}, ["h1", "c1", "y1"])
    scan = node(
        "Scan",
        ["h0", "c0", "Z"],
        ["h_n", "c_n", "Y"],
        body=inside,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=[reverse],
        scan_output_axes=[axis_out],
        scan_output_directions=[reverse_out],
    )
    Z = np.moveaxis(X, 0, axis)
    planned = read_model(model([scan], ["h_n", "c_n", "Y"], Z=Z), runtime="auto")
    Y, h, c = lstm(X[::-1] if reverse else X)
    Y = np.moveaxis(Y[::-1, 0] if reverse_out else Y[:, 0], 0, axis_out)
    for _ in range(2):
        assert_close(list(planned({**GIVEN, "Z": Z}).values()), (h, c, Y), TOLERANCE)


def test_scan_of_two_inputs_without_a_state() -> None:
    """A GRU would be one; here each step is an LSTM from zero, of the sum of what is scanned."""
    inside = body(
        [
            node("Add", ["x", "z"], ["s"]),
            node("Unsqueeze", ["s", "zero"], ["s1"]),
            node("LSTM", ["s1", "W", "R", "B"], ["", "y1"], hidden_size=H),
        ],
        {"x": FLOAT, "z": FLOAT},
        ["y1"],
    )
    scan = node("Scan", ["X", "Z"], ["Y"], body=inside, num_scan_inputs=2, scan_input_directions=[0, 1])
    (Y,) = read_model(model([scan], ["Y"], Z=X / 2))({**GIVEN, "Z": X / 2}).values()
    rows = [lstm(one[np.newaxis], 0 * H0, 0 * C0)[1] for one in X + X[::-1] / 2]
    assert_close((Y,), (np.stack(rows),), TOLERANCE)


# Mistakes: nodes -> message. Each is an error of the plan or of the call.


def without(attribute: str) -> Callable[[], list[onnx.NodeProto]]:
    def make() -> list[onnx.NodeProto]:
        (loop,) = looped("T", "")
        kept = [one for one in loop.attribute if one.name != attribute]
        del loop.attribute[:]
        loop.attribute.extend(kept)
        return [loop]

    return make


def one_branch() -> list[onnx.NodeProto]:
    then = make_graph(step("X", "h0", "c0"), {}, ["h1"])
    return [node("If", ["yes"], ["h_n"], then_branch=then, name="choice")]


def many_conditions() -> list[onnx.NodeProto]:
    then = make_graph([node("LSTM", ["X", "W", "R"], ["p"], hidden_size=H)], {}, ["p"])
    choice = node("If", ["many"], ["h_n"], then_branch=then, else_branch=make_graph([], {}, ["X"]), name="choice")
    return [node("Cast", ["X"], ["many"], to=BOOL), choice]


def few_results() -> list[onnx.NodeProto]:
    (loop,) = looped("T", "")
    del loop.attribute[0].g.output[1:]
    return [loop]


def few_carried() -> list[onnx.NodeProto]:
    (loop,) = looped("T", "")
    del loop.input[-1]
    return [loop]


def scanned(*inputs: str, **attributes: Any) -> Callable[[], list[onnx.NodeProto]]:
    inside = body(step(), {"h": FLOAT, "c": FLOAT, "x": FLOAT}, ["h1", "c1", "y1"])
    return lambda: [node("Scan", [*inputs], ["h_n", "c_n", "Y"], body=inside, name="scan", **attributes)]


WRONG: dict[str, tuple[Callable[[], list[onnx.NodeProto]], str]] = {
    "a loop without a body": (without("body"), "Loop 'loop'"),
    "an If with one branch": (one_branch, "If 'choice' cannot be run.*'else_branch' is expected"),
    "a condition of many elements": (many_conditions, r"If 'choice' failed: .*'many' bool \(4, 3, 5\)"),
    "a loop with few results": (few_results, "Loop 'loop': it carries 2 values; its body has 4 inputs and 1 outputs"),
    "a loop that carries less than its body": (few_carried, "Loop 'loop': it carries 1 values"),
    "a scan of nothing": (scanned("h0", "c0", "X", num_scan_inputs=0), "Scan 'scan': num_scan_inputs is 0"),
    "a scan of more than there is": (scanned("h0", "c0", "X", num_scan_inputs=4), "num_scan_inputs is 4; .* 3 inputs"),
    "a scan without its number": (scanned("h0", "c0", "X"), "Scan 'scan'"),
    "a scan of too few inputs": (
        scanned("c0", "X", num_scan_inputs=1),
        "Scan 'scan': its body has 3 inputs; expected 2",
    ),
    "a scan of too many axes": (
        scanned("h0", "c0", "X", num_scan_inputs=1, scan_input_axes=[0, 1]),
        "Scan 'scan': scan_input_axes has 2 values; expected 1",
    ),
    "a scan along an axis that is not there": (
        scanned("h0", "c0", "X", num_scan_inputs=1, scan_input_axes=[3]),
        "Scan 'scan'.*axis 3 is out of bounds",
    ),
    "a scan into an axis that is not there": (
        scanned("h0", "c0", "X", num_scan_inputs=1, scan_output_axes=[-4]),
        "Scan 'scan'.*axis -4 is out of bounds",
    ),
    "states that do not fit": (scanned("X", "c0", "X", num_scan_inputs=1), "initial_h has shape"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    make, message = WRONG[name]
    nodes = make()
    outputs = [one for one in nodes[-1].output if one]
    proto = model(nodes, outputs, yes=TRUE)
    with pytest.raises(PyrnnxError, match=f"(?s){message}"):
        read_model(proto, runtime="auto")({**GIVEN, "yes": TRUE})


def test_scanned_inputs_of_unequal_lengths() -> None:
    inside = body([node("Add", ["x", "z"], ["s"]), *step("s", "h0", "c0")], {"x": FLOAT, "z": FLOAT}, ["y1"])
    proto = model([node("Scan", ["X", "Z"], ["Y"], body=inside, num_scan_inputs=2, name="scan")], ["Y"], Z=X[:2])
    with pytest.raises(PyrnnxError, match=r"Scan 'scan': its scanned inputs have \[2, 4\] steps"):
        read_model(proto)({**GIVEN, "Z": X[:2]})


def test_what_an_iteration_keeps_is_counted(small_limit: None) -> None:
    """6 MB in each iteration, 60 GB in all."""
    inside = body(
        [
            node("Identity", ["go"], ["go_on"]),
            node("Gather", ["X", "none"], ["x"], axis=0),
            *step(),
            node("Tile", ["y1", "many"], ["large"]),
        ],
        {"i": INT64, "go": BOOL, "h": FLOAT, "c": FLOAT},
        ["go_on", "h1", "c1", "large"],
    )
    loop = node("Loop", ["often", "", "h0", "c0"], ["", "", "Y"], body=inside, name="loop")
    proto = model([loop], ["Y"])
    more = {"many": np.array([1000, 100]), "often": np.array(10_000)}
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in more.items())
    with pytest.raises(PyrnnxError, match=r"would take 9000000 bytes on top of .* a call may take 67108864"):
        read_model(proto)(GIVEN)
