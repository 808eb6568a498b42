"""Style of a text as numbers: a versioned set of features, and the distance by which sanitising moves them."""
