"""Comparisons as text, as values of JSON, as HTML and as pictures."""
