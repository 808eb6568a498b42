"""How a text is written, as numbers: a versioned set of features, and how far sanitising moves them."""
