"""Station 7. The learners: stations 3 to 6 put together, one file per method."""
