"""Write the bundled models: one small bidirectional RNN as ONNX model, as OpenVINO layer, and as OpenVINO IR."""

from pathlib import Path

import numpy as np
import onnx
from lxml import etree
from onnx import TensorProto, helper, numpy_helper

from pyrnnx.frontends.openvino import write_model

HERE = Path(__file__).parent
T, N, D, I, H = 6, 2, 2, 4, 8


def onnx_model() -> onnx.ModelProto:
    rng = np.random.default_rng(2026)
    shapes = {"W": (D, H, I), "R": (D, H, H), "B": (D, 2 * H)}
    weights = {name: rng.uniform(-0.4, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    inputs = ["X", "W", "R", "B", "sequence_lens", "initial_h"]
    node = helper.make_node(
        "RNN", inputs, ["Y", "Y_h"], name="small_rnn", hidden_size=H, direction="bidirectional", clip=3.0
    )
    graph = helper.make_graph(
        [node],
        "small_rnn",
        [
            helper.make_tensor_value_info("X", TensorProto.FLOAT, [T, N, I]),
            helper.make_tensor_value_info("sequence_lens", TensorProto.INT32, [N]),
            helper.make_tensor_value_info("initial_h", TensorProto.FLOAT, [D, N, H]),
        ],
        [
            helper.make_tensor_value_info("Y", TensorProto.FLOAT, [T, D, N, H]),
            helper.make_tensor_value_info("Y_h", TensorProto.FLOAT, [D, N, H]),
        ],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def xml_layer() -> etree._Element:
    layer = etree.Element("layer", id="0", name="small_rnn", type="RNNSequence", version="opset5")
    etree.SubElement(layer, "data", direction="bidirectional", hidden_size=str(H), activations="tanh", clip="3")
    ports = iter(range(8))
    for kind, shapes in (
        ("input", [(N, T, I), (N, D, H), (N,), (D, H, I), (D, H, H), (D, H)]),
        ("output", [(N, D, T, H), (N, D, H)]),
    ):
        parent = etree.SubElement(layer, kind)
        for shape in shapes:
            precision = "I32" if shape == (N,) else "FP32"
            port = etree.SubElement(parent, "port", id=str(next(ports)), precision=precision)
            for size in shape:
                etree.SubElement(port, "dim").text = str(size)
    return layer


if __name__ == "__main__":
    onnx.save(onnx_model(), HERE / "small_rnn.onnx")
    etree.indent(layer := xml_layer(), space="    ")
    (HERE / "small_rnn.xml").write_bytes(etree.tostring(layer) + b"\n")
    write_model(HERE / "small_rnn.onnx", HERE / "small_model.xml")
