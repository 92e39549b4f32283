"""Run folders, checkpoints, metrics, writers and progress displays."""
