"""Figures, their intervals, and what they are figures of."""
