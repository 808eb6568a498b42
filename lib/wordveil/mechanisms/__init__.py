"""Word mechanisms, a folder for each family; ``registry`` lists them."""
