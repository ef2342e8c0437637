"""The ONNX backend interface (onnx.backend.base): ``prepare``, ``run_model``, ``run_node`` and what goes with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.scalars import integer
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.operator import check

from .graph.walk import node_label
from .model import Model, read_model
from .onnx_package import import_onnx

onnx = import_onnx()
from onnx.backend import base  # noqa: E402  (after the message of what is missing)

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


class BackendRep(base.BackendRep):
    """Prepared model.

    Attributes
    ----------
    model : Model
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Return the outputs, for inputs in the model's order or by name."""
        if isinstance(inputs, Mapping):
            return tuple(self.model(inputs).values())
        arrays = _sequence(self.model.label, inputs)
        required = [info.name for info in self.model.inputs if not info.optional]
        if len(arrays) == len(required):
            return tuple(self.model(dict(zip(required, arrays, strict=True))).values())
        return tuple(self.model(*arrays).values())


class Backend(base.Backend):
    """Backend of ONNX Runtime with pyrnnx's recurrent operators, on a CPU."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **_: Any) -> bool:
        """Return whether the model is valid and all its operators are known."""
        try:
            cls.prepare(model, device)
        except PyrnnxError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **_: Any) -> BackendRep:
        """Prepare a model for many runs.

        Raises
        ------
        PyrnnxError
            Another device; a model that `read_model` rejects, or that ONNX Runtime does.
        """
        if not cls.supports_device(device):
            raise ArgumentError(f"backend: device is {shown(device)}; expected 'CPU'")
        prepared = read_model(model)
        prepared.plan  # noqa: B018  (raises errors of operators now)
        return BackendRep(prepared)

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **keywords: Any) -> tuple[Any, ...]:
        """Return the outputs of a model; as `prepare`, then `BackendRep.run`."""
        return cls.prepare(model, device, **keywords).run(inputs)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **keywords: Any
    ) -> tuple[Any, ...]:
        """Return the outputs of a node.

        Parameters
        ----------
        node : onnx.NodeProto
        inputs : sequence of array_like, or mapping
            Of the inputs that the node names, in its order or by those names.
        device : str
            "CPU".
        outputs_info : sequence of (dtype, shape), optional
            Not needed.
        **keywords
            opset_version: of the node's domain; default: the newest that the onnx package has.
        """
        if not isinstance(node, onnx.NodeProto):
            raise ArgumentError(f"run_node: node is {type(node).__name__}; expected an onnx.NodeProto")
        label = node_label(node)
        names = list(dict.fromkeys(name for name in node.input if name))
        arrays = inputs if isinstance(inputs, Mapping) else dict(zip(names, _sequence(label, inputs), strict=False))
        if len(inputs) != len(names) or set(arrays) != set(names):
            raise ArgumentError(f"{label}: {len(inputs)} inputs were given; expected {len(names)}: {shown(names)}")
        given = {name: _tensor(label, name, arrays[name]) for name in names}
        helper = onnx.helper
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in given.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        opsets = {"": onnx.defs.onnx_opset_version()}
        version = keywords.get("opset_version", opsets.get(node.domain, 1))
        opsets[node.domain] = integer(label, "opset_version", version, 1, 2**31 - 1)
        model = helper.make_model(
            helper.make_graph([node], "node", infos, outputs),
            opset_imports=[helper.make_opsetid(domain, version) for domain, version in opsets.items()],
        )
        return cls.run_model(model, given, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether the device is a CPU."""
        return isinstance(device, str) and device.split(":", maxsplit=1)[0] == "CPU"


def _sequence(label: str, inputs: Any) -> list[Any]:
    """Return the inputs in order; a single array is the only input."""
    if isinstance(inputs, np.ndarray):
        return [inputs]
    if not isinstance(inputs, (list, tuple)):
        raise ArgumentError(f"{label}: inputs is {type(inputs).__name__}; expected a sequence or a mapping of arrays")
    return list(inputs)


def _tensor(label: str, name: str, value: Any) -> AnyArray:
    array = check.as_array(label, shown(name), value)
    try:
        onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    except (KeyError, ValueError):
        raise ArgumentError(f"{label}: {shown(name)} has dtype {array.dtype}, which ONNX does not have") from None
    return array


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
