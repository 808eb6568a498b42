"""Word mechanisms, one file each; ``registry`` lists them."""
