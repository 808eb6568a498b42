"""Evaluations of what was sanitised: its texts beside their originals, on Spark."""
