"""Measures of what a mechanism's outputs reveal about words."""
