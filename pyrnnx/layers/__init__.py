"""Layers: a recurrent operator with its weights, its calls and its streams."""
