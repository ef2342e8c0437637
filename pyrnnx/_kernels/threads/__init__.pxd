"""The pool of threads: threads.h and barrier.h for Cython."""

cdef extern from "threads/barrier.h" nogil:
    ctypedef struct Barrier "pyrnnx_barrier":
        int size
        int disbanded

    void barrier_init "pyrnnx_barrier_init"(Barrier *barrier, int size)
    int barrier_wait "pyrnnx_barrier_wait"(Barrier *barrier)

cdef extern from "threads/threads.h" nogil:
    ctypedef void (*Task "pyrnnx_task")(void *argument, int rank) noexcept nogil

    int team_take "pyrnnx_team_take"(int size)
    void team_run "pyrnnx_team_run"(int size, Task task, void *argument)
    void team_release "pyrnnx_team_release"(int disbanded)
