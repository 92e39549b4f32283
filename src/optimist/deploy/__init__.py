"""Exports of trained policies: agents for the original CAGE Challenge 2, ONNX files."""
