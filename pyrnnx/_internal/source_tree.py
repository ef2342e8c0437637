"""A clear error for imports from a source tree that is not installed, instead of one about a missing module."""

from importlib.util import find_spec
from pathlib import Path

if find_spec("pyrnnx._kernels.engines") is None or find_spec("pyrnnx.frontends") is None:
    raise ImportError(
        f"pyrnnx is being imported from its source tree, {Path(__file__).parents[2]}, which is not installed for this "
        'Python. Install it there with `python -m pip install -e ".[onnx,cli]"`; or, if a pyrnnx is installed already, '
        "start Python in another folder."
    )
