"""The weights of a layer once more, split for the processor's matrices at the first call that wants them."""

from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    PyThread_type_lock,
    WAIT_LOCK,
)
from libc.stdlib cimport free, malloc

from os import getpid

from pyrnnx._kernels.plan cimport ALIGNMENT, round_up


cdef SplitWeights split_weights(const Matrices *matrices, Parameters *parameters, int directions):
    cdef SplitWeights made = SplitWeights.__new__(SplitWeights)
    made.matrices, made.parameters, made.directions = matrices, parameters, directions
    return made


cdef class SplitWeights:
    """W and R of all directions, once more: made once, by one thread, while other Python threads go on."""

    def __dealloc__(self):
        free(self.memory)
        if self.lock != NULL:
            PyThread_free_lock(<PyThread_type_lock> self.lock)

    cdef Py_ssize_t size(self, int direction, int recurrent) noexcept nogil:
        return round_up(self.matrices.packed_size(&self.parameters[direction], recurrent), ALIGNMENT)

    cdef bint split(self) noexcept nogil:
        """Whether there was room for it."""
        cdef:
            Py_ssize_t total = ALIGNMENT
            char *memory
            char *at
            int d, recurrent
        for d in range(self.directions):
            total += self.size(d, 0) + self.size(d, 1)
        memory = <char *> malloc(total)
        if memory == NULL:
            return False
        at = <char *> round_up(<Py_ssize_t> memory, ALIGNMENT)
        for d in range(self.directions):
            self.parameters[d].split_W, self.parameters[d].split_R = at, at + self.size(d, 0)
            for recurrent in range(2):
                if not self.matrices.pack_weights(&self.parameters[d], recurrent, at):
                    free(memory)
                    self.state = IMPOSSIBLE
                    return True
                at += self.size(d, recurrent)
        self.memory, self.state = memory, MADE
        return True

    cdef bint ready(self) except -1:
        """Whether they are there, made now if need be. MemoryError: there is no room for them."""
        return self.seen == MADE or (self.seen == WANTED and self.make())

    cdef bint make(self) except -1:
        cdef:
            bint has_room = True
            State state
            PyThread_type_lock lock
        if self.lock == NULL or self.process != getpid():  # in a forked process nobody may be left to release it
            self.lock, self.process = <void *> PyThread_allocate_lock(), getpid()
            if self.lock == NULL:
                raise MemoryError("a lock exceeds memory")
        lock = <PyThread_type_lock> self.lock
        with nogil:
            PyThread_acquire_lock(lock, WAIT_LOCK)
            if self.state == WANTED:
                has_room = self.split()
            state = self.state
            PyThread_release_lock(lock)
        if not has_room:
            raise MemoryError("the weights split for matrices exceed memory")
        self.seen = state
        return state == MADE
