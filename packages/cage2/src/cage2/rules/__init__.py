"""Compiled rules of CAGE Challenge 2, Scenario2."""
