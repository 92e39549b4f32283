"""Policies, values and the distributions over actions."""
