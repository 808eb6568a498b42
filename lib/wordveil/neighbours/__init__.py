"""Nearest words."""
