"""Conversion of text to token ids and back: tokeniser, text policy, codec."""
