"""The extension modules of pyrnnx; everything else stands in pyproject.toml.

PYRNNX_BUILD_DEBUG=1 builds with assertions, bounds checks and the address and undefined-behaviour sanitizers.
"""

import os
import sys
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("PYRNNX_BUILD_DEBUG", "0") not in ("", "0")
NO_ASSERTIONS = [("NDEBUG", None), ("CYTHON_WITHOUT_ASSERTIONS", None)]
SANITIZERS = "-fsanitize=address,undefined"
KERNELS = "pyrnnx/_kernels"
HEADERS = [str(path) for path in sorted(Path(KERNELS).rglob("*.h"))]
# Each module, and the C that is linked into it.
MODULES = {
    "blas": [],
    "activations": [],
    "rnn": [],
    "gru": [],
    "lstm": [],
    "blas_engine": [],
    "engines": ["simd/dispatch.c", "simd/avx512.c", "simd/avx2.c", "simd/baseline.c"],
    "timeloop": [],
    "sequence": ["threads.c"],
}


def compile_args() -> list[str]:
    if sys.platform == "win32":
        return []
    if DEBUG:
        # Checks of memory as calls: in line, in the tiles of the SIMD engine, they take gcc minutes to compile.
        calls = ["--param", "asan-instrumentation-with-call-threshold=0"]
        return ["-O1", "-g1", "-fno-omit-frame-pointer", SANITIZERS, "-fno-sanitize-recover=undefined", *calls]
    return ["-O3", "-g0"]


extensions = [
    Extension(
        f"pyrnnx._kernels.{name}",
        [f"{KERNELS}/{name}.pyx", *(f"{KERNELS}/{source}" for source in sources)],
        include_dirs=[KERNELS, np.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_23_API_VERSION"), *([] if DEBUG else NO_ASSERTIONS)],
        undef_macros=["NDEBUG"] if DEBUG else [],
        depends=HEADERS,
        extra_compile_args=compile_args(),
        extra_link_args=[SANITIZERS] if DEBUG else [],
    )
    for name, sources in MODULES.items()
]

setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        extensions,
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": DEBUG,
        },
    ),
)
