"""ER-AE: a generator's output, drawn by the two-set exponential mechanism."""
