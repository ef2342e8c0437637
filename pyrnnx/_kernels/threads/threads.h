/* A pool of threads for short work: a caller takes a team, runs one task with it, and releases it.

   Idle threads spin for microseconds after their last task, then sleep. If another Python thread has taken the pool, a
   caller gets a team of one: itself. After fork() the child starts with an empty pool. */
#ifndef PYRNNX_THREADS_H
#define PYRNNX_THREADS_H

#include "interrupt.h"

typedef void (*pyrnnx_task)(void *argument, int rank);

/* Take a team of at most `size` threads, including the caller; return its size, at least 1. */
int pyrnnx_team_take(int size);

/* Run task(argument, rank) for every rank below `size`, rank 0 in the caller, and return when all have ended. While
   waiting, the caller polls `interrupt` if it is not NULL; tasks read it to stop early. */
void pyrnnx_team_run(int size, pyrnnx_task task, void *argument, pyrnnx_interrupt *interrupt);

/* Release the team; required if pyrnnx_team_take returned more than 1. A disbanded team means a busy machine: callers
   then get teams of one for 10 ms at first and at most a second. */
void pyrnnx_team_release(int disbanded);

#endif
