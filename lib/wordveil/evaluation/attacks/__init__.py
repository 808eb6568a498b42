"""Attackers: who wrote a text, which record became it, which words stood in it."""
