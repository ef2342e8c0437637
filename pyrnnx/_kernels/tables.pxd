"""tables.h for Cython."""

cdef extern from "tables.h" nogil:
    enum:
        PYRNNX_ACTIVATION_COUNT
        PYRNNX_CELL_COUNT
        PYRNNX_MAX_FUNCTIONS

    enum:
        PYRNNX_PLAIN
        PYRNNX_LINEAR_BEFORE_RESET
        PYRNNX_COUPLED_FORGET
        PYRNNX_COUPLED_INPUT

    enum:
        PYRNNX_RNN
        PYRNNX_GRU
        PYRNNX_LSTM

    ctypedef struct ActivationRow "pyrnnx_activation_row":
        const char *name
        const char *formula
        double alpha
        double beta

    ctypedef struct CellRow "pyrnnx_cell_row":
        const char *name
        const char *gates
        int gate_count
        int variants
        int has_cell_state
        int function_count
        const int *functions

    const ActivationRow *ACTIVATION_ROWS "PYRNNX_ACTIVATION_ROWS"
    const CellRow *CELL_ROWS "PYRNNX_CELL_ROWS"
