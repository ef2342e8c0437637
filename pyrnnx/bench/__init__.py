"""Timing of operators and whole models against other libraries, for `pyrnnx bench` and benchmarks/."""
