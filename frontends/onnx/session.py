"""ONNX Runtime sessions of rewritten models, and the programs of a model: a session for each choice of values."""

from __future__ import annotations

import ctypes
import math
import os
import re
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx._internal.extras import import_package
from pyrnnx.errors import ArgumentError, UnsupportedError, printable, shortened, shown
from pyrnnx.layers import custom_operators
from pyrnnx.operator.tensor_info import TensorInfo

from .graph.constants import complete
from .onnx_package import import_onnx

if TYPE_CHECKING:
    from onnx import ModelProto

_QUANTIZERS = {"QuantizeLinear", "DequantizeLinear"}
_ROUNDS = "rounds an output value that a Transpose and a QuantizeLinear follow"
# Optimizations that sessions run without: the operators or element types that make them faulty, and what they do then.
OPTIMIZERS: Mapping[str, tuple[set[str], str]] = {
    "TransposeOptimizer": (_QUANTIZERS, _ROUNDS),
    "TransposeOptimizer_CPUExecutionProvider": (_QUANTIZERS, _ROUNDS),
    "QDQPropagationTransformer": (
        _QUANTIZERS,
        "crashes the process at DequantizeLinear -> Transpose if a body captures the result",
    ),
    "WeightBiasQuantization": (_QUANTIZERS, "rounds floating-point weights of a Conv between quantized values"),
    "MatmulTransposeFusion": (
        {"float16"},
        "crashes the process at Transpose -> MatMul of float16 with a constant",
    ),
}
# Entries of the configuration of sessions, unless their user sets others.
ENTRIES = {
    # Without it, a MatMul of dequantized weights may round its other factor to 8 bits, if no other node is dequantized.
    "session.qdq_matmulnbits_accuracy_level": "1",
}
# Operators whose results differ from call to call.
RANDOM = {
    *("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
}
# Parts of ONNX Runtime's messages before and around their texts.
_NOISE = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : |Non-zero status code returned while running \S+ node\. Name:'[^']*' "
    r"Status Message: (?=Non-zero)|/\S+\.(?:h|cc|cpp):\d+ [^()]*\([^()]*\)(?: const)? ?|\b\w+\.(?:h|cc|cpp):\d+ \w+ "
)
_sessions: weakref.WeakSet[Any] = weakref.WeakSet()


class NotRunnable(Exception):  # noqa: N818  # never reaches a caller
    """Raised if ONNX Runtime rejects a model."""


@cache
def onnxruntime(what: str = "a call of a whole model") -> Any:
    """Return the module onnxruntime, or raise a PyrnnxError that says that `what` needs it."""
    return import_package("onnxruntime", what, "onnx")


def disabled_optimizers(contents: Collection[str]) -> list[str]:
    """Return the names of the optimizations that a session of a model with these contents runs without."""
    return [name for name, (faulty, _) in OPTIMIZERS.items() if not faulty.isdisjoint(contents)]


def plain_session(model: ModelProto) -> Any:
    """Return a session of a small model that runs once, on one thread; raise NotRunnable if there is none."""
    options = quiet_options()
    options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_DISABLE_ALL
    return _with_foreign_types(open_session(model, options, []))


def quiet_options() -> Any:
    """Return options of one thread, without messages: errors raise, and warnings are about wrong declared shapes."""
    options = onnxruntime().SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def constant_values(model: ModelProto, names: Sequence[str]) -> list[Any]:
    """Return values of a small model without inputs, as read-only arrays; raise NotRunnable if it fails."""
    session = plain_session(model)
    try:
        values: list[Any] = session.run(list(names), {})
    except Exception as error:  # of several types
        raise NotRunnable(str(error)) from error
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return values


def check_options(label: str, options: Any) -> None:
    """Raise an ArgumentError for options of another type than onnxruntime.SessionOptions."""
    if not isinstance(options, onnxruntime("session_options").SessionOptions):
        raise ArgumentError(f"{label}: session_options is {shown(options)}; expected an onnxruntime.SessionOptions")


def threads_of(options: Any) -> int:
    """Return the number of threads of sessions with these options; None stands for pyrnnx's own."""
    return config.get_num_threads() if options is None else options.intra_op_num_threads or config.get_num_threads()


def prepare_options(options: Any) -> None:
    """Register the operators of pyrnnx in an onnxruntime.SessionOptions, and set what its user has not set."""
    options.register_custom_ops_library(custom_operators.library_path())
    for key, value in ENTRIES.items():
        try:
            options.get_session_config_entry(key)
        except RuntimeError:  # noqa: PERF203  # there is no such entry
            options.add_session_config_entry(key, value)


def new_session(model: ModelProto, arrays: Mapping[str, AnyArray], options: Any, contents: Collection[str] = ()) -> Any:
    """Return an onnxruntime.InferenceSession, or an object with its method `run`; raise NotRunnable if there is none.

    The model is modified in place; it lacks the values of initializers in `arrays`. `contents` are its operators and
    element types.
    """
    ort = onnxruntime()
    is_own = options is None
    if is_own:
        options = quiet_options()
        options.intra_op_num_threads = threads_of(None)
    prepare_options(options)
    if not is_own:  # the user may use the options again
        complete(model, arrays)
    stubs = [tensor for tensor in model.graph.initializer if tensor.name in arrays] if is_own else []
    for stub in stubs:
        stub.data_location = stub.EXTERNAL
        size = math.prod(stub.dims) * arrays[stub.name].itemsize
        for key, entry in (("location", "memory"), ("offset", "0"), ("length", str(size))):
            stub.external_data.add(key=key, value=entry)
    # ONNX Runtime copies these arrays once, and values in a message three times.
    values = [ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(arrays[stub.name])) for stub in stubs]
    if stubs:
        options.add_external_initializers([stub.name for stub in stubs], values)
    return _with_foreign_types(open_session(model, options, disabled_optimizers(contents)))


def _with_foreign_types(session: Any) -> Any:
    types = {value.type for value in (*session.get_inputs(), *session.get_outputs())}
    return session if types.isdisjoint(_FOREIGN) else _ForeignSession(session)


def open_session(model: ModelProto, options: Any, disabled: Sequence[str]) -> Any:
    """Return an onnxruntime.InferenceSession; raise NotRunnable if ONNX Runtime rejects the model."""
    try:
        session = onnxruntime().InferenceSession(
            model.SerializeToString(),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=disabled,
            enable_fallback=0,  # would print a message and use the same provider
        )
    except Exception as error:  # of several types
        raise NotRunnable(str(error)) from error
    _sessions.add(session)
    return session


def failure(label: str, error: Exception) -> BaseException:
    """Return the error to raise for an exception of a session: a pyrnnx operator's own, or one that names the model."""
    own = custom_operators.original_error(error)
    if isinstance(own, MemoryError):
        return ArgumentError(f"{label}: {own}")
    if own is not None:
        return own
    text = shortened(_NOISE.sub("", printable(str(error).strip())))
    if isinstance(error, NotRunnable):
        return UnsupportedError(f"{label}: ONNX Runtime cannot run the model: {text}")
    return ArgumentError(f"{label}: the call failed in ONNX Runtime: {text}")


def _keep_sessions() -> None:
    """Leak the sessions that a forked process inherits.

    Their destructors would wait for threads that the fork did not copy. `config.settings` makes models replace them.
    """
    for session in list(_sessions):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_sessions)

# Element types that NumPy has only from ml_dtypes; a session takes and returns no arrays of them.
_FOREIGN = {"tensor(bfloat16)": "bfloat16"} | {
    f"tensor({name.replace('_', '')})": name
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
}


class _ForeignSession:
    """Session that also takes and returns arrays of foreign types, as bits."""

    def __init__(self, session: Any) -> None:
        self._session, self._values = session, onnxruntime().OrtValue

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        arrays = {name: np.asarray(value, order="C") for name, value in feeds.items()}
        values = {name: self._value(array) for name, array in arrays.items()}
        return [_array(value) for value in self._session.run_with_ort_values(list(outputs), values)]

    def _value(self, array: Any) -> Any:
        if array.dtype.name not in _FOREIGN.values():
            return self._values.ortvalue_from_numpy(array)
        bits = array.view(np.dtype(f"u{array.itemsize}"))
        element = import_onnx().helper.np_dtype_to_tensor_dtype(array.dtype)
        return self._values.ortvalue_from_numpy_with_onnx_type(bits, element)


def _array(value: Any) -> Any:
    name = _FOREIGN.get(value.data_type())
    if name is None:
        return value.numpy()
    dtype, shape = named_dtype(name), value.shape()
    size = math.prod(shape) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(value.data_ptr()) if size else b""
    return np.frombuffer(bytearray(memory), dtype).reshape(shape)


# Maker of a session: whether the defaults of inputs are constants, and values that it returns besides the outputs.
Make = Callable[[bool, frozenset[str]], Any]


class Programs:
    """Thread-safe cache of the sessions of a model, which are made again if settings of pyrnnx change.

    `label` is the model's name in errors, `outputs` are its outputs, and `defaults` its inputs with a default.
    """

    def __init__(self, label: str, outputs: Sequence[TensorInfo], defaults: Iterable[str], make: Make) -> None:
        self._label, self._make, self._lock = label, make, threading.Lock()
        self._outputs, self._defaults = [info.name for info in outputs], frozenset(defaults)
        # The settings of each session, and itself.
        self._sessions: dict[tuple[bool, frozenset[str]], tuple[object, Any]] = {}
        # Those, and the values that the session returns, by what a call passes and wants.
        self._calls: dict[tuple[bool, tuple[str, ...]], tuple[object, Any, list[str]]] = {}

    def run(self, inputs: Mapping[str, Any], outputs: tuple[str, ...], *, once: bool = False) -> dict[str, Any]:
        """Return the values with these names, computed from checked inputs; `once` keeps no session."""
        is_plain = self._defaults.isdisjoint(inputs)
        key, settings = (is_plain, outputs), config.settings()
        before, session, wanted = self._calls.get(key, (None, None, []))
        if before is not settings:
            more = frozenset(outputs).difference(self._outputs)
            session, wanted = self._session(is_plain, more, once), [*self._outputs, *sorted(more)]
            if not once:
                self._calls[key] = settings, session, wanted
        try:
            results = session.run(wanted, inputs)
        except Exception as error:  # of several types
            raise failure(self._label, error) from error
        values = dict(zip(wanted, results, strict=True))
        return {name: values[name] for name in outputs}

    def session(self) -> Any:
        """Return the session of calls without further inputs and outputs.

        Raises
        ------
        PyrnnxError
            ONNX Runtime is not installed, or rejects the model.
        """
        return self._session(True, frozenset(), False)

    def _session(self, defaults: bool, more: frozenset[str], once: bool) -> Any:
        settings, key = config.settings(), (defaults, more)
        with self._lock:
            before, session = self._sessions.get(key, (None, None))
            if before is not settings:
                try:
                    session = self._make(defaults, more)
                except NotRunnable as error:
                    raise failure(self._label, error) from error
                if not once:
                    self._sessions[key] = settings, session
            return session
