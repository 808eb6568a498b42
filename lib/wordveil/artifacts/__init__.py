"""What is built once and mapped into memory by workers: content-addressed directories."""
