"""Long builds on the executors."""
