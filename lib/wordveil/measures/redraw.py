"""Sanitising of texts by a bundle and a text policy, under keys that no release has.

An evaluation never uses the release's key: an adaptive attacker draws its own copies of known texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import MasterKey, ReleaseKeys, make_throwaway_keys
from wordveil.records.columns import ONE_TEXT, TextColumns
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel

_BATCH = 512
_NAME = "evaluation"


@dataclass(frozen=True)
class BundleSanitiser:
    """Bundle with a text policy, and the n-gram model that it names. ``columns``: for :meth:`sanitise_records`."""

    bundle: Bundle
    policy: TextPolicy
    ngrams: NgramModel | None = None
    columns: TextColumns = ONE_TEXT

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:
        """Sanitise texts, one for each."""
        read = {TEXT_COLUMN: pa.array(texts, pa.string()), REASON_COLUMN: pa.nulls(len(texts), pa.string())}
        return replace(self, columns=ONE_TEXT).sanitise_records(pa.table(read), seed)

    def sanitise_records(self, records: pa.Table, seed: int | None = None) -> list[str]:
        """Sanitise the texts of records, one for each; those of several text columns are on lines of their own.

        ``records``: the columns :attr:`wordveil.records.columns.TextColumns.inputs`, then ``__reason``, all strings, as
        :class:`wordveil.records.sanitiser.RecordSanitiser` reads them. ``seed``: as in :meth:`sanitise`.
        """
        limit = self.bundle.count_preview(records.num_rows)
        settings = RecordSettings(_NAME, _NAME, self.policy, (), columns=self.columns, max_records=limit)
        sanitiser = RecordSanitiser(settings, self.bundle, _make_keys(seed), self.ngrams)
        ids = pa.array(np.arange(records.num_rows).astype(str), pa.string())
        written: list[str] = []
        for batch in records.add_column(0, "id", ids).to_batches(_BATCH):
            for result in sanitiser.sanitise(batch):
                written += _join_texts(result, self.columns)
        return written


def _join_texts(batch: pa.RecordBatch, columns: TextColumns) -> list[str]:
    texts = []
    for first, *inside in columns.paths:
        values = batch.column(first)
        for name in inside:
            values = pc.struct_field(values, name)
        texts.append(pc.fill_null(values, ""))
    joined: list[str] = pc.binary_join_element_wise(*texts, "\n").to_pylist()
    return joined


def _make_keys(seed: int | None) -> ReleaseKeys:
    if seed is None:
        return make_throwaway_keys()
    return MasterKey(sha256(b"wordveil: evaluation on public texts, %d" % seed).digest()).for_release(_NAME)
