"""Log and save: the run folder, its config, metrics, checkpoints, event writers and the progress display."""
