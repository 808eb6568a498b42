"""Statuses of records, reasons of refusals and withdrawals, and the columns of inputs and outputs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

RELEASED = "released"
QUARANTINED = "quarantined"
WITHDRAWN = "withdrawn"
# Reasons of withdrawals. A requested withdrawal is final, even while the input still has the record.
REQUESTED, DELETED, ABSENT = "requested", "deleted", "absent"
# Reasons about ids: a record without a valid id, such as a malformed row, cannot be drawn, whatever its text.
NULL_ID, INVALID_ID, DUPLICATE_ID, MALFORMED = "null_id", "invalid_id", "duplicate_id", "malformed"
ID_REASONS = (NULL_ID, INVALID_ID, DUPLICATE_ID, MALFORMED)
# Reasons about texts before they are split into words; the codec adds its own.
NULL_TEXT, OVERSIZE, UNDECODABLE, TOO_MANY_TOKENS = "null_text", "oversize", "undecodable", "too_many_tokens"
TEXT_REASONS = (
    *(NULL_TEXT, OVERSIZE, UNDECODABLE, TOO_MANY_TOKENS),
    *("script_without_word_spaces", "unknown_words", "control_characters"),
    *("other_language", "too_many_unknown_words"),
)
LANGUAGE_MARK = "language:"
"""Prefix, in ``__reason``, of the language that a record names (``input.language``). That record is not refused."""
# Columns of the input of :class:`RecordSanitiser` and of its output that no table keeps.
TEXT_COLUMN, REASON_COLUMN = "__text", "__reason"
# In inputs whose rows may be impossible to parse: whether this is such a row.
MALFORMED_COLUMN = "__malformed"
WORDS_COLUMN, UNKNOWN_COLUMN, UNCHANGED_COLUMN = "__words", "__unknown", "__unchanged"
# Columns of what :meth:`RecordSanitiser.inspect` returns, besides the id and ``__reason``.
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
# With one text column; :class:`wordveil.records.columns.TextColumns` has the fields for several.
OUTPUT_FIELDS = (
    pa.field("text", pa.string()),
    pa.field("status", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("privacy", PRIVACY_TYPE),
    pa.field("content_tag", pa.binary()),
    pa.field("run_id", pa.string()),
)
SYMBOLS = "symbols"
"""Column with the drawn symbols of a record: of whole texts, in the order of text columns or sentences; of words and
padding, rising.
"""
SYMBOLS_FILE = "_symbols.json"
"""File beside an output: the law and the meaning of the numbers in its column ``symbols``."""
SYMBOLS_FIELD = pa.field(SYMBOLS, pa.list_(pa.int32()))
STATISTIC_FIELDS = tuple(pa.field(name, pa.int64()) for name in (WORDS_COLUMN, UNKNOWN_COLUMN, UNCHANGED_COLUMN))
INSPECTED_FIELDS = (
    pa.field(REASON_COLUMN, pa.string()),
    pa.field(TAG_COLUMN, pa.binary()),
    pa.field(TOKENS_COLUMN, pa.int64()),
)
STATISTICS = tuple(field.name for field in STATISTIC_FIELDS)
RESERVED_COLUMNS = tuple(field.name for field in OUTPUT_FIELDS)
INTERNAL_COLUMNS = ("status", "reason", "content_tag", "run_id")
"""Columns of outputs and draws that are never published."""


def is_internal(name: str) -> bool:
    """Return whether a column of an output, or of a release's draws, is never published."""
    return name.startswith("__") or name in INTERNAL_COLUMNS


def split_reasons(reasons: NDArray[np.object_]) -> tuple[NDArray[np.object_], list[str | None]]:
    """Split the values of ``__reason``, object ``(records,)``, into reasons and languages, each None if absent."""
    named = [reason[len(LANGUAGE_MARK) :] if str(reason).startswith(LANGUAGE_MARK) else None for reason in reasons]
    marked = np.array([language is not None for language in named], np.bool_)
    left = reasons.copy()
    left[marked] = None
    return left, named
