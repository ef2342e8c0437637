"""The recurrent operators of ONNX: their definitions, functions, nodes and layers.

schemas         every operator in every opset            attributes      from attributes to an op
functions       rnn, gru, lstm                           nodes, layers   a node, and its layer
quantized       weights of DynamicQuantizeLSTM           stream_layer    a layer in a stream
reference_ops   operators for onnx's ReferenceEvaluator
"""
