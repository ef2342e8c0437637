"""Custom operators of ONNX Runtime that run packed layers, and functions of Python, within its sessions."""
