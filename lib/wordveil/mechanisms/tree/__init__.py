"""Tree: nested clusters of words, and the choice among them."""
