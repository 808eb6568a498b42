"""Processing of records without Spark."""
