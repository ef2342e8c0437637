"""parameters.h for Cython."""

cdef extern from "parameters.h" nogil:
    enum:
        PYRNNX_WEIGHTS_FULL
        PYRNNX_WEIGHTS_BFLOAT16
        PYRNNX_WEIGHTS_INT8
        PYRNNX_WEIGHTS_CODES
        PYRNNX_WEIGHTS_COUNT
        PYRNNX_MAX_CODES
        PYRNNX_DOT_COUNT

    ctypedef struct QuantizedWeights "pyrnnx_quantized_weights":
        const signed char *codes
        const float *scale
        const int *zero_point

    ctypedef struct Activation "pyrnnx_activation":
        int number
        double alpha
        double beta

    ctypedef struct Parameters "pyrnnx_parameters":
        int cell
        int variant
        int itemsize
        int weight_dtype
        int dot
        double clip
        Activation *functions
        Py_ssize_t input_size
        Py_ssize_t hidden_size
        const void *W
        const void *R
        bint finite_R
        const void *bias
        const void *recurrent_bias
        const void *peepholes
        const void *split_W
        const void *split_R
