"""Attackers on the author of a text, on its original record, and on its words."""
