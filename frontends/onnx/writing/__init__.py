"""Layers and stacks written as ONNX models."""
