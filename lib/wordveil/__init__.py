"""Sanitise text corpora on Spark with metric differential privacy, and record what each record cost."""

__version__ = "0.1.0"
