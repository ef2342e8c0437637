"""The engines of this build, by instruction set, and the tables of tables.h for Python.

The index of a row of a table is its number in the kernels. ACTIVATIONS: (name, formula, alpha, beta); alpha and beta are
defaults, NaN if required, or None if the function has no such parameter. CELLS: (name, gates in ONNX order, names of the
default activations, has_cell_state).
"""

from libc.math cimport isinf

from pyrnnx._kernels.engine cimport Kernels, Matrices
from pyrnnx._kernels.parameters cimport (
    PYRNNX_MAX_CODES,
    PYRNNX_WEIGHTS_BFLOAT16,
    PYRNNX_WEIGHTS_CODES,
    PYRNNX_WEIGHTS_COUNT,
    PYRNNX_WEIGHTS_FULL,
    PYRNNX_WEIGHTS_INT8,
)
from pyrnnx._kernels.tables cimport (
    ACTIVATION_ROWS,
    CELL_ROWS,
    PYRNNX_ACTIVATION_COUNT,
    PYRNNX_CELL_COUNT,
    ActivationRow,
    CellRow,
)

cdef extern from "simd/simd.h" nogil:
    const Kernels *simd_kernels "pyrnnx_simd_kernels"(const char *isa, int itemsize)
    int simd_supported "pyrnnx_simd_supported"(const char *isa)

# Fastest first.
SIMD = ("amx", "avx512", "avx2", "neon")
# The kernels of "amx" for any machine, with a model of its matrices in C. Only in builds with PYRNNX_BUILD_MODEL (see
# setup.py), and never the default.
MODEL = "amx_model"
# The dtypes of packed W and R, and their numbers in the kernels; None: their own dtype.
WEIGHT_DTYPES = {None: PYRNNX_WEIGHTS_FULL, "bfloat16": PYRNNX_WEIGHTS_BFLOAT16, "int8": PYRNNX_WEIGHTS_INT8}
# The number of the type "codes with scales and zero points", and the most products of codes whose sum fits 32 bits.
CODES = PYRNNX_WEIGHTS_CODES
MAX_CODES = PYRNNX_MAX_CODES


cdef object default(double value):
    return None if isinf(value) else value


cdef tuple activation(const ActivationRow *row):
    return row.name.decode(), row.formula.decode(), default(row.alpha), default(row.beta)


cdef tuple cell(const CellRow *row):
    functions = [ACTIVATION_ROWS[row.functions[k]].name.decode() for k in range(row.function_count)]
    return row.name.decode(), row.gates.decode(), tuple(functions), bool(row.has_cell_state)


ACTIVATIONS = tuple([activation(&ACTIVATION_ROWS[k]) for k in range(PYRNNX_ACTIVATION_COUNT)])
CELLS = tuple([cell(&CELL_ROWS[k]) for k in range(PYRNNX_CELL_COUNT)])

cdef:
    const Kernels *BLAS_FLOAT = NULL
    const Kernels *BLAS_DOUBLE = NULL


def supported() -> tuple:
    """Return the instruction sets of the SIMD engine that this build and this processor support, fastest first."""
    return tuple(isa for isa in SIMD if simd_supported(isa.encode()))


def has_model() -> bool:
    """Return whether this build has the instruction set `MODEL`."""
    return bool(simd_supported(MODEL.encode()))


def packs(str isa not None, int itemsize, int weight_dtype) -> bool:
    """Return whether an engine can pack weights in a dtype, a number of `WEIGHT_DTYPES`."""
    cdef const Kernels *kernels = find_kernels(isa, itemsize)
    return 0 <= weight_dtype < PYRNNX_WEIGHTS_COUNT and bool(kernels.weight_dtypes >> weight_dtype & 1)


def multiplies_codes(str isa not None) -> bool:
    """Return whether an engine can pack float32 weights as `CODES`."""
    return find_kernels(isa, sizeof(float)).coding != NULL


cdef const Matrices *find_matrices(str isa, int itemsize) except? NULL:
    """Return the products of many rows of an instruction set, or NULL."""
    return find_kernels(isa, itemsize).matrices if isa in ("amx", MODEL) else NULL


cdef const Kernels *find_kernels(str isa, int itemsize) except NULL:
    """Return the kernels of "blas" or of a supported instruction set, for float32 (4) or float64 (8)."""
    cdef const Kernels *kernels = NULL
    if isa == "blas":
        import pyrnnx._kernels.blas.engine  # registers itself; imported late because it imports scipy.linalg

        kernels = BLAS_FLOAT if itemsize == 4 else BLAS_DOUBLE if itemsize == 8 else NULL
    elif isa in (*SIMD, MODEL) and simd_supported(isa.encode()):
        kernels = simd_kernels(isa.encode(), itemsize)
    if kernels == NULL:
        raise ValueError(f"no kernels for {isa} and elements of {itemsize} bytes")
    return kernels


cdef void register_blas(const Kernels *for_float, const Kernels *for_double) noexcept:
    global BLAS_FLOAT, BLAS_DOUBLE
    BLAS_FLOAT, BLAS_DOUBLE = for_float, for_double
