"""OPR inside other libraries: translation only."""
