"""cell.h for Cython."""

cdef extern from "cell.h" nogil:
    enum:
        PYRNNX_RELU
        PYRNNX_TANH
        PYRNNX_SIGMOID
        PYRNNX_AFFINE
        PYRNNX_LEAKY_RELU
        PYRNNX_THRESHOLDED_RELU
        PYRNNX_SCALED_TANH
        PYRNNX_HARD_SIGMOID
        PYRNNX_ELU
        PYRNNX_SOFTSIGN
        PYRNNX_SOFTPLUS

    enum:
        PYRNNX_RNN
        PYRNNX_GRU
        PYRNNX_LSTM

    enum:
        PYRNNX_UNCOUPLED
        PYRNNX_COUPLED_FORGET
        PYRNNX_COUPLED_INPUT

    enum:
        PYRNNX_WEIGHTS_FULL
        PYRNNX_WEIGHTS_BFLOAT16
        PYRNNX_WEIGHTS_INT8

    ctypedef struct Activation "pyrnnx_activation":
        int kind
        double alpha
        double beta

    ctypedef struct Cell "pyrnnx_cell":
        int cell
        int linear_before_reset
        int coupling
        int weights
        double clip
        Activation f
        Activation g
        Activation h
        Py_ssize_t input_size
        Py_ssize_t hidden_size
        const void *W
        const void *R
        const void *bias
        const void *recurrent_bias
        const void *peepholes
