"""Where graphs are run: onnx's ReferenceEvaluator with the recurrent operators of this package.

evaluator   whole models, and single nodes      operators   what is missing or wrong in onnx's own
recurrent   RNN, GRU and LSTM as operators      memory      what a call may allocate
"""
