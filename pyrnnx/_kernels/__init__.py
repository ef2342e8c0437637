"""Compiled kernels: they know no format, cannot fail, and trust that everything was checked before."""
