"""Nearest word."""
