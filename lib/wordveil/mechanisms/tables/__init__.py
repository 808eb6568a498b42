"""Mechanisms that draw from a table of integer weights."""
