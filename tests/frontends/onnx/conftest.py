"""Selection of the tests that need no ONNX Runtime, if it is not installed."""

from __future__ import annotations

try:
    import onnxruntime  # noqa: F401
except ImportError:  # whole models need it
    collect_ignore_glob = [
        *("exports/*", "graph/*", "passes/*", "recognise/*", "streams/*", "writing/*"),
        *("operators/test_doors.py", "test_backend.py", "test_external.py"),
        *("test_model*.py", "test_programs.py"),
    ]
