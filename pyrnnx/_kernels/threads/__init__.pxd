"""The pool of threads: threads.h, barrier.h and interrupt.h for Cython."""

cdef extern from "threads/system.h" nogil:
    void store_flag "PYRNNX_STORE"(int *flag, int value)
    int load_flag "PYRNNX_LOAD"(const int *flag)
    int count_up "PYRNNX_COUNT_UP"(int *count)
    bint take_flag "PYRNNX_TAKE"(int *flag)

cdef extern from "threads/clock.h" nogil:
    long long now "pyrnnx_now"()

cdef extern from "threads/interrupt.h" nogil:
    ctypedef struct Interrupt "pyrnnx_interrupt":
        int stop

    void interrupt_init "pyrnnx_interrupt_init"(Interrupt *interrupt, int (*check)() noexcept nogil)
    int interrupt_poll "pyrnnx_interrupt_poll"(Interrupt *interrupt, int is_caller)

cdef extern from "threads/barrier.h" nogil:
    ctypedef enum Verdict "pyrnnx_verdict":
        PYRNNX_GO_ON
        PYRNNX_REGROUP
        PYRNNX_STOPPED

    ctypedef struct Barrier "pyrnnx_barrier":
        int size, regroup, closed

    int SPINS "PYRNNX_SPINS"

    void spin "pyrnnx_spin"(int spins)
    void barrier_init "pyrnnx_barrier_init"(Barrier *barrier, int limit, const Interrupt *interrupt)
    void barrier_begin "pyrnnx_barrier_begin"(Barrier *barrier)
    bint barrier_begun "pyrnnx_barrier_begun"(Barrier *barrier)
    int barrier_join "pyrnnx_barrier_join"(Barrier *barrier)
    bint barrier_enter "pyrnnx_barrier_enter"(Barrier *barrier, int place, unsigned *seen)
    int barrier_joined "pyrnnx_barrier_joined"(Barrier *barrier, int expected)
    void barrier_admit "pyrnnx_barrier_admit"(Barrier *barrier, int joined)
    void barrier_close "pyrnnx_barrier_close"(Barrier *barrier)
    void barrier_open "pyrnnx_barrier_open"(Barrier *barrier)
    void barrier_watch "pyrnnx_barrier_watch"(Barrier *barrier)
    void barrier_waited "pyrnnx_barrier_waited"(Barrier *barrier, long long begin)
    long long barrier_late "pyrnnx_barrier_late"(Barrier *barrier)
    Verdict barrier_wait "pyrnnx_barrier_wait"(Barrier *barrier)

cdef extern from "threads/threads.h" nogil:
    ctypedef void (*Task "pyrnnx_task")(void *argument, int rank) noexcept nogil

    int team_take "pyrnnx_team_take"(int size)
    void team_run "pyrnnx_team_run"(int size, bint call, Task task, void *argument, Interrupt *interrupt)
    void team_call "pyrnnx_team_call"(int size)
    bint team_may_call "pyrnnx_team_may_call"(int size)
    bint team_rests "pyrnnx_team_rests"()
    void team_rest "pyrnnx_team_rest"(long long lost)
    void team_release "pyrnnx_team_release"()

cdef extern from "threads/once.h" nogil:
    ctypedef struct Once "pyrnnx_once":
        pass

    bint once_done "pyrnnx_once_done"(const Once *once)
    bint once_begin "pyrnnx_once_begin"(Once *once)
    void once_end "pyrnnx_once_end"(Once *once, bint done)
