"""Analysis of published tables, which readers do with Spark alone."""
