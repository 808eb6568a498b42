"""Measures of what a mechanism does to words and texts: statistics, attackers, utility tasks, previews."""
