"""Sequence-to-sequence generators: what their weights are, inference in whole numbers, and training."""
