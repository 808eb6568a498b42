"""What a run would do, before it does it."""
