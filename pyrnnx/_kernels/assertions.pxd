"""assert of C, where there is no Python to raise: the process ends. In a debug build alone; NDEBUG is defined elsewhere.

Ask one function, and nothing else: what stands around the call would be computed in every build.
"""

cdef extern from "assert.h" nogil:
    void debug_assert "assert"(bint holds)
