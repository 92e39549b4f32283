"""Run folders and results files → one page with tables, figures and intervals."""

TITLE = "Training runs and results"
"""The page's default title."""
