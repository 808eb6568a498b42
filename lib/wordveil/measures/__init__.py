"""What a mechanism's outputs tell about words, and how it is measured."""
