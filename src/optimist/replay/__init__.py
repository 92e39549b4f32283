"""Replay: steps as they were executed, kept once, drawn as n-step transitions, uniformly or by priority."""
