"""Station 6. The terms of a loss, each a pure function."""
