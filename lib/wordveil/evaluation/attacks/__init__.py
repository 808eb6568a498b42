"""Attackers: who wrote a text, which record it comes from, which words it had."""
