"""The libraries, each prepared for one case; `run()` is the timed call.

A library is imported only when it is used. Each peer gets its fastest interface: ONNX Runtime and OpenVINO read their
inputs in place, and ONNX Runtime writes to bound arrays, while pyrnnx allocates its results at every call.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from pyrnnx.bench.workload import WEIGHTS, Array, Case, make_arrays, make_layer, make_model
from pyrnnx.comparison.distances import LONG_TOLERANCES
from pyrnnx.errors import PyrnnxError
from pyrnnx.testing.runtimes.execution import line_of

# SciPy's BLAS would start its own threads. It reads the variable when it is loaded, so set it before importing pyrnnx.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class Peer:
    """Library prepared for one case and the result of `make_arrays`, which is shared and not modified."""

    name: ClassVar[str]
    module: ClassVar[str]
    float64: ClassVar[str] = ""  # why this library does not compute float64

    def __init__(self, case: Case, arrays: dict[str, Array], threads: int) -> None:
        self.case, self.arrays, self.threads = case, arrays, threads
        self.library: Any = importlib.import_module(self.module)
        self.prepare()

    @classmethod
    def refusal(cls, case: Case) -> str | None:
        """Return why this library cannot run the case, or None if it can."""
        if cls.float64 and case.dtype == "float64":
            return cls.float64
        return None if cls.is_installed() else "not installed"

    @classmethod
    def is_installed(cls) -> bool:
        return importlib.util.find_spec(cls.module) is not None

    def prepare(self) -> None:
        raise NotImplementedError

    def run(self) -> Any:
        """Compute all outputs, and return Y in the library's form."""
        raise NotImplementedError

    def canonical(self, Y: Any) -> Array:
        """Return the result of `run` as [T, D, N, H]; not timed."""
        return np.asarray(Y)

    @property
    def inputs(self) -> dict[str, Array]:
        return {name: array for name, array in self.arrays.items() if name not in WEIGHTS}


class Pyrnnx(Peer):
    """Layer of pyrnnx, called with NumPy arrays; results are new arrays."""

    name = module = "pyrnnx"

    def prepare(self) -> None:
        self.library.set_num_threads(self.threads)
        self.layer = make_layer(self.case, self.arrays)
        self.arguments = {
            key: self.arrays[key] for key in ("sequence_lens", "initial_h", "initial_c") if key in self.arrays
        }

    def run(self) -> Array:
        Y: Array = self.layer(self.arrays["X"], **self.arguments)[0]
        return Y


class OnnxRuntime(Peer):
    """Session of ONNX Runtime with inputs and outputs bound once."""

    name, module, float64 = "ONNX Runtime", "onnxruntime", "has no float64 kernel"

    def prepare(self) -> None:
        # Idle threads spin, which is the default: else short calls take up to twice as long on two threads. They spin
        # for about 50 ms after a call; `timing.measure` waits for the end.
        options = self.library.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.execution_mode = self.library.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 4  # errors raise
        model = make_model(self.case, self.arrays)
        self.session = self.library.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.outputs = {key: np.empty(shape, self.case.dtype) for key, shape in self.case.output_shapes.items()}
        self.binding = self.session.io_binding()
        for key, array in self.inputs.items():
            self.binding.bind_cpu_input(key, array)
        for key, array in self.outputs.items():
            self.binding.bind_output(key, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def run(self) -> Array:
        self.session.run_with_iobinding(self.binding)
        return self.outputs["Y"]


class OpenVINO(Peer):
    """ONNX model compiled by OpenVINO for the CPU, with one infer request."""

    name, module, float64 = "OpenVINO", "openvino", "computes float64 models in float32"

    def prepare(self) -> None:
        core = self.library.Core()
        options = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": self.threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "ENABLE_CPU_PINNING": False,  # pinning makes small cases slower
        }
        model = core.read_model(make_model(self.case, self.arrays))
        model.reshape({key: array.shape for key, array in self.inputs.items()})
        compiled = core.compile_model(model, "CPU", options)
        self.request = compiled.create_infer_request()
        for key, array in self.inputs.items():
            self.request.set_tensor(key, self.library.Tensor(array, shared_memory=True))
        self.output = compiled.output("Y")

    def run(self) -> Any:
        return self.request.infer(share_outputs=True)[self.output]


class PyTorch(Peer):
    """PyTorch's LSTM, GRU or RNN in inference mode; ragged rows become a packed sequence, padded again."""

    name, module = "PyTorch", "torch"
    # Indices of ONNX gates in the order of PyTorch: LSTM i, f, g, o from i, o, f, c; GRU r, z, n from z, r, h
    gates: ClassVar[dict[str, tuple[int, ...]]] = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}

    @classmethod
    def refusal(cls, case: Case) -> str | None:
        if case.cell == "GRU" and not case.linear_before_reset:
            return "has only the GRU with linear_before_reset=1"
        return super().refusal(case)

    def prepare(self) -> None:
        torch = self.library
        torch.set_num_threads(self.threads)
        case, G = self.case, self.gates[self.case.cell]
        self.rnn = torch.nn.utils.rnn
        self.layer = getattr(torch.nn, case.cell)(
            case.I, case.H, bidirectional=case.directions == 2, dtype=getattr(torch, case.dtype)
        )
        blocks = {"weight_ih": self.arrays["W"], "weight_hh": self.arrays["R"]}
        blocks["bias_ih"], blocks["bias_hh"] = np.split(self.arrays["B"], 2, axis=1)
        parameters = {}
        for direction, suffix in enumerate(("_l0", "_l0_reverse")[: case.directions]):
            for key, array in blocks.items():
                parts = np.split(array[direction], len(G))
                parameters[key + suffix] = torch.from_numpy(np.concatenate([parts[gate] for gate in G]))
        self.layer.load_state_dict(parameters)
        self.layer.eval()
        inputs = {key: torch.from_numpy(array) for key, array in self.inputs.items()}
        self.X, self.lengths, state = inputs["X"], inputs.get("sequence_lens"), inputs.get("initial_h")
        self.state = (state, inputs["initial_c"]) if "initial_c" in inputs else state

    def run(self) -> Any:
        with self.library.inference_mode():
            if self.lengths is None:
                return self.layer(self.X, self.state)[0]
            packed = self.rnn.pack_padded_sequence(self.X, self.lengths, enforce_sorted=False)
            return self.rnn.pad_packed_sequence(self.layer(packed, self.state)[0], total_length=self.case.T)[0]

    def canonical(self, Y: Any) -> Array:
        case = self.case
        return np.asarray(Y).reshape(case.T, case.N, case.directions, case.H).transpose(0, 2, 1, 3)


PEERS: tuple[type[Peer], ...] = (Pyrnnx, OnnxRuntime, OpenVINO, PyTorch)


def reference(case: Case, arrays: dict[str, Array]) -> Array:
    """Return Y of the case, computed by pyrnnx in float64 from the same values."""
    wide = {key: a.astype(np.float64) if a.dtype.kind == "f" else a for key, a in arrays.items()}
    return np.asarray(Pyrnnx(case, wide, 1).run())


def checked_peers(
    case: Case, threads: int, chosen: Sequence[type[Peer]] = PEERS
) -> tuple[dict[str, Peer], dict[str, str]]:
    """Return the libraries that run the case with the right result, and why the others are left out, both by name.

    A PyrnnxError is raised if pyrnnx rejects the case, or differs from its float64 result.
    """
    arrays = make_arrays(case)
    expected = reference(case, arrays)
    peers, reasons = {}, {}
    for cls in chosen:
        reason = cls.refusal(case)
        if reason is None:
            try:
                peer = cls(case, arrays, threads)
                Y = peer.canonical(peer.run())
            except Exception as error:  # libraries raise errors of any type
                if cls is Pyrnnx:
                    raise
                reasons[cls.name] = f"does not run it ({line_of(error)})"
                continue
            difference = np.abs(Y.astype(np.float64) - expected).max(initial=0.0)
            if difference <= LONG_TOLERANCES[case.dtype]:
                peers[cls.name] = peer
                continue
            reason = f"its Y is {difference:.1g} apart from the float64 result"
            if cls is Pyrnnx:
                raise PyrnnxError(f"bench: pyrnnx, {case}: {reason}")
        reasons[cls.name] = reason
    return peers, reasons
