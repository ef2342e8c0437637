"""The portable engine: any machine, weights as they come, products by BLAS. Loaded where it is asked for alone."""
