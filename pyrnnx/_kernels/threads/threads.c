#include <Python.h> /* first: it defines _GNU_SOURCE, for sched_getcpu and cpu_set_t */

#include "threads.h"

#include "barrier.h"

#if !PYRNNX_HAVE_THREADS

int pyrnnx_team_take(int size) {
    (void)size;
    return 1;
}
void pyrnnx_team_run(int size, pyrnnx_task task, void *argument, pyrnnx_interrupt *interrupt) {
    (void)interrupt;
    for (int rank = 0; rank < size; rank++) task(argument, rank);
}
void pyrnnx_team_release(int disbanded) { (void)disbanded; }

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

/* The pause without teams after a disbanded one, in nanoseconds, because other work on the machine lasts for a time,
   not for a number of calls. Each disbanded team doubles the next pause; each other team halves it. */
enum { FIRST_PAUSE = 10 * PYRNNX_MILLISECOND, LONGEST_PAUSE = 1000 * PYRNNX_MILLISECOND };

static struct {
    int taken;          /* whether a caller has the team */
    pyrnnx_lock asleep; /* guards the condition */
    pyrnnx_condition wake;
    int workers, sleepers;
    int running;                       /* workers that have not ended the current task */
    long long pause_until, next_pause; /* end of the pause (0: no pause); length of the next pause */
    pyrnnx_task task;
    void *argument;
#ifdef __linux__
    cpu_set_t allowed; /* processors of the last caller that woke workers */
#endif
    struct {
        unsigned round;                                     /* counts the tasks of this worker; a change starts it */
        int id;                                             /* of the thread in Linux; 0: it has not run yet */
    } __attribute__((aligned(64))) worker[MAX_WORKERS + 1]; /* one cache line each */
} pool = {.asleep = PYRNNX_LOCK_INIT, .wake = PYRNNX_CONDITION_INIT, .next_pause = FIRST_PAUSE};

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

static void allow_all_processors(void) { sched_setaffinity(0, sizeof pool.allowed, &pool.allowed); }
static int thread_id(void) { return (int)syscall(SYS_gettid); }
#else
static void wake_elsewhere(int size) { (void)size; }
static void allow_all_processors(void) {}
static int thread_id(void) { return 0; }
#endif

static void wait_for_task(unsigned *round, unsigned seen) {
    for (int spin = 0; spin < SPINS_IDLE; spin++) {
        if (__atomic_load_n(round, __ATOMIC_ACQUIRE) != seen) return;
        pyrnnx_pause();
    }
    pyrnnx_lock_take(&pool.asleep);
    __atomic_add_fetch(&pool.sleepers, 1, __ATOMIC_SEQ_CST); /* before the last read of round: see pyrnnx_team_run */
    while (__atomic_load_n(round, __ATOMIC_SEQ_CST) == seen) pyrnnx_await(&pool.wake, &pool.asleep);
    __atomic_sub_fetch(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
    pyrnnx_lock_drop(&pool.asleep);
    allow_all_processors();
}

static void run_worker(void *argument) {
    int rank = (int)(ptrdiff_t)argument;
    PYRNNX_STORE(&pool.worker[rank].id, thread_id());
    for (unsigned seen = 0;; seen++) {
        wait_for_task(&pool.worker[rank].round, seen);
        pool.task(pool.argument, rank);
        __atomic_sub_fetch(&pool.running, 1, __ATOMIC_RELEASE);
    }
}

static void wait_for_workers(pyrnnx_interrupt *interrupt) {
    for (int spin = 0; spin < PYRNNX_SPINS; spin++) {
        if (__atomic_load_n(&pool.running, __ATOMIC_ACQUIRE) == 0) return;
        pyrnnx_pause();
    }
    while (__atomic_load_n(&pool.running, __ATOMIC_ACQUIRE) != 0) {
        if (interrupt != NULL) pyrnnx_interrupt_poll(interrupt, 1);
        pyrnnx_yield();
    }
}

static void add_workers(int workers) {
    while (pool.workers < workers) {
        int rank = pool.workers + 1;
        pool.worker[rank].round = 0, pool.worker[rank].id = 0;
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
    pool.taken = pool.workers = pool.sleepers = pool.running = 0;
    pool.pause_until = 0, pool.next_pause = FIRST_PAUSE;
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
    if (size <= 1 || __atomic_exchange_n(&pool.taken, 1, __ATOMIC_ACQUIRE)) return 1;
    int paused = pool.pause_until != 0 && pyrnnx_now() < pool.pause_until;
    if (!paused) start_workers(size - 1);
    if (paused || pool.workers == 0) {
        PYRNNX_STORE(&pool.taken, 0);
        return 1;
    }
    return size <= pool.workers + 1 ? size : pool.workers + 1;
}

void pyrnnx_team_run(int size, pyrnnx_task task, void *argument, pyrnnx_interrupt *interrupt) {
    if (size > 1) {
        pool.task = task;
        pool.argument = argument;
        pool.running = size - 1;
        for (int rank = 1; rank < size; rank++) __atomic_add_fetch(&pool.worker[rank].round, 1, __ATOMIC_SEQ_CST);
        /* A worker counts itself as a sleeper before its last read of its round, so either it sees the new round or it
           is counted here. */
        if (__atomic_load_n(&pool.sleepers, __ATOMIC_SEQ_CST) != 0) {
            wake_elsewhere(size);
            pyrnnx_lock_take(&pool.asleep);
            pyrnnx_wake(&pool.wake);
            pyrnnx_lock_drop(&pool.asleep);
        }
    }
    task(argument, 0);
    if (size > 1) wait_for_workers(interrupt);
}

void pyrnnx_team_release(int disbanded) {
    if (disbanded) {
        pool.pause_until = pyrnnx_now() + pool.next_pause;
        pool.next_pause = 2 * pool.next_pause < LONGEST_PAUSE ? 2 * pool.next_pause : LONGEST_PAUSE;
    } else {
        pool.pause_until = 0;
        pool.next_pause = pool.next_pause / 2 > FIRST_PAUSE ? pool.next_pause / 2 : FIRST_PAUSE;
    }
    PYRNNX_STORE(&pool.taken, 0);
}

#endif
