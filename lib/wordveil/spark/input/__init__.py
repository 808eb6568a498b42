"""Corpus of a run: opened at one version, and screened before any text reaches Python."""
