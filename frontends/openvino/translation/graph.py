"""An ONNX graph in the making: unique names, equal constants once, ONNX Runtime's gaps filled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import FormatError, PyrnnxError, UnsupportedError, shortened

from .onnx_frontend import all_nodes, import_onnx

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

OPSET, IR_VERSION = 22, 10
SMALL = 1024  # elements of a constant that is computed at once and kept: it costs next to nothing
LARGEST_MODEL = 2**31 - 1  # bytes of a protobuf message

# Element types that an operator has by its text, and ONNX Runtime no kernel for: computed in a wider type, exactly.
_SHORT = {"int16": "int32", "uint16": "int32"}
_WIDE = {"uint32": "int64", "uint64": "int64"}
_SMALL = {"int8": "int32", "uint8": "int32", **_SHORT, **_WIDE}
WIDENED: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("Max", "Min", "Clip", "Pad"), _SHORT),
    "Where": {**_SHORT, "uint64": "int64", "bool": "uint8"},
    **dict.fromkeys((f"Reduce{one}" for one in ("Max", "Min", "Mean", "Prod", "Sum", "L1", "L2")), _WIDE),
    "CumSum": _WIDE,
    "Einsum": {**_SMALL, "bfloat16": "float32"},
    "Pow": {"int8": "int32", "uint8": "int32", **_SHORT, **_WIDE},
    "ReverseSequence": {"bfloat16": "float32"},
    "Unique": {
        **dict.fromkeys(("uint8", "int16", "uint16", "int32", "uint32", "uint64", "bool"), "int64"),
        "bfloat16": "float32",
    },
}


@contextmanager
def guarded(label: str, expected: str) -> Iterator[None]:
    """Attributes and constants that contradict each other may raise anything: here it becomes an error with the label.

    Raises
    ------
    PyrnnxError
    """
    try:
        yield
    except PyrnnxError:
        raise
    except MemoryError as error:
        raise PyrnnxError(f"{label}: a constant of it exceeds memory ({error})") from error
    except Exception as error:
        what = f"{type(error).__name__}: {shortened(str(error))}"
        raise FormatError(f"{label}: cannot be translated to ONNX ({what}); expected {expected}") from error


def merge_equal_initializers(model: ModelProto) -> ModelProto:
    """The model, in place, with one initializer where several have the same content."""
    graph, kept, renamed = model.graph, dict[tuple[Any, ...], str](), dict[str, str]()
    outputs = {one.name for one in (*graph.output, *graph.input)}
    for tensor in graph.initializer:
        content = (tensor.data_type, tuple(tensor.dims), hashlib.blake2b(tensor.raw_data, digest_size=16).digest())
        if tensor.name not in outputs and tensor.HasField("raw_data"):
            first = kept.setdefault(content, tensor.name)
            if first != tensor.name:
                renamed[tensor.name] = first
    if renamed:
        for node in all_nodes(graph.node):
            for k, name in enumerate(node.input):
                if name in renamed:
                    node.input[k] = renamed[name]
        for k in reversed(range(len(graph.initializer))):
            if graph.initializer[k].name in renamed:
                del graph.initializer[k]
    return model


class Graph:
    """Nodes in the order in which they run, and the constants that they take.

    Attributes
    ----------
    nodes : list of onnx.NodeProto
    """

    def __init__(self, name: str, reserved: Iterable[str] = ()) -> None:
        self.onnx = import_onnx()
        self.name = name
        self.nodes: list[NodeProto] = []
        self._tensors: dict[str, TensorProto] = {}
        self._by_content: dict[tuple[Any, ...], str] = {}
        self._by_name: dict[str, AnyArray] = {}
        self._values: set[str] = {"", *reserved}
        self._node_names: set[str] = {""}
        self._next: dict[str, int] = {}
        self._bytes = [0]  # of all constants; a list, for bodies add to it

    def body(self, name: str) -> Graph:
        """A graph for the body of a node: its names are new in all of the model, its constants are this graph's."""
        inner = copy(self)
        inner.name, inner.nodes = name, []
        return inner

    def value_name(self, wanted: str) -> str:
        """That name, or where a value has it already, that with a number."""
        return self._unique(wanted or "value", self._values)

    def _unique(self, wanted: str, taken: set[str]) -> str:
        name = wanted
        while name in taken:
            number = self._next[wanted] = self._next.get(wanted, 0) + 1
            name = f"{wanted}_{number}"
        taken.add(name)
        return name

    def constant(self, array: Any, name: str = "constant") -> str:
        """The name of an initializer with that content; the wanted name only if there was none yet."""
        array = np.asarray(array)  # of any byte order and layout; ascontiguousarray would give a scalar an axis
        if array.nbytes > LARGEST_MODEL:
            raise self._too_large()
        data = array.tobytes()
        content = (array.dtype.name, array.shape, hashlib.blake2b(data, digest_size=16).digest())
        if content not in self._by_content:
            self._bytes[0] += len(data)
            if self._bytes[0] > LARGEST_MODEL:
                raise self._too_large()
            wanted = self.value_name(name)
            tensor = self.onnx.TensorProto(name=wanted, dims=array.shape, data_type=self.element_type(array.dtype.name))
            tensor.raw_data = data
            self._tensors[wanted] = tensor
            self._by_content[content] = wanted
            self._by_name[wanted] = array
        return self._by_content[content]

    def _too_large(self) -> UnsupportedError:
        return UnsupportedError(
            f"{shortened(self.name)}: its constants exceed {LARGEST_MODEL} bytes (2 GB), the most that an ONNX model "
            "without external data can hold"
        )

    def constant_array(self, name: str) -> AnyArray | None:
        """The content of an initializer; None of any other name."""
        return self._by_name.get(name)

    def element_type(self, dtype: str) -> int:
        """ONNX's number of a NumPy dtype name."""
        names = {"bool": "BOOL", "float32": "FLOAT", "float64": "DOUBLE", "str": "STRING"}
        return int(getattr(self.onnx.TensorProto, names.get(dtype, dtype.upper())))

    def node(self, op_type: str, inputs: Iterable[str], name: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """A node, and the names of its outputs, which begin with `name` as its own does."""
        names = [self.value_name(f"{name}/{op_type}") for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        unique = self._unique(f"{name}/{op_type}", self._node_names)
        self.nodes.append(self.onnx.helper.make_node(op_type, list(inputs), names, unique, **given))
        return names

    def name_node(self, index: int, wanted: str) -> None:
        """Give a node that name, or where a node has it already, that with a number."""
        self.nodes[index].name = self._unique(wanted, self._node_names)

    def rename(self, old: str, new: str, since: int) -> None:
        """Give another name to an output of one of the nodes made since there were `since`."""
        for node in self.nodes[since:]:
            for names in (node.input, node.output):
                for k, name in enumerate(names):
                    if name == old:
                        names[k] = new

    def proto(self, inputs: Iterable[ValueInfoProto], outputs: Iterable[ValueInfoProto]) -> GraphProto:
        """The nodes alone, with these inputs and outputs."""
        graph: GraphProto = self.onnx.GraphProto(name=self.name)
        graph.node.extend(self.nodes)
        graph.input.extend(inputs)
        graph.output.extend(outputs)
        return graph

    def model(self, inputs: Iterable[ValueInfoProto], outputs: Iterable[ValueInfoProto]) -> ModelProto:
        """The model; of the constants only those that some node takes, or that are outputs."""
        helper, graph = self.onnx.helper, self.proto(inputs, outputs)
        nodes = list(all_nodes(graph.node))
        used = {name for node in nodes for name in node.input} | {one.name for one in graph.output}
        graph.initializer.extend(tensor for name, tensor in self._tensors.items() if name in used)
        domains = {"": OPSET, **{node.domain: 1 for node in nodes if node.domain}}
        opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
        model: ModelProto = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="pyrnnx"
        )
        return model
