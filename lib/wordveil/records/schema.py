"""What a record can be, why it is refused or withdrawn, and the columns of inputs and outputs."""

from __future__ import annotations

import pyarrow as pa

RELEASED = "released"
QUARANTINED = "quarantined"
WITHDRAWN = "withdrawn"
# Why a record was withdrawn. A requested withdrawal is final, even while the input still has the record.
REQUESTED, DELETED, ABSENT = "requested", "deleted", "absent"
# Reasons found in ids: a record without a valid id cannot be drawn, whatever its text.
NULL_ID, INVALID_ID, DUPLICATE_ID = "null_id", "invalid_id", "duplicate_id"
ID_REASONS = (NULL_ID, INVALID_ID, DUPLICATE_ID)
# Reasons found in texts before they are split into words; the codec adds its own.
NULL_TEXT, OVERSIZE, UNDECODABLE, TOO_MANY_TOKENS = "null_text", "oversize", "undecodable", "too_many_tokens"
TEXT_REASONS = (
    *(NULL_TEXT, OVERSIZE, UNDECODABLE, TOO_MANY_TOKENS),
    *("script_without_word_spaces", "unknown_words", "control_characters"),
)
# Columns of the input of :class:`RecordSanitiser` and of its output that no table keeps.
TEXT_COLUMN, REASON_COLUMN = "__text", "__reason"
WORDS_COLUMN, UNKNOWN_COLUMN, UNCHANGED_COLUMN = "__words", "__unknown", "__unchanged"
# Columns of what :meth:`RecordSanitiser.inspect` returns, beside the id and ``__reason``.
TAG_COLUMN, TOKENS_COLUMN = "__tag", "__tokens"
PRIVACY_TYPE = pa.struct(
    [
        pa.field("release_id", pa.string()),
        pa.field("mechanism", pa.string()),
        pa.field("bundle", pa.string()),
        pa.field("search", pa.string()),
        pa.field("search_recall", pa.float64()),
        pa.field("policy", pa.string()),
        pa.field("metric", pa.string()),
        pa.field("nominal_epsilon", pa.float64()),
        pa.field("epsilon", pa.float64()),
        pa.field("slack", pa.float64()),
        pa.field("tokens", pa.int64()),
        pa.field("composition", pa.string()),
        pa.field("relation", pa.string()),
        pa.field("epsilon_pure", pa.float64()),
        pa.field("epsilon_bound", pa.float64()),
        pa.field("delta", pa.float64()),
        pa.field("exposes", pa.list_(pa.string())),
    ]
)
OUTPUT_FIELDS = (
    pa.field("text", pa.string()),
    pa.field("status", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("privacy", PRIVACY_TYPE),
    pa.field("content_tag", pa.binary()),
    pa.field("run_id", pa.string()),
)
# What the SQL function returns: those columns of the output that its caller does not already have.
STRUCT_FIELDS = OUTPUT_FIELDS[:4]
STATISTIC_FIELDS = tuple(pa.field(name, pa.int64()) for name in (WORDS_COLUMN, UNKNOWN_COLUMN, UNCHANGED_COLUMN))
INSPECTED_FIELDS = (
    pa.field(REASON_COLUMN, pa.string()),
    pa.field(TAG_COLUMN, pa.binary()),
    pa.field(TOKENS_COLUMN, pa.int64()),
)
STATISTICS = tuple(field.name for field in STATISTIC_FIELDS)
RESERVED_COLUMNS = tuple(field.name for field in OUTPUT_FIELDS)
