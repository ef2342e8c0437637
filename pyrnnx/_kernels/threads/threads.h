/* A pool of threads for short work: a team is taken, runs one task in step with its caller, and goes back to sleep.

   Idle threads spin for some microseconds after their last task, then sleep. A caller that finds the pool taken (by
   another Python thread) gets a team of one: itself. After fork() the child starts with an empty pool. */
#ifndef PYRNNX_THREADS_H
#define PYRNNX_THREADS_H

typedef void (*pyrnnx_task)(void *argument, int rank);

/* Take a team of at most `size` threads, the caller included; returns its size, at least 1. */
int pyrnnx_team_take(int size);

/* Run task(argument, rank) for every rank below `size`, rank 0 in the caller; returns when all have ended. */
void pyrnnx_team_run(int size, pyrnnx_task task, void *argument);

/* Give the team back; to be called if pyrnnx_team_take returned more than 1. After a team that was disbanded, because
   the machine is busy with other work, callers get teams of one for a while: some milliseconds at first, at most a
   second. */
void pyrnnx_team_release(int disbanded);

#endif
