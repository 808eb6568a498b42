"""Embeddings made here: Poincare embeddings from (word, hypernym) pairs, and how well they reconstruct the pairs."""
