"""storage.h for Cython."""

cdef extern from "storage.h" nogil:
    enum:
        NATIVE "PYRNNX_NATIVE"
        FLOAT16 "PYRNNX_FLOAT16"
        BFLOAT16 "PYRNNX_BFLOAT16"

    void widen "pyrnnx_widen"(int storage, size_t itemsize, const char *source, void *row, Py_ssize_t n)
    void narrow "pyrnnx_narrow"(int storage, size_t itemsize, const void *row, char *target, Py_ssize_t n)
