"""What `wordveil evaluate` measures of texts: attacks, utility and style."""
