"""Meaning of an epsilon for a vocabulary, and search for the epsilon that has a given meaning."""
