"""Pure statistics: arrays (and a generator) in, named results out. Imports NumPy and SciPy only."""
