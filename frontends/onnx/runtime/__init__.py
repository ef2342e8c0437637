"""Execution of graphs: ONNX Runtime sessions and onnx's ReferenceEvaluator, both with pyrnnx's layers.

program     a graph ready to run                replace     the pass that makes a graph one session
evaluator   whole models, and single nodes      operators   fixes of onnx's own operators
recurrent   RNN, GRU and LSTM as operators      memory      the memory limit of a call
"""
