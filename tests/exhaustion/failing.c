/* An allocator for LD_PRELOAD that fails the k-th allocation of chosen modules.

   Callers are told apart by the address that the call returns to. The start of a thread counts as an allocation,
   because it fails for lack of memory, too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { RANGES = 256 };

static struct {
    uintptr_t low, high;
} ranges[RANGES];
static int range_count;
static volatile long count, fail_at, failed;

void failing_add(uintptr_t low, uintptr_t high) {
    ranges[range_count].low = low;
    ranges[range_count++].high = high;
}
void failing_clear(void) { range_count = 0; }
void failing_arm(long k) { count = failed = 0, fail_at = k; }
long failing_failed(void) { return failed; }

static int is_chosen(void *caller) {
    for (int k = 0; k < range_count; k++)
        if ((uintptr_t)caller - ranges[k].low < ranges[k].high - ranges[k].low) return 1;
    return 0;
}
static int fails(void) { /* whether this allocation of a chosen caller fails */
    if (!fail_at) return 0;
    if (__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST) != fail_at) return 0;
    failed = 1;
    errno = ENOMEM;
    return 1;
}

#define NEXT(name) \
    static __typeof__(&name) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define ALLOCATOR(name, parameters, arguments) \
    void *name parameters { \
        NEXT(name); \
        return is_chosen(__builtin_return_address(0)) && fails() ? NULL : next arguments; \
    }

void *malloc(size_t);
void *calloc(size_t, size_t);
void *aligned_alloc(size_t, size_t);
void *realloc(void *, size_t);
int posix_memalign(void **, size_t, size_t);
ALLOCATOR(malloc, (size_t size), (size))
ALLOCATOR(calloc, (size_t number, size_t size), (number, size))
ALLOCATOR(aligned_alloc, (size_t alignment, size_t size), (alignment, size))
ALLOCATOR(realloc, (void *pointer, size_t size), (pointer, size))

int posix_memalign(void **pointer, size_t alignment, size_t size) {
    NEXT(posix_memalign);
    return is_chosen(__builtin_return_address(0)) && fails() ? ENOMEM : next(pointer, alignment, size);
}
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    NEXT(pthread_create);
    return fails() ? EAGAIN : next(thread, attributes, run, argument);
}
