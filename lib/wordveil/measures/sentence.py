"""Preview of a public sentence before and after a run, drawn with a throwaway key."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa

from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN, UNKNOWN_COLUMN, WORDS_COLUMN
from wordveil.text.codec import Codec, TokenReading
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel

SENTENCE = (
    "The last train to the coast leaves at seven, and the weather in the mountains will stay dry until Friday evening."
)
"""Written for this project, in English."""
_RELEASE = "preview"


@dataclass(frozen=True)
class SentencePreview:
    """Sentence under a text policy and a mechanism.

    ``text``: the sentence. ``output``: what it becomes; None where it is refused. ``reason``: why it is refused; None
    where it is not. ``words``, ``unknown``: words of the sentence, and those of them outside the vocabulary; 0 where it
    is refused. ``written``: words of what it becomes, between spaces; 0 where it is refused. Padding may add words.
    ``tokens``: what each token of the sentence is taken for; empty where it is refused.
    """

    text: str
    output: str | None
    reason: str | None
    words: int
    unknown: int
    written: int
    tokens: list[TokenReading] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**asdict(self), "tokens": [reading._asdict() for reading in self.tokens]}


def preview_sentence(bundle: Bundle, policy: TextPolicy, text: str, model: NgramModel | None = None) -> SentencePreview:
    """Show what a run would write for ``text``, a public sentence. ``model``: the policy's n-gram model, if it has
    one.
    """
    settings = RecordSettings(_RELEASE, "", policy, (), max_records=bundle.count_preview(1))
    sanitiser = RecordSanitiser(settings, bundle, make_throwaway_keys(), model)
    columns = {"id": ["sentence"], TEXT_COLUMN: [text], REASON_COLUMN: pa.nulls(1, pa.string())}
    (batch,) = sanitiser.sanitise(pa.RecordBatch.from_pydict(columns))
    (row,) = batch.to_pylist()
    output = row["text"]
    return SentencePreview(
        text,
        output,
        row["reason"],
        row[WORDS_COLUMN] or 0,
        row[UNKNOWN_COLUMN] or 0,
        len((output or "").split()),
        Codec(policy, bundle.vocabulary, model, bundle.lists).explain(text) if output is not None else [],
    )


def preview_default(bundle: Bundle, policy: TextPolicy, model: NgramModel | None = None) -> SentencePreview | None:
    """Show what a run would write for :data:`SENTENCE`.

    None if it is refused, or if the vocabulary lacks most of its words, such as one of another language.
    """
    preview = preview_sentence(bundle, policy, SENTENCE, model)
    return None if preview.output is None or 2 * preview.unknown > preview.words else preview
