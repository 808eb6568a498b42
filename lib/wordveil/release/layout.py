"""Layout of a release: directories of its tables, and names in them that are the same for all releases."""

DELTA_LOG = "_delta_log"
"""Directory of the log inside a Delta table."""
DRAWS, JOURNAL = "draws", "journal"
"""Directories of a release's tables; a directory with them is a release."""
PUBLIC = "public"
"""Directory of the public table, unless the configuration names another."""
TABLE_VERSION = 3
VERSION_PROPERTY = "wordveil.formatVersion"
"""Property of each table with :data:`TABLE_VERSION`."""
SEQ_COLUMN, AUTHOR_COLUMN = "__seq", "__author"
RESERVED_COLUMN, EPOCH_COLUMN = "__reserved", "__epoch"
# In bodies of events: the versions of the tables then.
DRAWS_VERSION, LEDGER_VERSION = "draws_version", "ledger_version"
