/* System functions for threads: atomics, yielding, short sleeps, and a lock with a condition.

   PYRNNX_HAVE_THREADS is 0 for MSVC, which lacks GCC's atomics: every team there has one member. Threads are started by
   Python's own function: glibc 2.34 gave new versions to those of pthreads, which older systems lack. */
#ifndef PYRNNX_SYSTEM_H
#define PYRNNX_SYSTEM_H

#if defined(_MSC_VER) && !defined(__clang__)
#define PYRNNX_HAVE_THREADS 0
#define PYRNNX_STORE(flag, value) (*(flag) = (value))
#define PYRNNX_LOAD(flag) (*(flag))
#define PYRNNX_COUNT_UP(count) ((*(count))++)
#define PYRNNX_TAKE(flag) (*(flag) ? 0 : (*(flag) = 1))
#else
#define PYRNNX_HAVE_THREADS 1
#define PYRNNX_STORE(flag, value) __atomic_store_n(flag, value, __ATOMIC_RELEASE)
#define PYRNNX_LOAD(flag) __atomic_load_n(flag, __ATOMIC_ACQUIRE)
#define PYRNNX_COUNT_UP(count) __atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL)
#define PYRNNX_TAKE(flag) (!__atomic_exchange_n(flag, 1, __ATOMIC_ACQUIRE)) /* whether it was 0 */
#endif

#ifdef _WIN32

#define WIN32_LEAN_AND_MEAN
#define NOMINMAX
#include <windows.h>

typedef SRWLOCK pyrnnx_lock;
typedef CONDITION_VARIABLE pyrnnx_condition;
#define PYRNNX_LOCK_INIT SRWLOCK_INIT
#define PYRNNX_CONDITION_INIT CONDITION_VARIABLE_INIT

static inline void pyrnnx_lock_take(pyrnnx_lock *lock) { AcquireSRWLockExclusive(lock); }
static inline void pyrnnx_lock_drop(pyrnnx_lock *lock) { ReleaseSRWLockExclusive(lock); }
static inline void pyrnnx_await(pyrnnx_condition *condition, pyrnnx_lock *lock) {
    SleepConditionVariableSRW(condition, lock, INFINITE, 0);
}
static inline void pyrnnx_wake(pyrnnx_condition *condition) { WakeAllConditionVariable(condition); }
static inline void pyrnnx_yield(void) { SwitchToThread(); }
static inline void pyrnnx_nap(void) { Sleep(1); }
static inline long pyrnnx_process(void) { return (long)GetCurrentProcessId(); }

#else

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

typedef pthread_mutex_t pyrnnx_lock;
typedef pthread_cond_t pyrnnx_condition;
#define PYRNNX_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
#define PYRNNX_CONDITION_INIT PTHREAD_COND_INITIALIZER

static inline void pyrnnx_lock_take(pyrnnx_lock *lock) { pthread_mutex_lock(lock); }
static inline void pyrnnx_lock_drop(pyrnnx_lock *lock) { pthread_mutex_unlock(lock); }
static inline void pyrnnx_await(pyrnnx_condition *condition, pyrnnx_lock *lock) { pthread_cond_wait(condition, lock); }
static inline void pyrnnx_wake(pyrnnx_condition *condition) { pthread_cond_broadcast(condition); }
static inline void pyrnnx_yield(void) { sched_yield(); }
static inline void pyrnnx_nap(void) {
    const struct timespec pause = {0, 50000};
    nanosleep(&pause, NULL);
}
static inline long pyrnnx_process(void) { return getpid(); }

#endif
#endif
