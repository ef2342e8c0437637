"""Reading an IR and running its layers imports neither onnx nor the front-end of ONNX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino_nets as nets


def test_onnx_is_not_imported(tmp_path: Path) -> None:
    xml, weights = nets.lstm_net()
    (tmp_path / "model.xml").write_text(xml)
    (tmp_path / "model.bin").write_bytes(weights)
    arrays: dict[str, Any] = nets.lstm_inputs()
    np.savez(tmp_path / "inputs.npz", **arrays)
    code = f"""
import sys
import numpy as np
from pyrnnx import load
from pyrnnx.frontends.openvino import lstm_sequence, to_onnx, write_layer
model = load({str(tmp_path / "model.xml")!r})
outputs = model.layers["lstm"](*np.load({str(tmp_path / "inputs.npz")!r}).values())
assert abs(outputs[0]).max() > 0
write_layer(next(iter(model.net.recurrent.values())))
print([name for name in sys.modules if name.split(".")[0] == "onnx" or name.startswith("pyrnnx.frontends.onnx")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
