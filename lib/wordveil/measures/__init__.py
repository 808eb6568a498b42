"""What a mechanism's outputs reveal about words, and how that is measured."""
