"""Automata that find typed tokens in a text's bytes, one module for each family of classes."""
