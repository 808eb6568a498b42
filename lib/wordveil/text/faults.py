"""Faults of a text policy as a configuration writes it, each with its fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wordveil.errors import Fault, did_you_mean, shown_value
from wordveil.privacy.relations import Exposure
from wordveil.text.choices import Profile, Repeat, UnknownWords
from wordveil.text.contradictions import find_faults
from wordveil.text.draft import WORD_COPIES, DraftPolicy
from wordveil.text.language import find_missing_packages
from wordveil.text.stop_words import find_list_problem

_CONFINED = {
    Exposure.DIGITS: "digits: hide or drop",
    Exposure.STOP_WORDS: "stop_words: hide or drop",
    Exposure.UNKNOWN_WORDS: "unknown: mask or drop",
    Exposure.CARRIER_PHRASES: "slots: all",
    Exposure.TYPES: "types: none and names: words",
}
"""Values to set instead of those that copy words."""
_NO_LENGTH = (
    "profile: strict (the default) hides the length and needs n_max: the public number of words to which every text is "
    "cut or filled, 1 to 16777215, e.g. n_max: 64. Set it, or set length: as_is, which shows the length."
)


def find_policy_faults(draft: DraftPolicy, written: Mapping[str, Any], names: Sequence[str] = ()) -> Iterator[Fault]:
    """List the faults of a configuration's section ``text``, which chooses the policy ``draft``.

    ``written``: the settings of the section with their profile, None for those that are not set. ``names``: the text
    columns, if they are known.
    """
    is_strict = written["profile"] == Profile.STRICT
    if names and isinstance(written["n_max"], Mapping):
        yield from _width_faults(written["n_max"], names)
    for name, problem in find_faults(draft):
        if name == "n_max" and is_strict and written["length"] is None:
            yield Fault("text.n_max", "", _NO_LENGTH)
        else:
            list_problem = find_list_problem(draft.language) if name == "stop_word_list" else None
            yield Fault(f"text.{name}", shown_value(written.get(name)), list_problem or problem)
    if written.get("keep_only") and (copied := [name for name in draft.copies if name in WORD_COPIES]):
        fixes = ", ".join(_CONFINED[name] for name in copied)
        problem = f"confines the output to listed words, but the policy writes others. Set {fixes}, or remove it."
        yield Fault("text.keep_only", shown_value(written["keep_only"]), problem)
    if written.get("keep_only") and draft.unknown == UnknownWords.QUARANTINE:
        problem = "refuses each record with a word that text.keep_only does not list. Set unknown: drop, or mask."
        yield Fault("text.unknown", draft.unknown, problem)
    for name, problem in find_missing_packages(draft):
        yield Fault(f"text.{name}", shown_value(written[name]), problem)
    if is_strict and written["repeat"] == Repeat.SAME:
        problem = (
            "contradicts profile: strict (the default), whose bound covers any two texts: repetition shows which "
            "places of a text hold the same word. Remove it, or set profile: readable; with case: lower, "
            "punctuation: drop, stop_words: hide, types: none and names: words that copies nothing, and length: pad "
            "with n_max still hides the number of words that are not repeated."
        )
        yield Fault("text.repeat", Repeat.SAME, problem)


def _width_faults(widths: Mapping[str, int], names: Sequence[str]) -> Iterator[Fault]:
    """List faults of a mapping ``n_max`` whose keys are not the text columns."""
    for name in widths:
        if name not in names:
            problem = f"is not a column of input.text ({', '.join(names)}).{did_you_mean(name, names)}"
            yield Fault(f"text.n_max.{name}", str(widths[name]), problem)
    if missing := [name for name in names if name not in widths]:
        problem = f"lacks {', '.join(missing)}. Name every column of input.text, or give one number for all."
        yield Fault("text.n_max", "", problem)
