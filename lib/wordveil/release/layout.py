"""Layout of a release: directories of its tables, and names in them that are the same for all releases."""

DELTA_LOG = "_delta_log"
"""The directory inside a Delta table that has its log."""
DRAWS, JOURNAL = "draws", "journal"
"""Directories of a release's tables; a directory with them is a release."""
PUBLIC = "public"
"""The directory of the public table, where the configuration names no other."""
TABLE_VERSION = 3
VERSION_PROPERTY = "wordveil.formatVersion"
"""The property of each table that has :data:`TABLE_VERSION`."""
SEQ_COLUMN, AUTHOR_COLUMN = "__seq", "__author"
RESERVED_COLUMN, EPOCH_COLUMN = "__reserved", "__epoch"
# In bodies of events: the versions of the tables then.
DRAWS_VERSION, LEDGER_VERSION = "draws_version", "ledger_version"
