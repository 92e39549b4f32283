"""optimist: Optimistic Policy Regularization (OPR), a memory of good episodes that a policy gradient holds on to."""

__version__ = "0.1.0"
