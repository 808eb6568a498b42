"""Evaluations of texts by `wordveil evaluate`: attacks, utility and style."""
