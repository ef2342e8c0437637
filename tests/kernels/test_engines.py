"""The choice of an instruction set by the environment."""

from __future__ import annotations

import pytest
from rows import each_row

from pyrnnx import ArgumentError, config
from pyrnnx._kernels import engines

CHOSEN = {"PYRNNX_ENGINE": ("blas", "SIMD", "cuda"), "PYRNNX_ISA": (*engines.supported(), "avx1024")}


@each_row(("variable", "value"), [(name, value) for name, values in CHOSEN.items() for value in values])
def test_the_environment_chooses(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CHOSEN:
        monkeypatch.delenv(name, raising=False)
    default = config._choose_isa()
    monkeypatch.setenv(variable, value)
    if value in ("cuda", "avx1024"):
        with pytest.raises(ArgumentError, match=f"environment variable {variable} is {value!r}; expected one of"):
            config._choose_isa()
    elif value != "SIMD" or engines.supported():
        assert config._choose_isa() == (default if value == "SIMD" else value)


@pytest.mark.skipif(not engines.supported(), reason="this build has only BLAS")
def test_a_build_without_the_model_of_matrices_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYRNNX_ENGINE", raising=False)
    monkeypatch.setenv("PYRNNX_ISA", engines.MODEL)
    monkeypatch.setattr(engines, "has_model", lambda: False)
    with pytest.raises(ArgumentError, match=r"PYRNNX_ISA is 'amx_model'.*build pyrnnx with PYRNNX_BUILD_MODEL=1"):
        config._choose_isa()
    monkeypatch.setattr(engines, "has_model", lambda: True)
    assert config._choose_isa() == engines.MODEL
