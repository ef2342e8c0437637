#ifdef __linux__
#define _GNU_SOURCE /* sched_getcpu and cpu_set_t */
#endif
#include "threads.h"

#include "barrier.h"

#ifdef _WIN32 /* no pthreads: every team has one member */

int pyrnnx_team_take(int size) {
    (void)size;
    return 1;
}
void pyrnnx_team_run(int size, pyrnnx_task task, void *argument) {
    for (int rank = 0; rank < size; rank++) task(argument, rank);
}
void pyrnnx_team_release(int disbanded) { (void)disbanded; }

#else

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

enum { MAX_WORKERS = 127, SPINS_IDLE = 4000 };

/* How long callers get no team after one that was disbanded. Other work on the machine lasts for a time, not for a
   number of calls, so this counts nanoseconds: twice as long each time, and half as long again after a team that was
   not. */
enum { FIRST_PAUSE = 10 * PYRNNX_MILLISECOND, LONGEST_PAUSE = 1000 * PYRNNX_MILLISECOND };

static struct {
    pthread_mutex_t taken;  /* held by the caller whose team it is */
    pthread_mutex_t asleep; /* guards the condition */
    pthread_cond_t wake;
    int workers, sleepers;
    int running;                       /* members that have not ended the current task */
    long long pause_until, next_pause; /* no team before that moment (0: none is paused); length of the next pause */
    pyrnnx_task task;
    void *argument;
#ifdef __linux__
    cpu_set_t allowed; /* processors of the last caller that woke somebody */
#endif
    struct {
        unsigned round; /* counts the tasks of this worker; a change starts it */
        pthread_t thread;
    } __attribute__((aligned(64))) worker[MAX_WORKERS + 1]; /* a cache line each */
} pool = {.taken = PTHREAD_MUTEX_INITIALIZER,
          .asleep = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .next_pause = FIRST_PAUSE};

/* The system may wake a thread on its caller's processor, where it waits for milliseconds while another is idle. So the
   caller takes that processor from the set the thread may run on, and the thread restores the set as soon as it runs.
 */
#ifdef __linux__
static void wake_elsewhere(int size) {
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof pool.allowed, &pool.allowed) != 0) return;
    others = pool.allowed;
    CPU_CLR(sched_getcpu(), &others);
    if (CPU_COUNT(&others) == 0) return;
    for (int rank = 1; rank < size; rank++) pthread_setaffinity_np(pool.worker[rank].thread, sizeof others, &others);
}

static void allow_all_processors(void) { sched_setaffinity(0, sizeof pool.allowed, &pool.allowed); }
#else
static void wake_elsewhere(int size) { (void)size; }
static void allow_all_processors(void) {}
#endif

static void wait_for_task(unsigned *round, unsigned seen) {
    for (int spin = 0; spin < SPINS_IDLE; spin++) {
        if (__atomic_load_n(round, __ATOMIC_ACQUIRE) != seen) return;
        pyrnnx_pause();
    }
    pthread_mutex_lock(&pool.asleep);
    __atomic_add_fetch(&pool.sleepers, 1,
                       __ATOMIC_SEQ_CST); /* before the last look at the round: see pyrnnx_team_run */
    while (__atomic_load_n(round, __ATOMIC_SEQ_CST) == seen) pthread_cond_wait(&pool.wake, &pool.asleep);
    __atomic_sub_fetch(&pool.sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool.asleep);
    allow_all_processors();
}

static void *run_worker(void *argument) {
    int rank = (int)(ptrdiff_t)argument;
    for (unsigned seen = 0;; seen++) {
        wait_for_task(&pool.worker[rank].round, seen);
        pool.task(pool.argument, rank);
        __atomic_sub_fetch(&pool.running, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void wait_for_workers(void) {
    for (int spin = 0; __atomic_load_n(&pool.running, __ATOMIC_ACQUIRE) != 0; spin++)
        if (spin < PYRNNX_SPINS)
            pyrnnx_pause();
        else
            sched_yield();
}

static void forget_workers(void) { /* in the child of a fork: only the forking thread lives on */
    pthread_mutex_init(&pool.taken, NULL);
    pthread_mutex_init(&pool.asleep, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pool.workers = pool.sleepers = pool.running = 0;
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
    sigfillset(&all); /* signals are for the interpreter's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.workers < workers) {
        int rank = pool.workers + 1;
        pool.worker[rank].round = 0;
        if (pthread_create(&pool.worker[rank].thread, NULL, run_worker, (void *)(ptrdiff_t)rank) != 0) break;
        pthread_detach(pool.worker[rank].thread);
        pool.workers = rank;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int pyrnnx_team_take(int size) {
    if (size <= 1 || pthread_mutex_trylock(&pool.taken) != 0) return 1;
    int paused = pool.pause_until != 0 && pyrnnx_now() < pool.pause_until;
    if (!paused) start_workers(size - 1);
    if (paused || pool.workers == 0) {
        pthread_mutex_unlock(&pool.taken);
        return 1;
    }
    return size <= pool.workers + 1 ? size : pool.workers + 1;
}

void pyrnnx_team_run(int size, pyrnnx_task task, void *argument) {
    if (size > 1) {
        pool.task = task;
        pool.argument = argument;
        pool.running = size - 1;
        for (int rank = 1; rank < size; rank++) __atomic_add_fetch(&pool.worker[rank].round, 1, __ATOMIC_SEQ_CST);
        /* A worker counts itself among the sleepers before it looks at its round for the last time: so either it sees
           the new round, or it is counted here. */
        if (__atomic_load_n(&pool.sleepers, __ATOMIC_SEQ_CST) != 0) {
            wake_elsewhere(size);
            pthread_mutex_lock(&pool.asleep);
            pthread_cond_broadcast(&pool.wake);
            pthread_mutex_unlock(&pool.asleep);
        }
    }
    task(argument, 0);
    if (size > 1) wait_for_workers();
}

void pyrnnx_team_release(int disbanded) {
    if (disbanded) {
        pool.pause_until = pyrnnx_now() + pool.next_pause;
        pool.next_pause = 2 * pool.next_pause < LONGEST_PAUSE ? 2 * pool.next_pause : LONGEST_PAUSE;
    } else {
        pool.pause_until = 0;
        pool.next_pause = pool.next_pause / 2 > FIRST_PAUSE ? pool.next_pause / 2 : FIRST_PAUSE;
    }
    pthread_mutex_unlock(&pool.taken);
}

#endif
