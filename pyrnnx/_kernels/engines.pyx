"""The engines of this build, by instruction set."""

cimport numpy as cnp
from libc.string cimport memset

from pyrnnx._kernels.engine cimport Kernels, Matrices
from pyrnnx._kernels.parameters cimport (
    PYRNNX_MAX_CODES,
    PYRNNX_WEIGHTS_BFLOAT16,
    PYRNNX_WEIGHTS_CODES,
    PYRNNX_WEIGHTS_COUNT,
    PYRNNX_WEIGHTS_FULL,
    PYRNNX_WEIGHTS_INT8,
    Activation,
    Parameters,
)
from pyrnnx._kernels.tables cimport PYRNNX_ACTIVATION_COUNT

cnp.import_array()

cdef extern from "simd/simd.h" nogil:
    const Kernels *simd_kernels "pyrnnx_simd_kernels"(const char *isa, int itemsize)
    int simd_supported "pyrnnx_simd_supported"(const char *isa)

cdef extern from *:
    """
    #ifdef NDEBUG
    #define PYRNNX_ASSERTIONS 0
    #else
    #define PYRNNX_ASSERTIONS 1
    #endif
    """
    const bint PYRNNX_ASSERTIONS

# True if this build asserts the preconditions of its kernels (PYRNNX_BUILD_DEBUG, see setup.py).
ASSERTIONS = bool(PYRNNX_ASSERTIONS)
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
    return packs_as(find_kernels(isa, itemsize), weight_dtype)


def multiplies_codes(str isa not None) -> bool:
    """Return whether an engine can pack float32 weights as `CODES`."""
    return find_kernels(isa, sizeof(float)).coding != NULL


cdef const Matrices *find_matrices(str isa, int itemsize) except? NULL:
    """Return the products of many rows of an instruction set, or NULL."""
    return find_kernels(isa, itemsize).matrices if isa in ("amx", MODEL) else NULL


cdef bint packs_as(const Kernels *kernels, int weight_dtype) noexcept:
    return 0 <= weight_dtype < PYRNNX_WEIGHTS_COUNT and (kernels.weight_dtypes >> weight_dtype) & 1


def activate(str isa not None, int number, double alpha, double beta, double clip, cnp.ndarray x not None,
             cnp.ndarray y not None):
    """Compute y := f(clip(x)) with an engine's kernel, for tests; `number` is the index of f in the table."""
    cdef:
        Parameters parameters
        cnp.ndarray array
        int itemsize = <int> cnp.PyArray_ITEMSIZE(x)
    for array in (x, y):
        # Not typed memory views: those of each float type take most of a module's time to compile.
        if array.dtype != x.dtype or array.dtype.char not in "fd" or not array.dtype.isnative or array.ndim != 1:
            raise ValueError("expected x and y of the same dtype, float32 or float64, with one axis")
        if not cnp.PyArray_IS_C_CONTIGUOUS(array) or cnp.PyArray_SIZE(array) != cnp.PyArray_SIZE(x):
            raise ValueError("expected x and y contiguous and of the same length")
    if not 0 <= number < PYRNNX_ACTIVATION_COUNT or not cnp.PyArray_ISWRITEABLE(y):
        raise ValueError("expected an index in the table of activation functions, and a writable y")
    memset(&parameters, 0, sizeof(parameters))
    parameters.itemsize, parameters.clip = itemsize, clip
    parameters.functions[0] = Activation(number, alpha, beta)
    if cnp.PyArray_SIZE(x):
        find_kernels(isa, itemsize).activate(&parameters, cnp.PyArray_DATA(x), cnp.PyArray_DATA(y), cnp.PyArray_SIZE(x))


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
