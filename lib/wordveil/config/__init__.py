"""YAML configuration: its schema, its checks, and what it names."""
