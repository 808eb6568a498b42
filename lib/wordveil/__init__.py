"""Sanitise text corpora on Spark with metric differential privacy, and record what each record cost."""

from wordveil.version import __version__

__all__ = ["__version__"]
