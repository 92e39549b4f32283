"""Expert interface: features of memory, 32 useful actions, an action mask, and the true state for a critic."""
