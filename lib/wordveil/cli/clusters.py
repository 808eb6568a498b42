"""The table of `plan --words` with the words that are indistinguishable from each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wordveil.cli.output import Table

if TYPE_CHECKING:
    from wordveil.measures.preview import ClusterPreview

_MEMBERS = 12


def cluster_table(clusters: Sequence[ClusterPreview]) -> Table:
    """Make a table of the words that are indistinguishable from each word, and their common output."""
    table = Table("Nobody can tell which of its cluster a word was")
    for heading in ("word", "words in its cluster", "of these", "written for each of them"):
        table.add_column(heading)
    for cluster in clusters:
        count = len(cluster.members)
        members = ", ".join(cluster.members[:_MEMBERS]) + ", ..." * (count > _MEMBERS)
        written = ", ".join(f"{word} {share:.2%}" for word, share in cluster.written)
        table.add_row(cluster.word, f"{count:,}", members, written)
    return table
