"""Many runs from one short file: the product of presets, flags, variants and seeds, on one machine or a Ray cluster."""
