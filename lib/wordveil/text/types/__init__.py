"""Tokens that are not words: addresses, numbers, dates, names and the like, each recognised and written by class."""
