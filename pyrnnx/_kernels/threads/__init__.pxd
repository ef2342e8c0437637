"""The pool of threads: threads.h, barrier.h and interrupt.h for Cython."""

cdef extern from "threads/system.h" nogil:
    void store_flag "PYRNNX_STORE"(int *flag, int value)
    int load_flag "PYRNNX_LOAD"(const int *flag)

cdef extern from "threads/interrupt.h" nogil:
    ctypedef struct Interrupt "pyrnnx_interrupt":
        int stop

    void interrupt_init "pyrnnx_interrupt_init"(Interrupt *interrupt, int (*check)() noexcept nogil)
    int interrupt_poll "pyrnnx_interrupt_poll"(Interrupt *interrupt, int is_caller)

cdef extern from "threads/barrier.h" nogil:
    ctypedef enum Verdict "pyrnnx_verdict":
        PYRNNX_GO_ON
        PYRNNX_DISBANDED
        PYRNNX_STOPPED

    ctypedef struct Barrier "pyrnnx_barrier":
        int size
        Verdict verdict

    void barrier_init "pyrnnx_barrier_init"(Barrier *barrier, int size, const Interrupt *interrupt)
    Verdict barrier_wait "pyrnnx_barrier_wait"(Barrier *barrier)

cdef extern from "threads/threads.h" nogil:
    ctypedef void (*Task "pyrnnx_task")(void *argument, int rank) noexcept nogil

    int team_take "pyrnnx_team_take"(int size)
    void team_run "pyrnnx_team_run"(int size, Task task, void *argument, Interrupt *interrupt)
    void team_release "pyrnnx_team_release"(int disbanded)

cdef extern from "threads/once.h" nogil:
    ctypedef struct Once "pyrnnx_once":
        pass

    bint once_done "pyrnnx_once_done"(const Once *once)
    bint once_begin "pyrnnx_once_begin"(Once *once)
    void once_end "pyrnnx_once_end"(Once *once, bint done)
