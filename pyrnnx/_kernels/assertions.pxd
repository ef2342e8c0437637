"""C's assert for code without Python, which ends the process; debug builds only, all others define NDEBUG.

The argument must be one call: other expressions would be computed in every build.
"""

cdef extern from "assert.h" nogil:
    void debug_assert "assert"(bint holds)
