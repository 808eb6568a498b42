"""Canaries: documents that differ in one feature, and tests for what a release shows of that feature."""
