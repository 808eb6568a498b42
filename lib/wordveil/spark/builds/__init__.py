"""Builds that take long, on the executors."""
