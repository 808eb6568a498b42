"""Tasks that measure the utility of sanitised texts."""
