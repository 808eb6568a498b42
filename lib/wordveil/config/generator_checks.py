"""Faults of a configuration whose mechanism draws a text as a whole, or whose weights the private corpus trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from wordveil.config.schema import OutputSection, TextSection
from wordveil.errors import Fault
from wordveil.mechanisms.base import Mechanism
from wordveil.text.choices import Length
from wordveil.text.contradictions import find_context_faults
from wordveil.text.draft import DraftPolicy


def find_text_conflicts(mechanism: type[Mechanism[Any]], text: TextSection) -> Iterator[Fault]:
    """List settings of ``text`` under which a mechanism that reads the words around a position would see no text."""
    if mechanism.reads_context:
        for name, problem in find_context_faults(mechanism.name, DraftPolicy(**text.chosen_settings())):
            yield Fault(f"text.{name}", str(text.chosen_settings()[name]), problem)


def find_corpus_faults(
    mechanism: type[Mechanism[Any]], written: Mapping[str, Any], text: TextSection | None, output: OutputSection | None
) -> Iterator[Fault]:
    """List what weights that the private corpus trained cannot be drawn with: no ledger, or visible lengths.

    ``written``: the section ``mechanism`` as the user wrote it.
    """
    if written.get("corpus") != "private" or "corpus" not in {item.name for item in fields(mechanism.settings_type)}:
        return
    why = "The private corpus trained the weights, so that every draw costs every record"
    if output and output.format != "delta":
        problem = (
            f"needs output.format: delta and a ledger. {why}, and only a ledger counts them all. Set both, or train "
            "the weights on public text and set corpus: public."
        )
        yield Fault("mechanism.corpus", "private", problem)
    if text and text.chosen_settings().get("length", Length.AS_IS) != Length.PAD:
        problem = f"must be pad with mechanism.corpus: private. {why}: their numbers of tokens must be public."
        yield Fault("text.length", "", problem)
