"""Incremental releases: runs, draws, journal, ledger, gate and publication."""
