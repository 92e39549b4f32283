"""The tests; folders mirror src/optimist."""
