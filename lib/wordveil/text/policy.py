"""Text policies: hidden, dropped and copied parts of a text, and their consequences for the guarantee."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, cast

from wordveil.errors import Fault, did_you_mean, shown_value
from wordveil.privacy.relations import Exposure, Relation
from wordveil.text.choices import (
    Articles,
    Case,
    Controls,
    Digits,
    DrawnUnit,
    Length,
    Names,
    Output,
    Profile,
    Punctuation,
    Refused,
    Repeat,
    Slots,
    StopWordCapitals,
    StopWords,
    UnknownWords,
)
from wordveil.text.draft import CHOICES, WORD_COPIES, DraftPolicy
from wordveil.text.language import LANGUAGES, find_language_faults, find_missing_packages, find_packages
from wordveil.text.stop_words import find_list_problem
from wordveil.text.types.classes import (
    CLASSES,
    DRAWN_ACTIONS,
    LISTED_LANGUAGES,
    TypeAction,
    list_classes,
    masked_actions,
    newest_version,
    readable_actions,
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
        *_unit_faults(policy),
        *_digit_faults(policy),
        *_length_faults(policy),
        *_order_faults(policy),
        *_slot_faults(policy),
        *find_language_faults(policy),
        *_list_faults(policy),
    ]


def _type_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List classes and actions that do not exist or do not go together."""
    version, newest = policy.types_version, newest_version()
    if not 1 <= version <= newest:
        yield "types_version", f"{version} is unknown: this wordveil has 1 to {newest}. Use one of these."
        return
    for kind, action in dict(policy.types).items():
        if kind not in CLASSES:
            yield f"types.{kind}", f"is no class. Classes: {', '.join(list_classes(version))}."
        elif CLASSES[kind].since > version:
            since = CLASSES[kind].since
            yield f"types.{kind}", f"came with version {since} of the list of classes. Set types_version: {since}."
        elif action not in CLASSES[kind].allowed:
            allowed = ", ".join(CLASSES[kind].allowed)
            yield f"types.{kind}", f"{str(action)!r} cannot be done with this class. Use one of {allowed}."
        elif CLASSES[kind].list and policy.names == Names.WORDS and action != TypeAction.WORDS:
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
    digit_types = [kind for kind in policy.type_actions if CLASSES[kind].has_digits]
    if policy.digits != Digits.HIDE and digit_types:
        first = f"types.{digit_types[0]}: {policy.type_actions[digit_types[0]]}"
        fix = f"Remove digits, or set {', '.join(digit_types)} to words."
        yield "digits", f"{policy.digits} contradicts {first}, which decides about words with digits. {fix}"


def _unit_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List settings that contradict one draw for a text or a sentence."""
    if policy.draws_words:
        return
    whole = f"unit: {policy.unit} draws one symbol for a whole {policy.unit}"
    if policy.copies:
        copied = ", ".join(policy.copies)
        yield "unit", f"{policy.unit} copies nothing, and the policy copies {copied}. Set profile: passages."
    allowed = (Length.PAD,) if policy.unit == DrawnUnit.TEXT else (Length.PAD, Length.AS_IS)
    if policy.length not in allowed:
        yield "length", f"{policy.length} has no meaning where {whole}. Remove it, or set profile: passages."
    for name, plain in (("repeat", Repeat.EACH), ("output", Output.SEQUENCE), ("unknown", UnknownWords.MASK)):
        if getattr(policy, name) != plain:
            yield name, f"{getattr(policy, name)} has no meaning where {whole}. Remove it."


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
    """List faults of ``output``, ``refused``, ``repeat`` and stop-words."""
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
    if policy.draws_once and policy.length == Length.SAMPLE:
        problem = (
            "same contradicts length: sample: equal words among those sampled would show how often the text has them, "
            "which the bound of a sample does not cover. Use length: pad or as_is, or repeat: each."
        )
        yield "repeat", problem


def find_context_faults(mechanism: str, policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List settings that destroy a text for a mechanism that reads a word's context, as (setting, fault and remedy)."""
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


# Policies that copy: since version 2 what is copied enters the noise's context; version 3 copies less and takes more
# tokens for names. Version 2 if a refused record counts as the empty text, which nothing may show: a record that is no
# longer refused must not be drawn again. Others draw as before, and keep their fingerprint.
_VERSION, _EMPTY_VERSION, _COPYING_VERSION = 1, 2, 3

SLOT_THRESHOLD, SLOT_START_THRESHOLD = 0.02, 0.002
"""Thresholds of a configuration that does not set them."""


@dataclass(frozen=True)
class TextPolicy(DraftPolicy):
    """Policy of converting a text to token ids and back.

    Choices may be given by their values: ``TextPolicy(length="pad", n_max=8)``. Raises :class:`ValueError`, which names
    each contradiction of settings.
    """

    def __post_init__(self) -> None:
        if faults := find_faults(self):
            raise ValueError("; ".join(f"{name}: {problem}" for name, problem in faults))
        for name, choice in CHOICES.items():
            object.__setattr__(self, name, choice(getattr(self, name)))
        object.__setattr__(self, "types", self.stated_types)
        if self.packages is None:
            object.__setattr__(self, "packages", find_packages(self))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the settings that differ from the defaults, in hex: a new setting changes no old policy."""
        plain = {field.name: field.default for field in fields(self)}
        chosen = {name: value for name, value in asdict(self).items() if value != plain[name]}
        if not self.type_actions:  # no version of the classes changes anything
            chosen.pop("types_version", None)
        version = _COPYING_VERSION if self.copies else _EMPTY_VERSION if self.refused == Refused.EMPTY else _VERSION
        content = json.dumps({"version": version, **chosen}, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


_READABLE: Mapping[str, object] = {
    "case": Case.RESTORE,
    "punctuation": Punctuation.KEEP,
    "controls": Controls.DROP,
    "types": readable_actions(),
    "names": Names.GAZETTEER,
}
PROFILES: Mapping[str, Mapping[str, object]] = {
    # Covers every string: nothing is copied, unknown words are covered, the length is hidden by n_max (required).
    Profile.STRICT: {"length": Length.PAD, "types": masked_actions()},
    # One symbol for a whole text of any length, under a mechanism whose symbols stand for texts.
    Profile.PASSAGES: {"unit": DrawnUnit.TEXT, "length": Length.PAD, "n_max": 1, "types": masked_actions()},
    # Keeps punctuation, case, stop-words and length, but no character that cannot be seen. The bound holds for texts of
    # the same skeleton only.
    Profile.READABLE: {**_READABLE, "stop_words": StopWords.KEEP},
    # Like that, with phrases common in public text instead of stop-words. An n-gram model is required.
    Profile.CARRIER_PHRASES: {**_READABLE, "slots": Slots.CARRIER_PHRASES},
}
"""Shipped profiles, as settings that differ from the defaults of :class:`TextPolicy`."""


def profile_settings(profile: str, types_version: int = 1) -> dict[str, Any]:
    """Return the settings of a shipped profile with the classes of a version. Raise :class:`KeyError` if unknown."""
    choose = masked_actions if profile in (Profile.STRICT, Profile.PASSAGES) else readable_actions
    return {**PROFILES[profile], "types": choose(types_version)}


def with_profile(profile: str, **settings: object) -> TextPolicy:
    """Make the policy of a shipped profile, with some settings replaced.

    Raises :class:`KeyError` if there is no such profile, and :class:`ValueError` if settings contradict each other.
    """
    version = cast("int", settings.get("types_version", 1))
    return TextPolicy(**{**profile_settings(profile, version), **settings})


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
_NO_SENTENCES = (
    "unit: sentence hides the number of sentences and needs n_max: the public number to which every text is cut or "
    "filled, 1 to 16777215, e.g. n_max: 4. Set it, or set length: as_is, which shows the number of sentences."
)


def find_policy_faults(draft: DraftPolicy, written: Mapping[str, Any], names: Sequence[str] = ()) -> Iterator[Fault]:
    """List the faults of a configuration's section ``text``, which chooses the policy ``draft``.

    ``written``: the section's settings with their profile, None if not set. ``names``: the text columns, if known.
    """
    is_strict = written["profile"] == Profile.STRICT
    if not draft.draws_words:
        yield from _useless_faults(written, draft)
    if draft.unit != DrawnUnit.TEXT:
        yield from _width_faults(written, names)
    for name, problem in find_faults(draft):
        if name == "n_max" and is_strict and written["length"] is None:
            yield Fault("text.n_max", "", _NO_LENGTH)
        elif name == "n_max" and draft.unit == DrawnUnit.SENTENCE and draft.n_max is None:
            yield Fault("text.n_max", "", _NO_SENTENCES)
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


def _useless_faults(written: Mapping[str, Any], draft: DraftPolicy) -> Iterator[Fault]:
    """List settings that have no meaning where passages are written for texts."""
    for name in ("n_max", "keep_only") if draft.unit == DrawnUnit.TEXT else ("keep_only",):
        if written.get(name) is not None:
            problem = (
                f"has no meaning with unit: {draft.unit}, which writes passages. Remove it, and set profile: passages."
            )
            yield Fault(f"text.{name}", shown_value(written[name]), problem)


def _width_faults(written: Mapping[str, Any], names: Sequence[str]) -> Iterator[Fault]:
    """List faults of a mapping ``n_max`` whose keys are not the text columns ``names``, if these are known."""
    widths = written["n_max"]
    if not names or not isinstance(widths, Mapping):
        return
    for name in widths:
        if name not in names:
            problem = f"is not a column of input.text ({', '.join(names)}).{did_you_mean(name, names)}"
            yield Fault(f"text.n_max.{name}", str(widths[name]), problem)
    if missing := [name for name in names if name not in widths]:
        problem = f"lacks {', '.join(missing)}. Name every column of input.text, or give one number for all."
        yield Fault("text.n_max", "", problem)
