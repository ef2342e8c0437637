"""Graphs of ONNX models as data; nothing here runs a model.

walk              nodes and their bodies, needed names, topological order
local_functions   size of inlined functions, by counting        inline      a model without functions
check             validity of a model
sizes             bytes of an operator's results, from its inputs
fold              constant folding, with constants (known values) and stand_ins (too large to compute)
rebuild           the folded graph as a GraphProto again        names       unique names of nodes
"""
