"""Sanitise texts as a bundle and a text policy would, under keys that no release has.

An evaluation never uses the release's key: an adaptive attacker draws its own copies of texts that it knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import pyarrow as pa

from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import MasterKey, ReleaseKeys, make_throwaway_keys
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel

_BATCH = 512
_NAME = "evaluation"


@dataclass(frozen=True)
class BundleSanitiser:
    """A bundle with a text policy.

    Attributes
    ----------
    bundle
        an opened bundle.
    policy
        the text policy.
    ngrams
        the n-gram model that the policy names; None where it names none.
    """

    bundle: Bundle
    policy: TextPolicy
    ngrams: NgramModel | None = None

    def sanitise(self, texts: Sequence[str], seed: int | None = None) -> list[str]:
        """The sanitised texts, one for each (:class:`wordveil.evaluation.classifiers.TextSanitiser`)."""
        settings = RecordSettings(_NAME, _NAME, self.policy, ())
        sanitiser = RecordSanitiser(settings, self.bundle, _make_keys(seed), self.ngrams)
        written: list[str] = []
        for start in range(0, len(texts), _BATCH):
            part = texts[start : start + _BATCH]
            ids = pa.array([str(number) for number in range(start, start + len(part))])
            columns = [ids, pa.array(part, pa.string()), pa.nulls(len(part), pa.string())]
            batch = pa.RecordBatch.from_arrays(columns, names=["id", TEXT_COLUMN, REASON_COLUMN])
            for result in sanitiser.sanitise(batch):
                written += [text or "" for text in result.column("text").to_pylist()]
        return written


def _make_keys(seed: int | None) -> ReleaseKeys:
    if seed is None:
        return make_throwaway_keys()
    return MasterKey(sha256(b"wordveil: evaluation on public texts, %d" % seed).digest()).for_release(_NAME)
