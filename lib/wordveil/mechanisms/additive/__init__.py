"""Mechanisms that add noise to a vector and take the nearest word."""
