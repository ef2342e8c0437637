"""The time loop, which runs all time steps of a row block of one direction."""

from pyrnnx._kernels.blocks cimport Block


cdef void set_share(Block *b, int rank, int team_size) noexcept nogil
cdef bint begin_block(Block *b) noexcept nogil
cdef bint run_steps(Block *b) noexcept nogil
