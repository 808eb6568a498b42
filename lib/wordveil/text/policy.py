"""Text policies: what is hidden, dropped or copied, and what follows from that for the guarantee.

A policy sees no text here; its relation and its exposures follow from its settings alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import get_type_hints

from wordveil.privacy.events import Composition
from wordveil.privacy.relations import Exposure, Relation
from wordveil.text.choices import (
    Case,
    Controls,
    Digits,
    Hyphens,
    Length,
    Output,
    Profile,
    Punctuation,
    Refused,
    Repeat,
    Slots,
    StopWords,
    TokeniserKind,
    UnknownWords,
)

# Version 2: what is copied enters the noise's context. Policies that copy nothing draw as before, and keep their
# fingerprint.
_VERSION, _COPYING_VERSION = 1, 2

SLOT_THRESHOLD, SLOT_START_THRESHOLD = 0.02, 0.002
"""The thresholds of a configuration that does not set them. A policy itself always names them."""


@dataclass(frozen=True)
class DraftPolicy:
    """The settings of a text policy, which may still contradict each other (:func:`find_faults`).

    Choices are explained in :mod:`wordveil.text.choices`.

    Attributes
    ----------
    tokeniser : TokeniserKind
        what a word is.
    hyphens : Hyphens
        whether a hyphen ends a word.
    unknown : UnknownWords
        what happens to words outside the vocabulary.
    case : Case
        in which case words are looked up, and whether the original's is restored.
    digits : Digits
        what happens to words with a digit.
    punctuation : Punctuation
        what happens to everything between words.
    controls : Controls
        what happens to control and format characters, tab and line breaks excepted.
    stop_words : StopWords
        what happens to the words of ``stop_word_list``.
    stop_word_list : tuple of str
        lower case, sorted. It is used only where stop-words are dropped or kept.
    length : Length
        whether the number of tokens is shown, and how it is hidden.
    n_max : int or None
        the public number of tokens under ``pad`` and ``sample``, 1 to 2^24 - 1. None under ``as_is``.
    output : Output
        whether the order of the words is kept.
    refused : Refused
        what happens to a record that is refused because of its text.
    repeat : Repeat
        whether a word that a record has more than once is drawn once. The words are those that are hidden, in the form
        in which they are looked up: words outside the vocabulary are told apart too.
    slots : Slots
        whether the words of carrier phrases are copied.
    ngrams : str or None
        the digest of the n-gram model that identifies carrier phrases. None under ``slots: all``, as are the next two.
    slot_threshold : float or None
        the least probability with which a copied word follows those before it, in (0, 1].
    slot_start_threshold : float or None
        the least share of all words of a copied one that follows none, in (0, 1].
    """

    tokeniser: TokeniserKind = TokeniserKind.WORDS
    hyphens: Hyphens = Hyphens.SPLIT
    unknown: UnknownWords = UnknownWords.MASK
    case: Case = Case.LOWER
    digits: Digits = Digits.HIDE
    punctuation: Punctuation = Punctuation.DROP
    controls: Controls = Controls.KEEP
    stop_words: StopWords = StopWords.HIDE
    stop_word_list: tuple[str, ...] = ()
    length: Length = Length.AS_IS
    n_max: int | None = None
    output: Output = Output.SEQUENCE
    refused: Refused = Refused.QUARANTINE
    repeat: Repeat = Repeat.EACH
    slots: Slots = Slots.ALL
    ngrams: str | None = None
    slot_threshold: float | None = None
    slot_start_threshold: float | None = None

    @property
    def copies(self) -> tuple[Exposure, ...]:
        """What is copied unchanged from the text."""
        copied = {
            Exposure.PUNCTUATION: self.punctuation == Punctuation.KEEP,
            Exposure.CASE: self.case == Case.RESTORE,
            Exposure.DIGITS: self.digits == Digits.KEEP,
            Exposure.STOP_WORDS: self.stop_words == StopWords.KEEP,
            Exposure.UNKNOWN_WORDS: self.unknown == UnknownWords.KEEP,
            Exposure.CARRIER_PHRASES: self.slots == Slots.CARRIER_PHRASES,
        }
        return tuple(exposure for exposure, is_copied in copied.items() if is_copied)

    @property
    def pads(self) -> bool:
        """Whether texts are padded, so that the mechanism needs a point for padding."""
        return self.length == Length.PAD

    @property
    def draws_once(self) -> bool:
        """Whether a word that a record has more than once is drawn once."""
        return self.repeat == Repeat.SAME

    @property
    def relation(self) -> Relation:
        """The pairs of texts for which the bound holds."""
        if self.copies or self.draws_once:
            return Relation.SAME_SKELETON
        return Relation.SAME_LENGTH if self.length == Length.AS_IS else Relation.ANY_TEXT

    @property
    def composition(self) -> Composition:
        """How the tokens' losses add up."""
        if self.draws_once:
            return Composition.DISTINCT
        if self.length == Length.SAMPLE:
            return Composition.SAMPLED
        return Composition.BAG if self.output == Output.BAG else Composition.SEQUENCE

    @property
    def exposes(self) -> tuple[str, ...]:
        """What is shown in addition to the sanitised words, sorted."""
        shown = {str(exposure) for exposure in self.copies}
        if self.length == Length.AS_IS:
            shown.add(Exposure.LENGTH)
        if self.draws_once:
            shown.add(Exposure.REPETITION)
        if self.refused == Refused.QUARANTINE:
            shown.add(Exposure.PRESENCE)
        return tuple(sorted(shown))


@dataclass(frozen=True)
class TextPolicy(DraftPolicy):
    """All that decides how a text becomes token ids and token ids become a text.

    Choices may be given by their values: ``TextPolicy(length="pad", n_max=8)``.

    Raises
    ------
    ValueError
        where settings contradict each other. It names each of them.
    """

    def __post_init__(self) -> None:
        if faults := find_faults(self):
            raise ValueError("; ".join(f"{name}: {problem}" for name, problem in faults))
        for name, choice in CHOICES.items():
            object.__setattr__(self, name, choice(getattr(self, name)))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all settings that differ from the defaults, hexadecimal. So a new setting changes no old
        policy.
        """
        plain = {field.name: field.default for field in fields(self)}
        chosen = {name: value for name, value in asdict(self).items() if value != plain[name]}
        version = _COPYING_VERSION if self.copies else _VERSION
        content = json.dumps({"version": version, **chosen}, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


def _choices_of(policy: type[DraftPolicy]) -> dict[str, type[StrEnum]]:
    hints = get_type_hints(policy)
    return {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, StrEnum)}


CHOICES: Mapping[str, type[StrEnum]] = _choices_of(DraftPolicy)
"""The settings of a policy that are choices."""

PROFILES: Mapping[str, Mapping[str, object]] = {
    # Covers every string: nothing is copied, unknown words are covered, the length is hidden by n_max (required).
    Profile.STRICT: {"length": Length.PAD},
    # Keeps punctuation, case, stop-words and length, but no character that cannot be seen. The bound holds for texts of
    # the same skeleton only.
    Profile.READABLE: {
        "case": Case.RESTORE,
        "punctuation": Punctuation.KEEP,
        "controls": Controls.DROP,
        "stop_words": StopWords.KEEP,
    },
    # The same, with the phrases that are common in public text instead of stop-words. An n-gram model is required.
    Profile.CARRIER_PHRASES: {
        "case": Case.RESTORE,
        "punctuation": Punctuation.KEEP,
        "controls": Controls.DROP,
        "slots": Slots.CARRIER_PHRASES,
    },
}
"""The shipped profiles, as settings that differ from the defaults of :class:`TextPolicy`."""


def find_faults(policy: DraftPolicy) -> list[tuple[str, str]]:
    """List the settings that contradict each other, as (setting, what is wrong and how to fix it)."""
    faults = [
        (name, f"{getattr(policy, name)!r} is not one of {', '.join(choice)}.")
        for name, choice in CHOICES.items()
        if getattr(policy, name) not in tuple(choice)
    ]
    return [*faults, *_length_faults(policy), *_order_faults(policy), *_repeat_faults(policy), *_slot_faults(policy)]


def _length_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List faults of ``length`` and ``n_max``."""
    hides_length = policy.length in (Length.PAD, Length.SAMPLE)
    if hides_length and (policy.n_max is None or not 0 < policy.n_max < 2**24):
        yield "n_max", f"length: {policy.length} needs a public number of tokens, 1 to 16777215."
    if not hides_length and policy.n_max is not None:
        yield "n_max", "has no meaning with length: as_is. Remove it, or set length to pad or sample."
    if hides_length and policy.copies:
        yield (
            "length",
            (
                f"{policy.length} hides the length, but the policy copies {', '.join(policy.copies)}, which shows it. "
                "Use as_is, or copy nothing."
            ),
        )


def _order_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List faults of ``output``, ``refused`` and stop-words."""
    if policy.copies and policy.output == Output.BAG:
        yield (
            "output",
            (
                f"bag destroys the order, but the policy copies {', '.join(policy.copies)} in its place. "
                "Use sequence, or copy nothing."
            ),
        )
    if policy.refused == Refused.EMPTY and policy.relation is not Relation.ANY_TEXT:
        yield (
            "refused",
            (
                "empty replaces a refused record with the empty text, which is safe only with a hidden length"
                + (
                    " and repeat: each. Use quarantine."
                    if policy.draws_once
                    else ". Use quarantine, or set length to pad or sample."
                )
            ),
        )
    if policy.stop_words != StopWords.HIDE and not policy.stop_word_list:
        yield "stop_word_list", f"stop_words: {policy.stop_words} needs a list."


def _repeat_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List the one way of hiding the length that repetition contradicts."""
    if policy.draws_once and policy.length == Length.SAMPLE:
        yield (
            "repeat",
            (
                "same contradicts length: sample: equal words among those sampled would show how often the text has "
                "them, which the bound of a sample does not cover. Use length: pad or as_is, or repeat: each."
            ),
        )


def _slot_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List settings of slot selection that are missing, or that are set without it."""
    selects = policy.slots == Slots.CARRIER_PHRASES
    useless = "has no meaning with slots: all. Remove it, or set slots: carrier_phrases."
    if selects and policy.stop_words != StopWords.HIDE:
        yield (
            "stop_words",
            (
                f"{policy.stop_words} contradicts slots: carrier_phrases, where the n-gram model decides about "
                "stop-words too. Remove it."
            ),
        )
    if selects and policy.ngrams is None:
        yield "ngrams", "slots: carrier_phrases needs an n-gram model of public text. `wordveil ngrams` builds one."
    if not selects and policy.ngrams is not None:
        yield "ngrams", useless
    for name in ("slot_threshold", "slot_start_threshold"):
        value = getattr(policy, name)
        if not selects and value is not None:
            yield name, useless
        if selects and (value is None or not 0 < value <= 1):
            yield name, "slots: carrier_phrases needs a probability, above 0 and at most 1."


def with_profile(profile: str, **settings: object) -> TextPolicy:
    """Make the policy of a shipped profile, with some settings replaced.

    Raises
    ------
    KeyError
        where there is no such profile.
    ValueError
        where settings contradict each other.
    """
    return TextPolicy(**{**PROFILES[profile], **settings})  # type: ignore[arg-type]
