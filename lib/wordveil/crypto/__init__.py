"""Keys, and streams of random numbers that come from them."""
