"""Compiled kernels: they know no format, and are given nothing that has not been checked.

`PackedLayer`, what Python makes and calls, holds that again for all that memory safety hangs on: shapes, dtypes,
numbers of rows of tables, lengths. What lies below it cannot fail but for lack of memory.

The spine, from the caller down: each part uses only those below it, and the engines through `engine.h` alone.

packed_layer   one operator, its weights packed: takes the caller's arrays as `arrays` finds them, makes the results
plan           how a call is cut into row blocks, chunks and threads, and the memory that these take
timeloop       one row block of one direction, chunk by chunk and step by step; `storage` widens and rounds rows
coding         X and h rounded to 8 bits, of a quantized LSTM, for products of floats
engines        which engines there are
engine.h       what an engine offers: packing, the projection of a chunk, one time step; rows rounded to codes of 8 bits
parameters.h   what an engine reads of a layer
tables.h       the rows of the activation functions and of the cells; `tables` shows them to Python

Beside it:

blas/          the portable engine, in Cython on SciPy's BLAS; loaded where it is asked for alone
simd/          the vector engine, in C: a file for each instruction set, all of them from template.h
threads/       the pool of threads, and the barrier that the threads of a team meet at
"""
