"""The portable engine for any machine, with unpacked weights and BLAS products; loaded only on request."""
