"""The export to ONNX: the graphs of a Transformer, their example program and their self-check."""
