"""Operators and whole models timed beside other libraries, in one process: for `pyrnnx bench` and benchmarks/."""
