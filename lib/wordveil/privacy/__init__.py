"""Guarantees of a release: metrics, relations, guarantees, events and their price. No Spark; few arrays."""
