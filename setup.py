"""The extension modules of pyrnnx; everything else stands in pyproject.toml.

PYRNNX_BUILD_DEBUG=1 builds with assertions, bounds checks and the address and undefined-behaviour sanitizers.
PYRNNX_BUILD_COVERAGE=1 builds with gcc's counters of lines that ran.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, PlatformError

DEBUG = os.environ.get("PYRNNX_BUILD_DEBUG", "0") not in ("", "0")
COVERAGE = os.environ.get("PYRNNX_BUILD_COVERAGE", "0") not in ("", "0")
NO_ASSERTIONS = [("NDEBUG", None), ("CYTHON_WITHOUT_ASSERTIONS", None)]
SANITIZERS = "-fsanitize=address,undefined"
KERNELS = "pyrnnx/_kernels"
QUIET = ["-Wno-psabi"]  # of vectors wider than registers: no function with one is called from another file
HEADERS = [str(path) for path in sorted(Path(KERNELS).rglob("*.h"))]
# Each module, and the C that is linked into it.
MODULES = {
    "tables": [],
    "engines": ["simd/dispatch.c", "simd/avx512.c", "simd/avx2.c", "simd/baseline.c", "simd/amx_model.c"],
    "blas.gemm": [],
    "blas.activations": [],
    "blas.rnn": [],
    "blas.gru": [],
    "blas.lstm": [],
    "blas.engine": [],
    "coding": [],
    "timeloop": [],
    "plan": ["threads/threads.c"],
    "matrices": [],
    "packed_layer": [],
}


def compile_args() -> list[str]:
    if sys.platform == "win32":
        return []
    if DEBUG:
        # Checks of memory in line, and the kinds left out, would take gcc minutes for each instruction set.
        calls = ["--param", "asan-instrumentation-with-call-threshold=0"]
        less = ["-fno-sanitize=null,object-size,pointer-overflow", "-fno-sanitize-recover=undefined"]
        return ["-O1", "-g1", *QUIET, "-fno-omit-frame-pointer", SANITIZERS, *less, *calls]
    if COVERAGE:
        return ["-O1", "-g0", *QUIET, "--coverage", "-fprofile-update=atomic"]  # threads count, too
    return ["-O3", "-g0", *QUIET]


extensions = [
    Extension(
        f"pyrnnx._kernels.{name}",
        [f"{KERNELS}/{name.replace('.', '/')}.pyx", *(f"{KERNELS}/{source}" for source in sources)],
        include_dirs=[KERNELS, np.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_1_23_API_VERSION"), *([] if DEBUG else NO_ASSERTIONS)],
        undef_macros=["NDEBUG"] if DEBUG else [],
        depends=HEADERS,
        extra_compile_args=compile_args(),
        extra_link_args=[SANITIZERS] if DEBUG else ["--coverage"] if COVERAGE else [],
    )
    for name, sources in MODULES.items()
]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": DEBUG,
}
INSTALL_COMPILER = {
    "darwin": "xcode-select --install",
    "win32": "the C++ workload of Visual Studio Build Tools",
}.get(sys.platform, "on Debian or Ubuntu `apt install build-essential python3-dev`, elsewhere gcc or clang")


class ModulesFirst(build):
    """A build that cannot compile stops before it has printed pages of other things."""

    sub_commands = sorted(build.sub_commands, key=lambda command: command[0] != "build_ext")


class Modules(build_ext):
    """Looks for a C compiler, translates Cython to C below the build folder, never beside its source, and compiles."""

    def build_extensions(self) -> None:
        self.try_compiler()
        translated = cythonize(self.extensions, compiler_directives=DIRECTIVES, build_dir=self.build_temp)
        sources = {extension.name: extension.sources for extension in translated}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        super().build_extensions()

    def try_compiler(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "program.c")
            program.write_text("#include <Python.h>\nint main(void) { return 0; }\n")
            try:
                self.compiler.compile([str(program)], output_dir=folder)
            except (CCompilerError, PlatformError) as error:
                raise SystemExit(
                    f"pyrnnx is built with a C compiler and Python's headers, which do not work here ({error}). "
                    f"Install them: {INSTALL_COMPILER}."
                ) from None


def options() -> dict[str, dict[str, object]]:
    """A build writes beside the sources, or, where it may not, into a folder that is gone afterwards."""
    found: dict[str, dict[str, object]] = {"build_ext": {"parallel": os.cpu_count()}}
    if not os.access(".", os.W_OK):
        scratch = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        found |= {"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}}
    return found


setup(
    options=options(),
    cmdclass={"build": ModulesFirst, "build_ext": Modules},
    ext_modules=extensions,
)
