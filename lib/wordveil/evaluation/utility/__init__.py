"""Tasks: what sanitised texts are still good for."""
