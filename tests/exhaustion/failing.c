/* An allocator for LD_PRELOAD that fails the k-th allocation of chosen modules, and counts those that are not freed.

   Callers are told apart by the address that the call returns to. The start of a thread counts as an allocation,
   because it fails for want of memory too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RANGES = 256, SLOTS = 1 << 18 };

static struct {
    uintptr_t low, high;
    int counted;
} ranges[RANGES];
static int range_count;
static void *volatile taken[SLOTS]; /* open addressing by the pointer */
static volatile long count, fail_at, failed, live;
static volatile int lock;

static void acquire(void) {
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {}
}
static void release(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

void failing_add(uintptr_t low, uintptr_t high, int counted) {
    ranges[range_count].low = low;
    ranges[range_count].counted = counted;
    ranges[range_count++].high = high;
}
void failing_clear(void) { range_count = 0; }
void failing_arm(long k) { count = failed = 0, fail_at = k; }
long failing_count(void) { return count; }
long failing_failed(void) { return failed; }
long failing_live(void) { return live; }

enum { OTHER, FAILS, FAILS_AND_COUNTS };
static int kind_of(void *caller) {
    for (int k = 0; k < range_count; k++)
        if ((uintptr_t)caller - ranges[k].low < ranges[k].high - ranges[k].low) return FAILS + ranges[k].counted;
    return OTHER;
}
static int fails(void) { /* whether this allocation, of a chosen caller, is the one that fails */
    if (!fail_at) return 0;
    if (__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) != fail_at) return 0;
    failed = 1;
    errno = ENOMEM;
    return 1;
}
static size_t slot_of(void *pointer) { return ((uintptr_t)pointer >> 4) * 2654435761u % SLOTS; }
static void *noted(void *pointer, int kind) {
    if (!pointer || kind != FAILS_AND_COUNTS) return pointer;
    acquire();
    size_t k = slot_of(pointer);
    if (live < SLOTS / 2) { /* else more are live than any call leaves */
        while (taken[k]) k = (k + 1) % SLOTS;
        taken[k] = pointer;
        live++;
    }
    release();
    return pointer;
}
static void forget(void *pointer) {
    if (!pointer || !live) return;
    acquire();
    size_t gap = slot_of(pointer);
    while (taken[gap] && taken[gap] != pointer) gap = (gap + 1) % SLOTS;
    if (taken[gap]) {
        live--;
        /* Close the gap: later pointers of the chain move up unless that is before their own slot. */
        for (size_t k = (gap + 1) % SLOTS; taken[k]; k = (k + 1) % SLOTS)
            if ((k - slot_of(taken[k])) % SLOTS >= (k - gap) % SLOTS) taken[gap] = taken[k], gap = k;
        taken[gap] = NULL;
    }
    release();
}

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define ALLOCATOR(name, parameters, arguments) \
    void *name parameters { \
        NEXT(name); \
        int kind = kind_of(__builtin_return_address(0)); \
        if (!kind) return next arguments; \
        return fails() ? NULL : noted(next arguments, kind); \
    }

void *malloc(size_t);
void *calloc(size_t, size_t);
void *aligned_alloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
int posix_memalign(void **, size_t, size_t);
ALLOCATOR(malloc, (size_t size), (size))
ALLOCATOR(calloc, (size_t number, size_t size), (number, size))
ALLOCATOR(aligned_alloc, (size_t alignment, size_t size), (alignment, size))

void *realloc(void *pointer, size_t size) {
    NEXT(realloc);
    int kind = kind_of(__builtin_return_address(0));
    if (kind && fails()) return NULL;
    forget(pointer);
    return noted(next(pointer, size), kind);
}
int posix_memalign(void **pointer, size_t alignment, size_t size) {
    NEXT(posix_memalign);
    int kind = kind_of(__builtin_return_address(0));
    if (kind && fails()) return ENOMEM;
    int status = next(pointer, alignment, size);
    if (!status) noted(*pointer, kind);
    return status;
}
void free(void *pointer) {
    NEXT(free);
    forget(pointer);
    next(pointer);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    NEXT(pthread_create);
    return fails() ? EAGAIN : next(thread, attributes, run, argument);
}
