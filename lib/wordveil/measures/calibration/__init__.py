"""What an epsilon means for a vocabulary, and the epsilon that has a wanted meaning."""
