"""Front-ends: each turns its format into `RecurrentOp`s and arrays, and gives results back in its own arrangement."""
