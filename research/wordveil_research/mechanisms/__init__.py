"""Mechanisms of papers that a comparison needs and a release does not: plug-ins of ``wordveil.mechanisms``."""
