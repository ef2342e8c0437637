/* A pool of threads for short work: a caller takes a team, runs one task with it, and releases it.

   Workers may come late, or not at all: a task takes its work from a queue. Idle threads spin for microseconds after
   their last task, then sleep. If another Python thread has taken the pool, a caller gets a team of one: itself. After
   fork() the child starts with an empty pool. */
#ifndef PYRNNX_THREADS_H
#define PYRNNX_THREADS_H

#include "interrupt.h"

typedef void (*pyrnnx_task)(void *argument, int rank);

/* Take a team of at most `size` threads, including the caller; return its size, at least 1. */
int pyrnnx_team_take(int size);

/* Run task(argument, 0) in the caller, and task(argument, rank) in every worker that comes before it has ended; return
   when all have ended. While waiting, the caller polls `interrupt` if it is not NULL; tasks read it to stop early.
   Without `call`, workers come only if the task calls them. */
void pyrnnx_team_run(int size, int call, pyrnnx_task task, void *argument, pyrnnx_interrupt *interrupt);

/* Call the workers of a team to its task, again if they left it; only the task of rank 0 may do so. */
void pyrnnx_team_call(int size);

/* Release the team; required if pyrnnx_team_take returned more than 1. */
void pyrnnx_team_release(void);

/* Threads that meet at a barrier wait for each other's processors, so after a disturbance they rest, twice as long as
   what disturbances cost lately, in nanoseconds, whatever pool they are of. */
int pyrnnx_team_rests(void);
int pyrnnx_team_may_call(int size); /* of the owner: whether the rest has ended and all workers left the task */
void pyrnnx_team_rest(long long lost);

#endif
