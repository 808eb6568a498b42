"""Word embeddings and their vocabularies."""
