"""Content-addressed directories that are built once and mapped into memory by workers."""
