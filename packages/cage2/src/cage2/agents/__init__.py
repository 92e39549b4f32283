"""Agents that defend the network, and the interface they share."""
