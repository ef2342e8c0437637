"""Selection of the tests that need no ONNX Runtime, if it is not installed."""

from __future__ import annotations

try:
    import onnxruntime  # noqa: F401
except ImportError:  # whole models need it
    collect_ignore_glob = [
        *("passes/*", "graph/*", "test_backend.py", "test_clip.py", "test_differential.py", "test_doors.py"),
        *("test_external.py", "test_large.py", "test_model*.py", "test_plan.py", "test_programs.py"),
        *("test_real_models.py", "test_write_model.py"),
    ]
