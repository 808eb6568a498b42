"""Experiments of the four papers."""
