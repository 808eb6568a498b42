"""Releases: budgets, gate rules and signed manifests. Decisions on plain data, without Spark."""
