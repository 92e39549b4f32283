"""Agents as files for the original game."""
