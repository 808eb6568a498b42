"""Evaluations of texts by `wordveil evaluate`: attacks and utility."""
