"""Experiments that can be run again: the four papers' tables, and this project beside every other way."""
