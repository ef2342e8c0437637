"""Front-ends: each turns its format into `RecurrentOp`s and named arrays, and gives results back in its own arrangement."""
