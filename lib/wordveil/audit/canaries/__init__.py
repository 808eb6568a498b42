"""Documents that differ in one feature, and what a release shows of that feature."""
