"""The command line: each command has a module of its own."""
