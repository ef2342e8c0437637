"""Helpers that the whole package uses: scalars, dtypes, reading and writing files, signatures, HTML."""
