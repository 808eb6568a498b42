"""Runs an experiment cell by cell, and keeps what was measured."""
