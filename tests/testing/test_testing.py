"""The public face of pyrnnx.testing: every name is there, and none of them is imported before it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pyrnnx.testing

CODE = """
import sys
import pyrnnx
before = set(sys.modules)
import pyrnnx.testing
print(sorted(set(sys.modules) - before))
print(set(pyrnnx.testing.__all__) <= set(dir(pyrnnx.testing)))
pyrnnx.testing.reference, pyrnnx.testing.cases, pyrnnx.testing.Case, pyrnnx.testing.random_cases(0, 3)
print([name for name in ("onnx", "torch", "hypothesis", "pytest", "ml_dtypes", "scipy") if name in sys.modules])
pyrnnx.testing.assert_same
print([name for name in ("onnx", "torch", "hypothesis", "pytest", "ml_dtypes", "scipy") if name in sys.modules])
"""


def test_the_names_are_there() -> None:
    for name in pyrnnx.testing.__all__:
        assert getattr(pyrnnx.testing, name) is not None
        assert name in dir(pyrnnx.testing)
    assert pyrnnx.testing.CASES is pyrnnx.testing.cases.CASES
    with pytest.raises(AttributeError, match=r"module 'pyrnnx\.testing' has no attribute 'missing'"):
        pyrnnx.testing.missing  # noqa: B018


def test_nothing_is_imported_early() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['pyrnnx.testing']", "True", "[]", "[]"]
