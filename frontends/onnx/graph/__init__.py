"""Graphs of ONNX models as data; nothing here runs a model.

walk              nodes and their bodies, needed names, topological order, places and names of nodes
constants         what a graph and its bodies see of them, and values of large initializers
inference         types of values: declared, and inferred by onnx
"""
