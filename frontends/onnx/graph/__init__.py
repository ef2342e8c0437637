"""The graphs of ONNX models, as data: nothing here runs a model.

walk              nodes and their bodies, what they need, an order in which they can run
local_functions   what functions would become, by counting      inline      a model without them
check             whether a model is sound
sizes             how many bytes an operator's results take, told from its inputs
fold              what depends on constants only, with constants (what is known) and stand_ins (what is too large)
rebuild           the folded graph as a GraphProto again        names       names that only one node has
"""
