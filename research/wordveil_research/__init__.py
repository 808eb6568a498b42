"""Experiments, other packages and benchmarks. Nothing of wordveil depends on it, and nothing here is kept stable."""
