"""The extension modules of pyrnnx; everything else is configured in pyproject.toml.

PYRNNX_BUILD_MODEL=1 adds the instruction set "amx_model", a model of AMX in C for tests on any machine.
PYRNNX_BUILD_DEBUG=1 builds with assertions, bounds checks and the address and undefined-behaviour sanitizers;
PYRNNX_BUILD_DEBUG=thread with ThreadSanitizer instead.
PYRNNX_BUILD_COVERAGE=1 builds with gcc's counters of executed lines.

build/objects caches objects: a file is compiled again only if its code, the compiler or its flags changed.
"""

import atexit
import functools
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, PlatformError


def switched_on(name: str) -> bool:
    return os.environ.get(name, "0") not in ("", "0")


DEBUG = switched_on("PYRNNX_BUILD_DEBUG")
COVERAGE = switched_on("PYRNNX_BUILD_COVERAGE")
MODEL = switched_on("PYRNNX_BUILD_MODEL")
MACROS = [
    ("NPY_NO_DEPRECATED_API", "NPY_1_23_API_VERSION"),
    *([] if DEBUG else [("NDEBUG", None), ("CYTHON_WITHOUT_ASSERTIONS", None)]),
    *([("PYRNNX_BUILD_MODEL", None)] if MODEL else []),
]
SANITIZERS = f"-fsanitize={'thread' if os.environ.get('PYRNNX_BUILD_DEBUG') == 'thread' else 'address,undefined'}"
KERNELS = "pyrnnx/_kernels"
REPOSITORY = "https://github.com/pyrnnx/pyrnnx"
QUIET = ["-Wno-psabi"]  # functions with vectors wider than registers are not called from other files
STRIPPED = ["-s"] if sys.platform == "linux" else []  # without the names of C functions: smaller wheels
CACHE_DAYS = 30  # unused objects are deleted after this
# Each module and the C files linked into it, longest to compile first.
MODULES = {
    "engines": [
        "simd/avx512.c",
        "simd/avx2.c",
        "simd/neon.c",
        "simd/avx512_double.c",
        "simd/dispatch.c",
    ],
    "packed_layer": [],
    "timeloop": [],
    "operands": [],
    "plan": ["threads/threads.c"],
    "pipeline": [],
    "entries": [],
    "digest": [],
    "blas.engine": [],
    "calls": [],
    "declared": [],
    "onnxruntime.runtime": [],
    "onnxruntime.inference": [],
    "onnxruntime.recurrent": [],
    "onnxruntime.functions": [],
    "onnxruntime.unfold": [],
    "onnxruntime.operators": ["onnxruntime/register.c"],
}
if MODEL:
    MODULES["engines"].insert(0, "simd/amx_model.c")
# Compile time matters more than speed in the model; size in modules that check and pass arguments, which -O3 makes no
# faster. Short calls and pushes spend their time in packed_layer and entries, which are not among them.
MORE_ARGUMENTS = {"amx_model.c": ["-O1"]}
if not (DEBUG or COVERAGE or sys.platform == "win32"):
    SMALL = ["engines", "plan", "pipeline", "calls", "declared"]
    SMALL += [name.rpartition(".")[2] for name in MODULES if name.startswith("onnxruntime.")]
    MORE_ARGUMENTS |= {f"{name}.c": ["-Os"] for name in SMALL}


def compile_args() -> list[str]:
    if sys.platform == "win32":
        return []
    if DEBUG:
        # Inline memory checks, and the checks disabled here, would take gcc minutes for each instruction set.
        calls = ["--param", "asan-instrumentation-with-call-threshold=0"]
        disabled = ["-fno-sanitize=null,object-size,pointer-overflow", "-fno-sanitize-recover=undefined"]
        # Python's own -fwrapv makes the checks take gcc three times as long.
        return ["-O1", "-g1", "-fno-wrapv", *QUIET, "-fno-omit-frame-pointer", SANITIZERS, *disabled, *calls]
    if COVERAGE:
        return ["-O1", "-g0", *QUIET, "--coverage", "-fprofile-update=atomic"]  # counters are thread-safe
    return ["-O3", "-g0", "-fno-asynchronous-unwind-tables", *QUIET]


extensions = [
    Extension(
        f"pyrnnx._kernels.{name}",
        [f"{KERNELS}/{name.replace('.', '/')}.pyx", *(f"{KERNELS}/{source}" for source in sources)],
        define_macros=MACROS,
        undef_macros=["NDEBUG"] if DEBUG else [],
        extra_compile_args=compile_args(),
        extra_link_args=[SANITIZERS] if DEBUG else ["--coverage"] if COVERAGE else STRIPPED,
    )
    for name, sources in MODULES.items()
]

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "cdivision": True,
    "binding": False,  # functions of Cython's own class would take 14 kB in each module
    "embedsignature": True,
    "embedsignature.format": "clinic",
    "auto_pickle": False,
    "initializedcheck": DEBUG,
    "freethreading_compatible": True,
}
# Program of a process that translates some of the modules: its arguments are a folder and names with their sources.
TRANSLATE = f"""
import sys
from Cython.Build import cythonize
from setuptools import Extension

modules = [Extension(name, [source]) for name, source in zip(sys.argv[2::2], sys.argv[3::2])]
cythonize(modules, compiler_directives={DIRECTIVES}, build_dir=sys.argv[1], force=True, quiet=True)
"""
SYSTEM_INCLUDES = "#include <math.h>\n#include <stdlib.h>\n"
PYTHON = "python{}.{}".format(*sys.version_info)
# What to install: {platform: (compiler, headers of Python)}; Linux is the default.
INSTALL = {
    "darwin": ("`xcode-select --install`", "Python from python.org, Homebrew or conda, which have them"),
    "win32": ("the C++ workload of Visual Studio Build Tools", "Python from python.org, which has them"),
}.get(
    sys.platform,
    (
        "`apt install build-essential` (Debian, Ubuntu) or `dnf install gcc` (Fedora, RHEL)",
        f"`apt install {PYTHON}-dev` (Debian, Ubuntu) or `dnf install {PYTHON}-devel` (Fedora, RHEL)",
    ),
)


class ModulesFirst(build):
    """The build command with build_ext first, so that an error of the compiler is not below pages of output."""

    sub_commands = sorted(build.sub_commands, key=lambda command: command[0] != "build_ext")


class Modules(build_ext):
    """The build of all modules with one pool of threads: Cython to C, C to objects, objects to modules."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            # Python started in the folder that contains the clone takes the clone for a namespace package, and does not
            # ask setuptools' finder. A real package has precedence, wherever it is in sys.path.
            Path(self.get_finalized_command("install").install_lib, "pyrnnx.pth").write_text(f"{Path.cwd()}\n", "utf-8")

    def build_extensions(self) -> None:
        import numpy as np  # late: pip runs this file several times, not only to build

        self.try_compiler()
        self.cache = Path(self.get_finalized_command("build").build_base, "objects")
        self.headers = [KERNELS, np.get_include()]
        with ThreadPoolExecutor(self.parallel or os.cpu_count()) as pool:
            try:
                self.build_in(pool)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        self.delete_unused()

    def build_in(self, pool: ThreadPoolExecutor) -> None:
        translated = pool.submit(self.translate)
        objects = {
            source: pool.submit(self.compile, extension, source)
            for extension in self.extensions
            for source in extension.sources[1:]
        }
        folder = translated.result()
        for extension in self.extensions:
            source = str(Path(folder, extension.sources[0]).with_suffix(".c"))
            objects[extension.sources[0]] = pool.submit(self.compile, extension, source)
        # The pool starts tasks in order, so a link never waits for an object whose task has not started.
        list(pool.map(lambda extension: self.link(extension, objects), self.extensions))

    def translate(self) -> Path:
        """Translate Cython to C and return the folder of the results, which have the paths of their sources."""
        import numpy as np
        from Cython import __version__

        sources = sorted([*Path(KERNELS).rglob("*.pyx"), *Path(KERNELS).rglob("*.pxd")])
        declarations = sorted(Path(np.__file__).parent.glob("*.pxd"))
        digest = hashlib.sha256(f"{__version__} {DIRECTIVES} {[*map(str, sources)]}".encode())
        for path in (*sources, *declarations, Path(__file__)):
            digest.update(hashlib.sha256(path.read_bytes()).digest())

        def write(folder: Path) -> None:
            modules = [(extension.name, extension.sources[0]) for extension in self.extensions]
            modules.sort(key=lambda module: os.path.getsize(module[1]), reverse=True)
            count = self.parallel or os.cpu_count() or 1
            commands = [
                [sys.executable, "-c", TRANSLATE, str(folder), *itertools.chain(*modules[first::count])]
                for first in range(min(count, len(modules)))
            ]
            processes = [subprocess.Popen(command) for command in commands]
            statuses = [process.wait() for process in processes]  # of all: none may write when this returns
            if any(statuses):
                raise SystemExit("Cython cannot translate pyrnnx: see the errors above")
            for header in folder.rglob("*.h"):  # outdated copies would be included instead of changed headers
                header.unlink()

        return self.cached(f"cython-{digest.hexdigest()}", write, True)

    def compile(self, extension: Extension, source: str) -> str:
        """Compile a C file and return the path of its object."""
        macros = [*extension.define_macros, *((name,) for name in extension.undef_macros)]
        arguments = [*extension.extra_compile_args, *MORE_ARGUMENTS.get(Path(source).name, [])]

        def write(folder: Path) -> None:
            # Older setuptools do not create again a folder that they created before and that was deleted since.
            for target in self.compiler.object_filenames([source], output_dir=str(folder)):
                Path(target).parent.mkdir(parents=True, exist_ok=True)
            self.compiler.compile(
                [source],
                output_dir=str(folder),
                macros=macros,
                include_dirs=self.headers,
                debug=self.debug,
                extra_postargs=arguments,
            )

        name, reusable = Path(source).stem, self.is_cached()
        if reusable:
            name += f"-{self.digest(source, macros, arguments)}"
        [path] = self.cached(name, write, reusable).rglob(f"*{self.compiler.obj_extension}")
        return str(path)

    def digest(self, source: str, macros: list[tuple[str | None, ...]], arguments: list[str]) -> str:
        """Return a digest of the preprocessed source (with its headers), the compiler and its flags."""
        # Warnings do not change objects, and each version of Python has others; -Wa and -Wp are passed on.
        flags = (*self.compiler.compiler_so, *arguments)
        command = [flag for flag in flags if not flag.startswith("-W") or flag.startswith(("-Wa,", "-Wp,"))]
        defined = [
            f"-U{name}" if not value else f"-D{name}" if value[0] is None else f"-D{name}={value[0]}"
            for name, *value in (*self.compiler.macros, *macros)
        ]
        included = [f"-I{folder}" for folder in (*self.headers, *self.compiler.include_dirs)]
        # An error here is ignored because compiling the source reports it.
        text = subprocess.run([*command, *defined, *included, "-E", "-P", source], capture_output=True, check=False)
        program = os.stat(shutil.which(command[0]) or command[0])
        digest = hashlib.sha256(f"{command} {program.st_size} {program.st_mtime_ns}".encode())
        digest.update(compiler_version(*command))
        digest.update(text.stdout.replace(source.encode(), b""))  # Cython's C contains its path
        return digest.hexdigest()

    def is_cached(self) -> bool:
        """Return whether objects are cached: only without paths and line numbers, and of Unix compilers."""
        return self.compiler.compiler_type == "unix" and not (DEBUG or COVERAGE or self.debug)

    def cached(self, name: str, write: Callable[[Path], None], reusable: bool) -> Path:
        """Return a folder, filled by `write` if it is not in the cache, or not reusable."""
        folder = self.cache / name
        if not reusable:
            folder = Path(self.build_temp, name)
            shutil.rmtree(folder, ignore_errors=True)
            write(folder)
        elif not folder.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self.cache) as scratch:
                complete = Path(scratch, "complete")
                write(complete)
                try:
                    complete.rename(folder)
                except OSError:
                    if not folder.exists():  # otherwise another build wrote it first
                        raise
        os.utime(folder)
        return folder

    def delete_unused(self) -> None:
        """Delete cached objects that no build has used for CACHE_DAYS."""
        for folder in self.cache.glob("*"):
            if time.time() - folder.stat().st_mtime > CACHE_DAYS * 24 * 3600:
                shutil.rmtree(folder, ignore_errors=True)

    def link(self, extension: Extension, objects: dict[str, Future[str]]) -> None:
        self.compiler.link_shared_object(
            [objects[source].result() for source in extension.sources],
            self.get_ext_fullpath(extension.name),
            libraries=self.get_libraries(extension),
            extra_postargs=extension.extra_link_args,
            export_symbols=self.get_export_symbols(extension),
            debug=self.debug,
            build_temp=self.build_temp,
            target_lang="c",
        )

    def try_compiler(self) -> None:
        """Exit with one line that says what to install if there is no working compiler or no Python.h."""
        compiler, headers = INSTALL
        if error := self.error_of(SYSTEM_INCLUDES):
            raise SystemExit(f"pyrnnx needs a C compiler ({error}); install one: {compiler}")
        if error := self.error_of(f"{SYSTEM_INCLUDES}#include <Python.h>\n"):
            raise SystemExit(f"pyrnnx needs the headers of {PYTHON} ({error}); install them: {headers}")

    def error_of(self, program: str) -> str:
        """Return the first line of the compiler's error about a program without functions; "" if it compiles."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "program.c")
            source.write_text(f"{program}extern int number;\n")
            if self.compiler.compiler_type != "unix":
                try:
                    self.compiler.compile([str(source)], output_dir=folder)
                except (CCompilerError, PlatformError) as error:
                    return str(error)
                return ""
            included = [f"-I{include}" for include in self.compiler.include_dirs]
            command = [*self.compiler.compiler_so, *included, "-c", str(source), "-o", str(Path(folder, "program.o"))]
            try:
                done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            except OSError as error:
                return f"{command[0]}: {error.strerror}"
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        return (lines or [f"{command[0]} returned {done.returncode}"])[0] if done.returncode else ""


@functools.cache
def compiler_version(*command: str) -> bytes:
    # An error here is ignored because compiling the source reports it.
    return subprocess.run([*command, "-v", "-E", "-x", "c", os.devnull], capture_output=True, check=False).stderr


def readme() -> str:
    """Return README.md with absolute links for a package index."""
    text = re.sub(r"(?<=\]\()(?=[\w/]+\.md\))", f"{REPOSITORY}/blob/main/", Path("README.md").read_text("utf-8"))
    return re.sub(r"(?<=\]\()(?=[\w/]+\.svg\))", f"{REPOSITORY}/raw/main/", text)


def options() -> dict[str, dict[str, object]]:
    """Return no options, or if the source folder is read-only, options to build in a temporary folder."""
    if os.access(".", os.W_OK):
        return {}
    scratch = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return {"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}}


setup(
    options=options(),
    cmdclass={"build": ModulesFirst, "build_ext": Modules},
    ext_modules=extensions,
    long_description=readme(),
    long_description_content_type="text/markdown",
)
