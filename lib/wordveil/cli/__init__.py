"""The command line: each command has its own module."""
