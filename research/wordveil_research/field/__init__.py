"""This project beside other packages on the same texts."""
