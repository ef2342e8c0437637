"""Graphs of ONNX models as data; nothing here runs a model.

walk              nodes and their bodies, needed names, topological order, places and names of nodes
constants         what a graph and its bodies see of them
large             values of large initializers
inference         onnx's shape inference, without crashes   value_info   declared types
"""
