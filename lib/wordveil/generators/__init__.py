"""Sequence-to-sequence generators: their weights, inference in whole numbers, and training."""
