"""CUDA graphs for acting and learning, side streams, GPU errors and pinned memory."""
