"""Evaluations of sanitised output on Spark: its texts beside their originals."""
