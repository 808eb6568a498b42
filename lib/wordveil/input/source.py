"""Corpus: a table by its path or by its name, and the way in which it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from wordveil.input.columns import Columns
from wordveil.privacy.relations import Exposure

PARSED_FORMATS = frozenset({"csv", "json", "xml"})
"""Formats of rows that may be impossible to parse. Such a row is quarantined."""
VERSIONED_FORMATS = frozenset({"delta", "iceberg"})
"""Formats of tables whose earlier versions can be read."""
# Other names of Spark's own readers: their former packages, and their classes.
_READER = re.compile(
    r"(?:com\.databricks\.spark|org\.apache\.spark\.sql(?:\.execution\.datasources)?(?:\.v2)?)"
    r"\.(avro|binaryfile|csv|delta|jdbc|json|orc|parquet|text|xml)(?:\..+)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Source(Columns):
    """Corpus, by the settings of a configuration's section ``input``, which explains them."""

    path: str | None = None
    table: str | None = None
    format: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    options_env: Mapping[str, str] = field(default_factory=dict)
    columns: str | None = None
    rename: Mapping[str, str] = field(default_factory=dict)
    cast: Mapping[str, str] = field(default_factory=dict)
    version: int | None = None
    timestamp: str | None = None
    where: str | None = None
    changes: str | None = None

    @property
    def setting(self) -> str:
        """Setting that names the table, or the source if it has neither name nor path."""
        return "input.table" if self.table else "input.path" if self.path else "input.format"

    @property
    def name(self) -> str:
        """Path or name of the table, or the source's format."""
        return self.table or self.path or self.format or ""

    @property
    def known_texts(self) -> tuple[str, ...]:
        """Names of the text columns, and those that they have in the table."""
        old_names = {new: old for old, new in self.rename.items()}
        return (*self.texts, *(old_names.get(path[0], path[0]) for path in self.text_paths))

    @property
    def shown(self) -> tuple[str, ...]:
        """Exposures by formats in which a text can make its row malformed."""
        is_parsed = self.table is None and self.kind in PARSED_FORMATS
        return (str(Exposure.PRESENCE),) if is_parsed else ()

    @property
    def reader(self) -> str:
        """Format by which a path is read, with the short names of Spark's own readers."""
        known = _READER.fullmatch(self.format or "parquet")
        return known[1].lower() if known else self.format or "parquet"

    @property
    def kind(self) -> str:
        """Format in lower case, by which wordveil identifies it."""
        return self.reader.lower()

    @property
    def needs_delta(self) -> bool:
        """True if the session needs Delta. The format of a catalogue's table is known only once it is opened."""
        return self.kind == "delta" or self.table is not None

    @property
    def may_have_versions(self) -> bool:
        """True if the table has versions, as far as is known before it is opened."""
        return self.kind in VERSIONED_FORMATS or self.table is not None
