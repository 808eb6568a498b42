"""Metric spaces on arrays."""
