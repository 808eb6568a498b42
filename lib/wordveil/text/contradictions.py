"""Contradictions between settings of a text policy, each with its fix."""

from __future__ import annotations

from collections.abc import Iterator

from wordveil.privacy.relations import Exposure, Relation
from wordveil.text.choices import (
    Articles,
    Case,
    Digits,
    Length,
    Names,
    Output,
    Refused,
    Slots,
    StopWordCapitals,
    StopWords,
)
from wordveil.text.draft import CHOICES, DraftPolicy
from wordveil.text.language import LANGUAGES, find_language_faults
from wordveil.text.types.classes import (
    ALLOWED,
    DIGIT_TYPES,
    DRAWN_ACTIONS,
    LISTED_LANGUAGES,
    NAME_TYPES,
    TokenType,
    TypeAction,
)


def find_faults(policy: DraftPolicy) -> list[tuple[str, str]]:
    """List the settings that contradict each other, as (setting, fault and remedy)."""
    faults = [
        (name, f"{getattr(policy, name)!r} is not one of {', '.join(choice)}.")
        for name, choice in CHOICES.items()
        if getattr(policy, name) not in tuple(choice)
    ]
    if type_faults := list(_type_faults(policy)):
        return [*faults, *type_faults]  # What the policy copies is not known.
    return [
        *faults,
        *_digit_faults(policy),
        *_length_faults(policy),
        *_order_faults(policy),
        *_repeat_faults(policy),
        *_slot_faults(policy),
        *find_language_faults(policy),
        *_list_faults(policy),
    ]


def _type_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List classes and actions that do not exist or do not go together."""
    for kind, action in dict(policy.types).items():
        if kind not in tuple(TokenType):
            yield f"types.{kind}", f"is no class. Classes: {', '.join(TokenType)}."
        elif action not in ALLOWED[TokenType(kind)]:
            allowed = ", ".join(ALLOWED[TokenType(kind)])
            yield f"types.{kind}", f"{str(action)!r} cannot be done with this class. Use one of {allowed}."
        elif kind in NAME_TYPES and policy.names == Names.WORDS and action != TypeAction.WORDS:
            yield f"types.{kind}", "has no meaning with names: words. Remove it, or set names: gazetteer."


def _list_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List settings that need public lists of a language that has none."""
    if not policy.draws_types or policy.language in LISTED_LANGUAGES or policy.language not in LANGUAGES:
        return
    drawn = [kind for kind, action in policy.type_actions.items() if action in DRAWN_ACTIONS]
    fixes = ["names: words"] if policy.names != Names.WORDS else []
    fixes += ["types: none, or mask or tag for each class"] if drawn else []
    has = f"there are none for {policy.language}, only for {', '.join(LISTED_LANGUAGES)}"
    yield (
        "names" if policy.names != Names.WORDS else f"types.{drawn[0]}",
        f"needs public lists, and {has}. Set {'; and '.join(fixes)}.",
    )


def _digit_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List classes of figures that ``digits`` would treat otherwise."""
    digit_types = [kind for kind in DIGIT_TYPES if kind in policy.type_actions]
    if policy.digits != Digits.HIDE and digit_types:
        first = f"types.{digit_types[0]}: {policy.type_actions[digit_types[0]]}"
        fix = f"Remove digits, or set {', '.join(digit_types)} to words."
        yield "digits", f"{policy.digits} contradicts {first}, which decides about words with digits. {fix}"


def _length_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List faults of ``length`` and ``n_max``."""
    hides_length = policy.length in (Length.PAD, Length.SAMPLE)
    if hides_length and (policy.n_max is None or not 0 < policy.n_max < 2**24):
        yield "n_max", f"length: {policy.length} needs a public number of tokens, 1 to 16777215."
    if not hides_length and policy.n_max is not None:
        other = ", or set length to pad" + ("" if policy.draws_once else " or sample")
        if policy.copies:
            other = f". What hides the length copies nothing, such as {{profile: strict, n_max: {policy.n_max}}} alone"
        yield "n_max", f"has no meaning with length: as_is. Remove it{other}."
    if hides_length and policy.copies:
        copied = f"the policy copies {', '.join(policy.copies)}, which shows it."
        fix = "Use as_is without n_max, or copy nothing, as {profile: strict} alone does."
        yield "length", f"{policy.length} hides the length, but {copied} {fix}"


def _order_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List faults of ``output``, ``refused`` and stop-words."""
    can_copy = policy.length == Length.AS_IS and policy.output == Output.SEQUENCE
    fix = "Remove it, or set stop_words: keep." if can_copy else "Remove it."
    if policy.stop_words == StopWords.HIDE and policy.stop_word_capitals != StopWordCapitals.MATCH:
        yield "stop_word_capitals", f"has no meaning with stop_words: hide. {fix}"
    if policy.articles == Articles.AGREE and Exposure.STOP_WORDS not in policy.copies:
        yield "articles", f"agree has a meaning only with stop_words: keep. {fix}"
    elif policy.articles == Articles.AGREE and (policy.case == Case.EXACT or policy.language != "en"):
        yield "articles", "agree knows English words in lower case. Remove it, or set language: en and another case."
    if policy.copies and policy.output == Output.BAG:
        copied = f"the policy copies {', '.join(policy.copies)} in its place. Use sequence, or copy nothing."
        yield "output", f"bag destroys the order, but {copied}"
    if policy.refused == Refused.EMPTY and policy.relation is not Relation.ANY_TEXT:
        fix = ". Use quarantine, or set length to pad or sample."
        fix = ". Use quarantine." if policy.copies else fix
        fix = " and repeat: each. Use quarantine." if policy.draws_once else fix
        yield (
            "refused",
            f"empty replaces a refused record with the empty text, which is safe only with a hidden length{fix}",
        )
    if policy.stop_words != StopWords.HIDE and not policy.stop_word_list:
        yield "stop_word_list", f"stop_words: {policy.stop_words} needs a list."


def _repeat_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List settings that contradict repetition: a sampled length."""
    if policy.draws_once and policy.length == Length.SAMPLE:
        problem = (
            "same contradicts length: sample: equal words among those sampled would show how often the text has them, "
            "which the bound of a sample does not cover. Use length: pad or as_is, or repeat: each."
        )
        yield "repeat", problem


def find_context_faults(mechanism: str, policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List settings that destroy a text for a mechanism that reads the words around a position.

    Each is (setting, fault and remedy).
    """
    reads = f"contradicts mechanism.name: {mechanism}, which draws a text as a whole:"
    if policy.draws_once:
        yield "repeat", f"same {reads} it would see each word once, and no text. Remove it, or take another mechanism."
    if policy.length == Length.SAMPLE:
        fix = "Use length: pad, which hides the length too."
        yield "length", f"sample {reads} words drawn at random from it are no text. {fix}"


def _slot_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List settings of slot selection that are missing, or that are set without it."""
    selects = policy.slots == Slots.CARRIER_PHRASES
    useless = "has no meaning with slots: all. Remove it, or set slots: carrier_phrases."
    if selects and policy.stop_words != StopWords.HIDE:
        model = "where the n-gram model decides about stop-words too. Remove it."
        yield "stop_words", f"{policy.stop_words} contradicts slots: carrier_phrases, {model}"
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
