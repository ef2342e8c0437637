"""Code that runs a written case with a runtime's own API or command line."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from pyrnnx.testing.cases import INPUTS, Case
from pyrnnx.testing.runtimes import RUNTIMES, CommandRuntime, FunctionRuntime, Runtime
from pyrnnx.testing.runtimes.of_torch import GATES

_READ_ONNX = """\
import numpy as np
import onnx


def tensor(name):
    return onnx.numpy_helper.to_array(onnx.load_tensor(f"test_data_set_0/{name}.pb"))


model = onnx.load("model.onnx")
names = [info.name for info in model.graph.output]
inputs = {info.name: tensor(f"input_{place}") for place, info in enumerate(model.graph.input)}
expected = [tensor(f"output_{place}") for place in range(len(names))]
"""
_READ_IR = """\
import numpy as np

inputs, outputs_file = dict(np.load("inputs.npz")), dict(np.load("outputs.npz"))
names, expected = list(outputs_file), list(outputs_file.values())
"""
_COMPARE = """\
for name, output, right in zip(names, outputs, expected):
    output = np.asarray(output)
    print(name, output.dtype, output.shape, "expected", right.dtype, right.shape)
    a, b = output.astype(np.float64), right.astype(np.float64)
    numbers = ~(np.isnan(a) | np.isnan(b))
    with np.errstate(invalid="ignore"):
        apart = np.abs(a - b)[numbers].max(initial=0)
    print(apart, "apart at most;", np.isnan(a).sum(), "NaN, expected", np.isnan(b).sum())
"""

_LOAD = """\
import pyrnnx

results = pyrnnx.load("{file}")(inputs)
outputs = [results[name] for name in names]
"""
_ONNXRUNTIME = """\
import onnxruntime

session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
outputs = session.run(None, inputs)
"""
_OPENVINO = """\
import openvino

core = openvino.Core()
net = core.read_model({source})
compiled = core.compile_model(net, "CPU", {{"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}})
results = compiled({{port.any_name: inputs[port.any_name] for port in net.inputs}})  # without those that it drops
outputs = [results[name] for name in names]
"""
_EVALUATOR = """\
from onnx.reference import ReferenceEvaluator

outputs = ReferenceEvaluator(model).run(None, inputs)
"""
_OPENCV = """\
import cv2

net = cv2.dnn.readNetFromONNX("model.onnx")
for name, array in inputs.items():
    net.setInput(array, name)
there = net.getUnconnectedOutLayersNames()
results = dict(zip(there, net.forward(there)))
outputs = [results[name] for name in names]
"""
_TRACT = """\
import tract

runnable = tract.onnx().load("model.onnx").into_model().into_runnable()
outputs = [one.to_numpy() for one in runnable.run(list(inputs.values()))]
"""
_TORCH = """\
import torch

dtype = torch.{dtype}
order = {order}  # the gates of torch.nn.{operator}, by their places in ONNX
layer = torch.nn.{operator}({options}, dtype=dtype)


def to_torch(array):
    return torch.from_numpy(array.astype(np.float64)).to(dtype)


blocks = {{"weight_ih": inputs["W"], "weight_hh": inputs["R"]}}
if "B" in inputs:
    blocks["bias_ih"], blocks["bias_hh"] = np.split(inputs["B"], 2, axis=1)
for name, parameter in layer.named_parameters():
    gates = np.split(blocks[name.partition("_l0")[0]][int(name.endswith("_reverse"))], len(order))
    parameter.data = to_torch(np.concatenate([gates[gate] for gate in order]))
zeros = np.zeros({state}, inputs["X"].dtype)
states = [to_torch(inputs.get(name, zeros)){states_first} for name in {states}]
X = to_torch(inputs["X"])
{pack}
with torch.inference_mode():
    Y, last = layer(X, {initial})
{unpack}
Y = Y.unflatten(-1, ({D}, {H})){Y_axes}
outputs = [one.double().numpy() for one in (Y, {lasts})]
"""


def snippet(runtime: Runtime, case: Case) -> str:
    """Return a Markdown block that runs in the folder of the case and prints the largest errors."""
    if isinstance(runtime, CommandRuntime):
        return f"```bash\n{shlex.join(word.replace('{folder}', '.') for word in runtime.command)}\n```"
    if isinstance(runtime, FunctionRuntime):
        return _python(_of_function(runtime, case))
    key = next((key for key, known in RUNTIMES.items() if type(known) is type(runtime)), None)
    own = (_ONNX if case.family == "ONNX" else _IR).get(key or "")
    if own is None:
        return _python(_of_runtime(runtime, case))
    read = _READ_ONNX if case.family == "ONNX" else _READ_IR
    return _python(f"{read}\n{own(case)}\n{_COMPARE}")


def _python(text: str) -> str:
    return f"```python\n{text.strip()}\n```"


def _of_function(runtime: FunctionRuntime, case: Case) -> str:
    function: Any = runtime.function
    module, name = getattr(function, "__module__", "__main__"), getattr(function, "__qualname__", runtime.name)
    if runtime.takes == "case":
        return (
            f"from {module} import {name.partition('.')[0]}\nfrom pyrnnx.testing.cases import Case, make_arrays\n\n"
            f"case = {case!r}\nprint({name}(case, make_arrays(case)))"
        )
    call = f'outputs = {name}(open("model.onnx", "rb").read(), inputs)'
    return f"from {module} import {name.partition('.')[0]}\n{_READ_ONNX}\n{call}\n{_COMPARE}"


def _of_runtime(runtime: Runtime, case: Case) -> str:
    kind = type(runtime)
    return (
        f"from {kind.__module__} import {kind.__qualname__}\nfrom pyrnnx.testing.cases import Case, make_arrays\n\n"
        f"case = {case!r}\nprint({kind.__qualname__}().run(case, make_arrays(case)))"
    )


def _pyrnnx(case: Case) -> str:
    attributes = {**case.attributes, "opset": case.opset}
    arguments = "".join(f", {name}={value!r}" for name, value in attributes.items())
    function = case.operator.lower()
    return f"from pyrnnx.frontends.onnx import {function}\n\noutputs = {function}(**inputs{arguments})\n"


def _torch(case: Case) -> str:
    """Return code for torch.nn's own module; PyTorch reads no files of this kind."""
    activations = [name.lower() for name in case.attributes.get("activations", ())]
    D, batch_first, swap = case.num_directions, bool(case.layout), ".transpose(0, 1).contiguous()"
    options = [f"{case.I}, {case.H}, bias={'B' in case.inputs}, batch_first={batch_first}, bidirectional={D == 2}"]
    options += ['nonlinearity="relu"'] if case.operator == "RNN" and "relu" in activations else []
    states = [name for name in ("initial_h", "initial_c") if name in INPUTS[case.operator]]
    lasts = [f"last[{place}]" for place in range(2)] if len(states) == 2 else ["last"]
    ragged, rnn = case.lens is not None, "torch.nn.utils.rnn"
    lens = f'inputs["sequence_lens"].tolist(), batch_first={batch_first}, enforce_sorted=False'
    return _TORCH.format(
        dtype=case.dtype,
        order=list(GATES[case.operator]),
        operator=case.operator,
        options=", ".join(options),
        state=(case.N, D, case.H) if batch_first else (D, case.N, case.H),
        states=states,
        states_first=swap if batch_first else "",  # batch_first is of X and Y alone
        pack=f"X = {rnn}.pack_padded_sequence(X, {lens})" if ragged else "",
        initial="states" if len(states) == 2 else "states[0]",
        unpack=f"Y, _ = {rnn}.pad_packed_sequence(Y, batch_first={batch_first}, total_length={case.T})"
        if ragged
        else "",
        D=D,
        H=case.H,
        Y_axes="" if batch_first else ".transpose(1, 2)",
        lasts=", ".join(f"{last}{swap if batch_first else ''}" for last in lasts),
    )


def _fixed(text: str) -> Callable[[Case], str]:
    """Return a function that fills a case's file name into the code, the same for all cases."""
    onnx = {"file": "model.onnx", "source": 'open("model.onnx", "rb").read()'}
    ir = {"file": "model.xml", "source": '"model.xml"'}
    return lambda case: text.format(**(onnx if case.family == "ONNX" else ir))


_ONNX: dict[str, Callable[[Case], str]] = {
    "pyrnnx": _pyrnnx,
    "pyrnnx.load": _fixed(_LOAD),
    "onnxruntime": _fixed(_ONNXRUNTIME),
    "openvino": _fixed(_OPENVINO),
    "onnx": _fixed(_EVALUATOR),
    "torch": _torch,
    "opencv": _fixed(_OPENCV),
    "tract": _fixed(_TRACT),
}
_IR: dict[str, Callable[[Case], str]] = {
    "pyrnnx": _fixed(_LOAD),
    "pyrnnx.load": _fixed(_LOAD),
    "openvino": _fixed(_OPENVINO),
}
