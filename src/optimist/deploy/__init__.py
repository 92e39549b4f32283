"""What a finished run becomes elsewhere: a defender of the original game, a folder for CybORG, an ONNX file."""
