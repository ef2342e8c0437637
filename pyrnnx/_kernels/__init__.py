"""Compiled kernels, independent of file formats and called with checked arguments.

`PackedLayer`, their interface to Python, checks again what memory safety depends on: shapes, dtypes, indices of tables,
lengths. The code below it can fail only for lack of memory.

The core, from the caller down; each part uses only those below it, and engines only through `engine.h`:

packed_layer   one operator with packed weights; reads the caller's arrays with `arrays`, creates the results
pipeline       layers that read each other's results, in turns of some time steps
calls          preparation of a call: shapes, the order of rows; without Python or the GIL
plan           division of a call into row blocks, chunks and threads, and their memory
timeloop       one row block of one direction, chunk by chunk and step by step
operands       rows of X and h for the products of the time loop, converted by `storage`, or rounded to 8 bits
blocks         what these describe: a call, its row blocks, and its teams of threads
engines        the engines of this build
engine.h       the interface of an engine: packing, the projection of a chunk, one time step, coded rows
parameters.h   the parameters of a layer for an engine
tables.h       the tables of activation functions and cells; `engines` exports them to Python

declared       inputs of whole models, recognized by their declared dtypes and shapes; independent of the rest

Other folders:

blas/          the portable engine, in Cython on SciPy's BLAS; loaded only on request
simd/          the vector engine, in C: one or two files for each instruction set, all from template.h
threads/       the pool of threads, and the barrier of a team
onnxruntime/   custom operators of ONNX Runtime, which run packed layers within its sessions
"""
