"""The main job, and what runs in Spark's Python workers."""
