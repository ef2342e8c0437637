#include <Python.h> /* first: it defines _GNU_SOURCE, for sched_getcpu and cpu_set_t */

#include "threads.h"

#include "barrier.h"

#if !PYRNNX_HAVE_THREADS

int pyrnnx_team_take(int size) {
    (void)size;
    return 1;
}
void pyrnnx_team_run(int size, int call, pyrnnx_task task, void *argument, pyrnnx_interrupt *interrupt) {
    (void)call;
    (void)interrupt;
    for (int rank = 0; rank < size; rank++) task(argument, rank);
}
void pyrnnx_team_call(int size) { (void)size; }
int pyrnnx_team_may_call(int size) {
    (void)size;
    return 1;
}
void pyrnnx_team_release(void) {}
int pyrnnx_team_rests(void) { return 0; }
void pyrnnx_team_rest(long long lost) { (void)lost; }

#else

#include <signal.h>
#include <stddef.h>
#ifdef __linux__
#include <sys/syscall.h>
#define set_signal_mask sigprocmask /* of this thread, in Linux: pthread_sigmask has a new version in glibc 2.32 */
#else
#define set_signal_mask pthread_sigmask
#endif

enum { MAX_WORKERS = 127, SPINS_IDLE = 4000 };

enum {
    LONGEST_REST = 250 * PYRNNX_MILLISECOND,
    PATIENCE = PYRNNX_MILLISECOND / 4 /* before the caller lends its processor to a late worker */
};

/* A worker moves from WORKER_CALLED to WORKER_RUNS when it begins the task, and the caller from WORKER_CALLED back to
   WORKER_IDLE when the task has ended without this worker. */
enum { WORKER_IDLE, WORKER_CALLED, WORKER_RUNS };

static struct {
    int taken;          /* whether a caller has the team */
    pyrnnx_lock asleep; /* guards the condition */
    pyrnnx_condition wake;
    int workers, sleepers;
    long long rest_end, lost; /* nanoseconds: end of the last rest; time lost to disturbances, less what was regained */
    pyrnnx_task task;
    void *argument;
#ifdef __linux__
    cpu_set_t allowed; /* processors of the last caller that woke workers */
#endif
    struct {
        int state;
        int id;                                             /* of the thread in Linux; 0: it has not run yet */
    } __attribute__((aligned(64))) worker[MAX_WORKERS + 1]; /* one cache line each */
} pool = {.asleep = PYRNNX_LOCK_INIT, .wake = PYRNNX_CONDITION_INIT};

/* The system may wake a worker on the caller's processor, where it waits for milliseconds while others are idle. So the
   caller removes its processor from the worker's set, and the worker restores the set when it runs. */
#ifdef __linux__
static void wake_elsewhere(int size) {
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof pool.allowed, &pool.allowed) != 0) return;
    others = pool.allowed;
    CPU_CLR(sched_getcpu(), &others);
    if (CPU_COUNT(&others) == 0) return;
    for (int rank = 1; rank < size; rank++) {
        int id = PYRNNX_LOAD(&pool.worker[rank].id);
        if (id != 0) sched_setaffinity(id, sizeof others, &others);
    }
}

/* Move a worker that waits for its processor to the caller's, which has nothing else to do. */
static void lend_processor(int rank) {
    cpu_set_t all, own;
    int id = PYRNNX_LOAD(&pool.worker[rank].id);
    if (sched_getaffinity(0, sizeof all, &all) != 0) return;
    CPU_ZERO(&own);
    CPU_SET(sched_getcpu(), &own);
    if (sched_setaffinity(id, sizeof own, &own) == 0) sched_setaffinity(id, sizeof all, &all);
}

static void allow_all_processors(void) { sched_setaffinity(0, sizeof pool.allowed, &pool.allowed); }
static int thread_id(void) { return (int)syscall(SYS_gettid); }
#else
static void wake_elsewhere(int size) { (void)size; }
static void lend_processor(int rank) { (void)rank; }
static void allow_all_processors(void) {}
static int thread_id(void) { return 0; }
#endif

#define RELAXED(value) __atomic_load_n(&(value), __ATOMIC_RELAXED)

static int change_state(int rank, int from, int to) {
    return __atomic_compare_exchange_n(&pool.worker[rank].state, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void wait_for_task(const int *state) {
    for (int spin = 0; spin < SPINS_IDLE; spin++) {
        if (PYRNNX_LOAD(state) == WORKER_CALLED) return;
        pyrnnx_pause();
    }
    pyrnnx_lock_take(&pool.asleep);
    __atomic_add_fetch(&pool.sleepers, 1, __ATOMIC_SEQ_CST); /* before the last read of the state: see team_call */
    while (__atomic_load_n(state, __ATOMIC_SEQ_CST) != WORKER_CALLED) pyrnnx_await(&pool.wake, &pool.asleep);
    __atomic_sub_fetch(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
    pyrnnx_lock_drop(&pool.asleep);
    allow_all_processors();
}

static void run_worker(void *argument) {
    int rank = (int)(ptrdiff_t)argument;
    PYRNNX_STORE(&pool.worker[rank].id, thread_id());
    for (;;) {
        wait_for_task(&pool.worker[rank].state);
        if (!change_state(rank, WORKER_CALLED, WORKER_RUNS)) continue;
        pool.task(pool.argument, rank);
        PYRNNX_STORE(&pool.worker[rank].state, WORKER_IDLE);
    }
}

/* Wait for the workers that began the task; those that did not come in time never do. */
static void wait_for_workers(int size, pyrnnx_interrupt *interrupt) {
    for (int rank = 1; rank < size; rank++) {
        const int *state = &pool.worker[rank].state;
        if (change_state(rank, WORKER_CALLED, WORKER_IDLE)) continue;
        for (int spin = 0; spin < PYRNNX_SPINS && PYRNNX_LOAD(state) != WORKER_IDLE; spin++) pyrnnx_pause();
        for (long long due = pyrnnx_now() + PATIENCE; PYRNNX_LOAD(state) != WORKER_IDLE; pyrnnx_yield()) {
            if (interrupt != NULL) pyrnnx_interrupt_poll(interrupt, 1);
            if (due != 0 && pyrnnx_now() >= due) {
                lend_processor(rank);
                due = 0;
            }
        }
    }
}

static void add_workers(int workers) {
    while (pool.workers < workers) {
        int rank = pool.workers + 1;
        pool.worker[rank].state = WORKER_IDLE, pool.worker[rank].id = 0;
        if (PyThread_start_new_thread(run_worker, (void *)(ptrdiff_t)rank) == PYTHREAD_INVALID_THREAD_ID) break;
        pool.workers = rank;
    }
}

#ifdef _WIN32
static void start_workers(int workers) { add_workers(workers < MAX_WORKERS ? workers : MAX_WORKERS); }
#else
static void forget_workers(void) { /* a forked child has only the forking thread */
    pthread_mutex_init(&pool.asleep, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pool.taken = pool.workers = pool.sleepers = 0;
    pool.rest_end = pool.lost = 0;
}

static void start_workers(int workers) {
    static int registered;
    sigset_t all, before;
    if (workers > MAX_WORKERS) workers = MAX_WORKERS;
    if (pool.workers >= workers) return;
    if (!registered) {
        pthread_atfork(NULL, NULL, forget_workers);
        registered = 1;
    }
    sigfillset(&all); /* only threads of the interpreter handle signals */
    set_signal_mask(SIG_SETMASK, &all, &before);
    add_workers(workers);
    set_signal_mask(SIG_SETMASK, &before, NULL);
}
#endif

int pyrnnx_team_take(int size) {
    if (size <= 1 || !PYRNNX_TAKE(&pool.taken)) return 1;
    start_workers(size - 1);
    if (pool.workers == 0) PYRNNX_STORE(&pool.taken, 0);
    return size <= pool.workers + 1 ? size : pool.workers + 1;
}

void pyrnnx_team_call(int size) {
    for (int rank = 1; rank < size; rank++) change_state(rank, WORKER_IDLE, WORKER_CALLED);
    /* A worker counts itself as a sleeper before its last read of its state, so either it sees the call or it is
       counted here. */
    if (__atomic_load_n(&pool.sleepers, __ATOMIC_SEQ_CST) != 0) {
        wake_elsewhere(size);
        pyrnnx_lock_take(&pool.asleep);
        pyrnnx_wake(&pool.wake);
        pyrnnx_lock_drop(&pool.asleep);
    }
}

void pyrnnx_team_run(int size, int call, pyrnnx_task task, void *argument, pyrnnx_interrupt *interrupt) {
    if (size > 1) {
        pool.task = task;
        pool.argument = argument;
        if (call) pyrnnx_team_call(size);
    }
    task(argument, 0);
    if (size > 1) wait_for_workers(size, interrupt);
}

int pyrnnx_team_rests(void) {
    long long end = RELAXED(pool.rest_end);
    return end != 0 && pyrnnx_now() < end;
}

int pyrnnx_team_may_call(int size) {
    if (pyrnnx_team_rests()) return 0;
    for (int rank = 1; rank < size; rank++)
        if (PYRNNX_LOAD(&pool.worker[rank].state) != WORKER_IDLE) return 0;
    return 1;
}

void pyrnnx_team_rest(long long lost) {
    long long now = pyrnnx_now(), regained = (now - RELAXED(pool.rest_end)) / 4, before = RELAXED(pool.lost);
    lost += before > regained ? before - regained : 0;
    __atomic_store_n(&pool.lost, lost, __ATOMIC_RELAXED);
    __atomic_store_n(&pool.rest_end, now + (2 * lost < LONGEST_REST ? 2 * lost : LONGEST_REST), __ATOMIC_RELAXED);
}

void pyrnnx_team_release(void) { PYRNNX_STORE(&pool.taken, 0); }

#endif
