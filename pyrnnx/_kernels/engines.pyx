"""The engines of this build, by instruction set."""

from cython cimport floating
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

# Whether this build checks, beside all else, what its kernels ask of their callers (PYRNNX_BUILD_DEBUG, see setup.py).
ASSERTIONS = bool(PYRNNX_ASSERTIONS)
# Fastest first.
SIMD = ("amx", "avx512", "avx2", "baseline")
# Never chosen by itself: the same kernels as "amx", for any machine, with what its matrices compute in C.
MODELS = ("amx_model",)
BY_MATRICES = ("amx", *MODELS)
# The dtypes that W and R may be packed in, and their numbers in the kernels; None: their own.
WEIGHT_DTYPES = {None: PYRNNX_WEIGHTS_FULL, "bfloat16": PYRNNX_WEIGHTS_BFLOAT16, "int8": PYRNNX_WEIGHTS_INT8}
# The number of codes with a scale and a zero point, and the most terms of their products, which are summed in 32 bits.
CODES = PYRNNX_WEIGHTS_CODES
MAX_CODES = PYRNNX_MAX_CODES

cdef:
    const Kernels *BLAS_FLOAT = NULL
    const Kernels *BLAS_DOUBLE = NULL


def supported() -> tuple:
    """The instruction sets of the SIMD engine that this build has and this processor can run, fastest first."""
    return tuple(isa for isa in SIMD if simd_supported(isa.encode()))


def packs(str isa not None, int itemsize, int weight_dtype) -> bool:
    """Whether an engine has weights in that dtype, a number of `WEIGHT_DTYPES`."""
    return packs_as(find_kernels(isa, itemsize), weight_dtype)


def multiplies_codes(str isa not None) -> bool:
    """Whether an engine has weights as `CODES`, of float32."""
    return find_kernels(isa, sizeof(float)).coding != NULL


cdef const Matrices *find_matrices(str isa, int itemsize) except? NULL:
    """What multiplies many rows with that instruction set; NULL: its kernels alone."""
    return find_kernels(isa, itemsize).matrices if isa in BY_MATRICES else NULL


cdef bint packs_as(const Kernels *kernels, int weight_dtype) noexcept:
    return 0 <= weight_dtype < PYRNNX_WEIGHTS_COUNT and (kernels.weight_dtypes >> weight_dtype) & 1


def activate(str isa not None, int number, double alpha, double beta, double clip, const floating[::1] x not None,
             floating[::1] y not None):
    """y := f(clip(x)) by an engine's kernel; `number` is that of f's row in the table. For tests and benchmarks."""
    cdef Parameters parameters
    if not 0 <= number < PYRNNX_ACTIVATION_COUNT or x.shape[0] != y.shape[0]:
        raise ValueError("expected a number of the table of activation functions, and x and y of one length")
    memset(&parameters, 0, sizeof(parameters))
    parameters.itemsize, parameters.clip = sizeof(floating), clip
    parameters.functions[0] = Activation(number, alpha, beta)
    if x.shape[0]:
        find_kernels(isa, sizeof(floating)).activate(&parameters, &x[0], &y[0], x.shape[0])


cdef const Kernels *find_kernels(str isa, int itemsize) except NULL:
    """The kernels of "blas" or of an instruction set that this processor has, for float32 (4) or float64 (8)."""
    cdef const Kernels *kernels = NULL
    if isa == "blas":
        import pyrnnx._kernels.blas.engine  # registers itself; late, for it imports scipy.linalg

        kernels = BLAS_FLOAT if itemsize == 4 else BLAS_DOUBLE if itemsize == 8 else NULL
    elif isa in SIMD + MODELS and simd_supported(isa.encode()):
        kernels = simd_kernels(isa.encode(), itemsize)
    if kernels == NULL:
        raise ValueError(f"no kernels for {isa} and elements of {itemsize} bytes")
    return kernels


cdef void register_blas(const Kernels *for_float, const Kernels *for_double) noexcept:
    global BLAS_FLOAT, BLAS_DOUBLE
    BLAS_FLOAT, BLAS_DOUBLE = for_float, for_double
