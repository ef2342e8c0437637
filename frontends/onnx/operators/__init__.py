"""The recurrent operators of ONNX: their definitions, functions, nodes and layers.

schemas         every operator in every opset, and ops of attributes
functions       rnn, gru, lstm                           layers          a node, and its layer
reference_ops   operators for onnx's ReferenceEvaluator
"""
