"""Guarantees of a release: metrics, relations, guarantees, events and their price. No arrays, no Spark."""
