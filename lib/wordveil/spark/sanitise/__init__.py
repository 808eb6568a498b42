"""Main job, and the code that runs in Spark's Python workers."""
