"""The tables of tables.h for Python; the index of a row is its number in the kernels.

ACTIVATIONS: (name, formula, alpha, beta); alpha and beta are defaults, NaN if required, or None if the function has no
such parameter. CELLS: (name, gates in ONNX order, names of the default activations, has_cell_state).
"""

from libc.math cimport isinf


cdef object default(double value):
    return None if isinf(value) else value


cdef str name_of(int function):
    return ACTIVATION_ROWS[function].name.decode()


cdef tuple activation(const ActivationRow *row):
    return row.name.decode(), row.formula.decode(), default(row.alpha), default(row.beta)


cdef tuple cell(const CellRow *row):
    functions = [name_of(row.functions[k]) for k in range(row.function_count)]
    return row.name.decode(), row.gates.decode(), tuple(functions), bool(row.has_cell_state)


ACTIVATIONS = tuple([activation(&ACTIVATION_ROWS[k]) for k in range(PYRNNX_ACTIVATION_COUNT)])
CELLS = tuple([cell(&CELL_ROWS[k]) for k in range(PYRNNX_CELL_COUNT)])
