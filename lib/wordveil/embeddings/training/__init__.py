"""Embeddings made here: Poincare embeddings from (word, hypernym) pairs, and their reconstruction of the pairs."""
