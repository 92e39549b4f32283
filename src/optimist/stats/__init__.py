"""Statistics of runs: means and proportions with intervals, and aggregates over many tasks.

SciPy is imported where it is used: `import optimist` and the start of a training run do not load it.
"""
