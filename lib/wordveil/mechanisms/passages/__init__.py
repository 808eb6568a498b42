"""Passages: one draw for a whole text, written as a public text on the same subject."""
