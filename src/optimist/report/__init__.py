"""Station 9. Runs → tables, figures and statements with intervals."""
