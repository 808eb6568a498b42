"""Guarantees of a release: metrics, relations, guarantees, events and their price. No Spark; arrays in `shuffling` alone."""
