"""Drop-in replacement of onnxruntime.InferenceSession, and the rewriting of models for other programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnxruntime

from pyrnnx import config
from pyrnnx.errors import FormatError
from pyrnnx.frontends.onnx.file import load_needed, load_proto, serialized, source_label, tensors_of
from pyrnnx.frontends.onnx.graph.constants import complete, without_large
from pyrnnx.frontends.onnx.graph.walk import Graph
from pyrnnx.frontends.onnx.passes import (
    DEFAULT_OPTIONS,
    LayerOptions,
    RecurrentModel,
    Rewritten,
    canonical,
    find_layers,
    layer_options,
    recurrent_inputs,
    rewritten,
    without_layers,
)
from pyrnnx.frontends.onnx.session import disabled_optimizers, prepare_options
from pyrnnx.layers import custom_operators
from pyrnnx.layers.layer import Layer

if TYPE_CHECKING:
    from onnx import ModelProto

    from pyrnnx.frontends.onnx.file import Source

_NAME_PREFIX = "pyrnnx_size_"  # sizes without a name in ONNX Runtime
_FOLDER = "session.model_external_initializers_file_folder_path"


def _original_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that raises the pyrnnx exceptions that exceptions of ONNX Runtime report."""

    @wraps(method)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return method(*arguments, **keywords)
        except Exception as error:
            raise (custom_operators.original_error(error) or error) from None

    return call


class InferenceSession(onnxruntime.InferenceSession):  # type: ignore[misc]  # it has no types
    """InferenceSession of onnxruntime whose recurrent nodes run on pyrnnx.

    Arguments, methods and results are those of ONNX Runtime. A model in ONNX Runtime's own format (.ort), and one
    without recurrent nodes whose weights are constants, is passed to it unchanged.

    Parameters
    ----------
    path_or_bytes : str, path or bytes
    sess_options : onnxruntime.SessionOptions, optional
        The operators of pyrnnx are registered in it; it can be used for other sessions, of ONNX Runtime, too.
    providers, provider_options, **kwargs
        As of ONNX Runtime. Recurrent nodes run on the CPU.
    leave : sequence of str, optional
        Operators whose nodes ONNX Runtime runs: see `pyrnnx.load`. Default: none.

    Attributes
    ----------
    layers : mapping
        The layers that run on pyrnnx, by name.
    why_none : str
        Why the model has no layers, or why other parts of it are not recognised as layers; "" if unknown.

    Raises
    ------
    PyrnnxError
        A file that cannot be read; attributes or weights that a recurrent operator does not allow; from `run`, inputs
        of recurrent nodes that do not fit. Everything else is raised as ONNX Runtime raises it.
    """

    _outputs_meta: Any
    _model_bytes: Any

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        *,
        leave: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        self.layers: Mapping[str, Layer] = {}
        self.why_none = ""
        self._handles: list[custom_operators.Handle] = []  # they must live until the session is created
        self._disabled: list[str] = []
        self._folder = ""  # of external data
        self._options = layer_options("InferenceSession", None, leave)
        if isinstance(path_or_bytes, os.PathLike):
            path_or_bytes = os.fsdecode(path_or_bytes)
        options, model = sess_options, path_or_bytes
        if _is_onnx(path_or_bytes, sess_options):
            contents = self._rewritten(path_or_bytes, sess_options)
            if contents:
                if sess_options is None:
                    options = onnxruntime.SessionOptions()
                    if self._folder:
                        options.add_session_config_entry(_FOLDER, self._folder)
                prepare_options(options)
                model = contents
                kwargs["disabled_optimizers"] = {*(kwargs.get("disabled_optimizers") or ()), *self._disabled}
        self._source = None if model is path_or_bytes else path_or_bytes
        _original_errors(super().__init__)(model, options, providers, provider_options, **kwargs)

    def _rewritten(self, source: str | bytes, options: Any) -> bytes:
        """Read and rewrite the model; return empty values if no node runs on pyrnnx."""
        threads = 0 if options is None else options.intra_op_num_threads
        threads = threads or config.get_num_threads()
        model, rewritten, external = _replaced(source, portable=False, threads=threads, options=self._options)
        self.layers = {name: layer for name, layer in model.layers.items() if isinstance(layer, Layer)}
        self.why_none, self._handles = model.why_no_layers(), rewritten.handles
        self._disabled = disabled_optimizers(model.contents)
        if external and isinstance(source, str):
            self._folder = str(Path(source).parent.resolve())
        is_ours = any(opset.domain == custom_operators.DOMAIN for opset in rewritten.proto.opset_import)
        return serialized(rewritten.proto, source_label(source)) if is_ours else b""

    def _create_inference_session(self, *arguments: Any, **keywords: Any) -> None:
        """Create the session for `__init__` and `set_providers`, from a newly rewritten model."""
        if self._source is not None and self._model_bytes is None:
            self._model_bytes = self._rewritten(self._source, self._sess_options)
        with _external_folder(self._sess_options, self._folder):
            super()._create_inference_session(*arguments, **keywords)
        if self._source is not None:
            self._model_bytes = None
        self._outputs_meta = [_without_our_sizes(meta) for meta in self._outputs_meta]

    set_providers = _original_errors(onnxruntime.InferenceSession.set_providers)
    run = _original_errors(onnxruntime.InferenceSession.run)
    run_async = _original_errors(onnxruntime.InferenceSession.run_async)
    run_with_ort_values = _original_errors(onnxruntime.InferenceSession.run_with_ort_values)
    run_with_ortvaluevector = _original_errors(onnxruntime.InferenceSession.run_with_ortvaluevector)
    run_with_iobinding = _original_errors(onnxruntime.InferenceSession.run_with_iobinding)


@dataclass(frozen=True)
class _Output:
    """Description of an output, like onnxruntime.NodeArg."""

    name: str
    type: str
    shape: list[int | str | None]


def _without_our_sizes(meta: Any) -> Any:
    """Return an output's description, without names of sizes that the model lacks."""
    try:
        sizes = [None if str(size).startswith(_NAME_PREFIX) else size for size in meta.shape]
    except UnicodeDecodeError:  # a name that is no text
        return meta
    return meta if sizes == meta.shape else _Output(meta.name, meta.type, sizes)


def _is_onnx(path_or_bytes: Any, options: Any) -> bool:
    """Return whether a model is in ONNX's format, not ONNX Runtime's own."""
    if options is not None:
        if not isinstance(options, onnxruntime.SessionOptions):
            return False  # ONNX Runtime raises
        try:
            if options.get_session_config_entry("session.load_model_format").upper() == "ORT":
                return False
        except RuntimeError:  # there is no such entry
            pass
    if isinstance(path_or_bytes, bytes):
        return path_or_bytes[4:8] != b"ORTM"
    if not isinstance(path_or_bytes, str) or path_or_bytes.endswith(".ort"):
        return False
    return os.path.exists(path_or_bytes)  # else ONNX Runtime raises


@contextmanager
def _external_folder(options: Any, folder: str) -> Iterator[None]:
    """Set the folder of external data in a caller's options, and restore them: ONNX Runtime logs the second change."""
    before = folder
    if options is not None and folder:
        try:
            before = options.get_session_config_entry(_FOLDER)
        except RuntimeError:  # there is no such entry
            before = ""
    if before == folder:
        yield
        return
    options.add_session_config_entry(_FOLDER, folder)
    try:
        yield
    finally:
        options.add_session_config_entry(_FOLDER, before)


def library() -> str:
    """Return the path of the custom operators, for `SessionOptions.register_custom_ops_library`.

    Any Python program that registers it runs what `rewrite` returns.
    """
    return custom_operators.library_path()


def rewrite(model: str | os.PathLike[str] | bytes | ModelProto) -> ModelProto:
    """Return a copy of a model whose recurrent nodes run on pyrnnx in sessions that have registered `library()`.

    Nodes in bodies of If, Loop and Scan and in functions are replaced, too, and so are layers that the graph spells
    out. Their weights stay in the model, checked; they are packed when a session is made. Nodes whose weights are
    computed at run time are left to ONNX Runtime.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        External data is read from beside a path. A result beyond 2 GiB is written by ``onnx.save_model(...,
        save_as_external_data=True)``.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    PyrnnxError
        A model that is broken; attributes or weights that an operator does not allow.
    """
    return _replaced(model, portable=True)[1].proto


def _replaced(
    model: Source, *, portable: bool, threads: int | None = None, options: LayerOptions = DEFAULT_OPTIONS
) -> tuple[RecurrentModel, Rewritten, bool]:
    """Read a model and rewrite it; return it before and after, and whether its external data stays where it is.

    Unless it is to be portable, external data is not read, but for that of layers, and a model that only ONNX Runtime
    can read is unchanged.
    """
    label, proto = source_label(model), load_proto(model, external=portable)
    try:
        proto, graph = canonical(proto, Graph(proto.graph), label)
    except FormatError as error:
        if portable:
            raise
        layered = without_layers(proto, {}, str(error))
        return layered, rewritten(layered), False
    external = not portable and any(tensor.data_location == tensor.EXTERNAL for tensor in tensors_of(proto, graph))
    if external:
        load_needed(proto, model, recurrent_inputs(proto))
    light, arrays = without_large(proto)
    layered = find_layers(light, graph if light is proto else Graph(light.graph), label, arrays, options)
    result = rewritten(layered, portable=portable, computed=False, threads=threads)
    complete(result.proto, result.arrays)
    return layered, result, external
