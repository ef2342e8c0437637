"""Cases as ONNX nodes and models; requires onnx."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from pyrnnx.testing.cases import INPUTS, OUTPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, numpy_dtype, tolerance_of

IR_VERSION = 10  # of the files: what ONNX Runtime has read for long


def make_node(case: Case, names: Collection[str]) -> onnx.NodeProto:
    """Return the case as a node with the operator text's names of outputs, and of inputs in `names`."""
    inputs = [name if name in names else "" for name in INPUTS[case.operator]]
    while not inputs[-1]:
        inputs.pop()
    attributes = {key: value for key, value in case.attributes.items() if value != []}  # a node cannot store them
    return onnx.helper.make_node(case.operator, inputs, list(OUTPUTS[case.operator]), **attributes)


def make_model(case: Case, arrays: Mapping[str, Array], constants: Collection[str] = ()) -> onnx.ModelProto:
    """Return the case as a one-node model; arrays are graph inputs, those in `constants` initializers."""
    node = make_node(case, list(arrays))
    dtype, shapes = numpy_dtype(case.dtype), case.shapes()
    types = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    types |= {name: (dtype, shapes[name]) for name in OUTPUTS[case.operator]}
    infos = {
        name: onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(dtype), shape)
        for name, (dtype, shape) in types.items()
    }
    graph_inputs = [name for name in arrays if name not in constants]
    inputs, outputs = ([infos[name] for name in names] for names in (graph_inputs, OUTPUTS[case.operator]))
    held = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items() if name in constants]
    graph = onnx.helper.make_graph([node], case.name, inputs, outputs, held)
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", case.opset)], ir_version=IR_VERSION
    )


def write_backend_test(
    case: Case,
    folder: str | Path,
    arrays: Mapping[str, Array] | None = None,
    outputs: Sequence[Array] | None = None,
) -> Path:
    """Write the case as onnx.backend.test loads it: model.onnx, its tolerances in data.json, and a set of data.

    Inputs are by default those of `make_arrays`, outputs the oracle's, rounded to the case's dtype; `outputs=()` writes
    none. Return the folder of the data, test_data_set_0: input_0.pb and so on by the inputs of the graph, then
    output_0.pb.
    """
    arrays = make_arrays(case) if arrays is None else arrays
    if outputs is None:
        with np.errstate(over="ignore"):  # numbers beyond the range of the dtype are infinities
            outputs = [output.astype(numpy_dtype(case.dtype)) for output in expected_outputs(case, arrays)]
    data = Path(folder, "test_data_set_0")
    data.mkdir(parents=True, exist_ok=True)
    model = make_model(case, arrays)
    Path(folder, "model.onnx").write_bytes(model.SerializeToString())
    tolerance = tolerance_of(case.dtype)
    Path(folder, "data.json").write_text(json.dumps({"rtol": tolerance, "atol": tolerance}) + "\n", encoding="utf-8")
    tensors = {"input": arrays, "output": dict(zip(OUTPUTS[case.operator], outputs, strict=False))}
    for kind, named in tensors.items():
        for place, (name, array) in enumerate(named.items()):
            tensor = onnx.numpy_helper.from_array(array, name)
            (data / f"{kind}_{place}.pb").write_bytes(tensor.SerializeToString())
    return data


def read_tensor(path: str | Path) -> Array:
    """Read the array of a file that `write_backend_test` wrote."""
    array: Array = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(Path(path).read_bytes()))
    return array
