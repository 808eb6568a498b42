"""Draft of a text policy, whose settings may contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import get_type_hints

from wordveil.privacy.events import Composition
from wordveil.privacy.relations import Exposure, Relation
from wordveil.text.choices import (
    Articles,
    Case,
    Controls,
    Digits,
    DrawnUnit,
    Hyphens,
    Length,
    Names,
    OtherLanguage,
    Output,
    Punctuation,
    Refused,
    Repeat,
    Slots,
    StopWordCapitals,
    StopWords,
    TokeniserKind,
    UnknownWords,
)
from wordveil.text.types.classes import DRAWN_ACTIONS, LATER_NAME_TYPES, SHOWN_ACTIONS, TypeAction, list_classes

WORD_COPIES = frozenset(
    {Exposure.DIGITS, Exposure.STOP_WORDS, Exposure.UNKNOWN_WORDS, Exposure.CARRIER_PHRASES, Exposure.TYPES}
)
"""Settings by which a policy copies word by word."""


@dataclass(frozen=True)
class DraftPolicy:
    """Draft of a text policy, whose settings may still contradict each other (:func:`find_faults`).

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
        lower case, sorted; used only if stop-words are dropped or kept.
    stop_word_capitals : StopWordCapitals
        whether a word of that list is a stop-word in capitals, too. A text in capitals has hardly any stop-words under
        ``replace``.
    articles : Articles
        whether a copied "a" or "an" follows what is written after it.
    unit : DrawnUnit
        what one symbol is drawn for: each word, each sentence, or the whole text.
    length : Length
        whether the number of tokens is shown, and how it is hidden.
    n_max : int or None
        the public number of tokens under ``pad`` and ``sample``, 1 to 2^24 - 1. None under ``as_is``.
    output : Output
        whether the order of the words is kept.
    refused : Refused
        what happens to a record that is refused because of its text.
    repeat : Repeat
        whether a hidden word that a record has more than once is drawn once. Words are distinguished by the form in
        which they are looked up, those outside the vocabulary too.
    slots : Slots
        whether the words of carrier phrases are copied.
    ngrams : str or None
        digest of the n-gram model that identifies carrier phrases. None under ``slots: all``, as are the next two.
    slot_threshold : float or None
        the least probability with which a copied word follows those before it, in (0, 1].
    slot_start_threshold : float or None
        the least share of all words of a copied one that follows none, in (0, 1].
    types : tuple of (str, TypeAction), or a mapping
        what happens to the tokens of each class. A class that is not named is not distinguished (``words``).
    types_version : int
        the version of the list of classes. Later classes are not distinguished, so that a release continues when an
        installation has more of them.
    names : Names
        whether words of public lists of names are classes of their own. By default they are resampled, or unknown words
        if the length is hidden.
    language : str
        the language of the mechanism's words, as a code of ISO 639-1.
    other_language : OtherLanguage
        what happens to a record of another language than ``language``. A text too short to identify counts as
        ``language``.
    max_unknown_share : float or None
        largest share of a record's words outside the vocabulary, at least 0 and below 1. A record with more is refused.
        None: any share.
    packages : str or None
        versions of the optional packages that cut texts into words or identify languages
        (:func:`wordveil.text.language.find_packages`), or None.
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
    stop_word_capitals: StopWordCapitals = StopWordCapitals.MATCH
    articles: Articles = Articles.COPY
    unit: DrawnUnit = DrawnUnit.WORD
    length: Length = Length.AS_IS
    n_max: int | None = None
    output: Output = Output.SEQUENCE
    refused: Refused = Refused.QUARANTINE
    repeat: Repeat = Repeat.EACH
    slots: Slots = Slots.ALL
    ngrams: str | None = None
    slot_threshold: float | None = None
    slot_start_threshold: float | None = None
    types: tuple[tuple[str, str], ...] | Mapping[str, str] = ()
    types_version: int = 1
    names: Names = Names.WORDS
    language: str = "en"
    other_language: OtherLanguage = OtherLanguage.RELEASE
    max_unknown_share: float | None = None
    packages: str | None = None

    @property
    def type_actions(self) -> dict[str, TypeAction]:
        """Action on each distinguished class, in the order of the classes. Raises :class:`ValueError` if unknown."""
        chosen = dict.fromkeys(self._name_types, self._usual_of_names) if self.names == Names.GAZETTEER else {}
        chosen |= {kind: TypeAction(action) for kind, action in dict(self.types).items()}
        known = list_classes(self.types_version)
        return {kind: chosen[kind] for kind in known if chosen.get(kind, TypeAction.WORDS) != TypeAction.WORDS}

    @property
    def stated_types(self) -> tuple[tuple[str, TypeAction], ...]:
        """Value of ``types`` that gives these :attr:`type_actions`.

        Includes classes of names that are words, if names would otherwise be drawn. Omits a later class
        (:data:`LATER_NAME_TYPES`) with its default action: so policies of earlier versions keep their fingerprints, and
        with their bundles, which lack its list, their rows.
        """
        unsaid = [kind for kind in LATER_NAME_TYPES if self.type_actions.get(kind) == self._usual_of_names]
        actions = {kind: action for kind, action in self.type_actions.items() if kind not in unsaid}
        plain = self._name_types if self.names == Names.GAZETTEER else []
        return (*actions.items(), *((kind, TypeAction.WORDS) for kind in plain if kind not in (*actions, *unsaid)))

    @property
    def _name_types(self) -> list[str]:
        """Classes that lists of words identify."""
        return [kind for kind, entry in list_classes(self.types_version).items() if entry.list]

    @property
    def _usual_of_names(self) -> TypeAction:
        """Action on names under ``gazetteer`` if ``types`` does not state another."""
        return TypeAction.RESAMPLE if self.length == Length.AS_IS else TypeAction.MASK

    @property
    def draws_types(self) -> bool:
        """True if tokens are found in, or drawn from, public lists, so that the bundle must hold them."""
        return self.names != Names.WORDS or any(action in DRAWN_ACTIONS for action in self.type_actions.values())

    @property
    def copies(self) -> tuple[Exposure, ...]:
        """Exposures of the parts of the text that are copied unchanged, the classes of its tokens among them."""
        copied = {
            Exposure.PUNCTUATION: self.punctuation == Punctuation.KEEP,
            Exposure.CASE: self.case == Case.RESTORE,
            Exposure.DIGITS: self.digits == Digits.KEEP,
            Exposure.STOP_WORDS: self.stop_words == StopWords.KEEP,
            Exposure.UNKNOWN_WORDS: self.unknown == UnknownWords.KEEP,
            Exposure.TYPES: not set(self.type_actions.values()).isdisjoint(SHOWN_ACTIONS),
            Exposure.CARRIER_PHRASES: self.slots == Slots.CARRIER_PHRASES,
        }
        return tuple(exposure for exposure, is_copied in copied.items() if is_copied)

    @property
    def pads(self) -> bool:
        """True if texts are padded, so that the mechanism needs a point for padding."""
        return self.length == Length.PAD

    @property
    def draws_words(self) -> bool:
        """True if one symbol is drawn for each word, and not for a text or a sentence."""
        return self.unit == DrawnUnit.WORD

    @property
    def needs_padding(self) -> bool:
        """True if the mechanism needs a symbol for padding, which also stands for texts without a known word."""
        return self.pads or not self.draws_words

    @property
    def draws_once(self) -> bool:
        """True if a word that occurs repeatedly in a record is drawn once."""
        return self.repeat == Repeat.SAME

    @property
    def relation(self) -> Relation:
        """Pairs of texts for which the bound holds."""
        if self.copies or self.draws_once:
            return Relation.SAME_SKELETON
        return Relation.SAME_LENGTH if self.length == Length.AS_IS else Relation.ANY_TEXT

    @property
    def composition(self) -> Composition:
        """Composition of the tokens' losses."""
        if self.draws_once:
            return Composition.DISTINCT
        if self.length == Length.SAMPLE:
            return Composition.SAMPLED
        return Composition.BAG if self.output == Output.BAG else Composition.SEQUENCE

    @property
    def exposes(self) -> tuple[str, ...]:
        """Exposures in addition to the sanitised words, sorted."""
        shown = {str(exposure) for exposure in self.copies}
        if self.length == Length.AS_IS:
            shown.add(Exposure.LENGTH)
        if self.draws_once:
            shown.add(Exposure.REPETITION)
        if self.refused == Refused.QUARANTINE:
            shown.add(Exposure.PRESENCE)
        # Masked records of another language have no copied words, which shows them.
        if self.other_language == OtherLanguage.MASK and {*self.copies} & WORD_COPIES:
            shown.add(Exposure.LANGUAGE)
        return tuple(sorted(shown))


CHOICES: Mapping[str, type[StrEnum]] = {
    name: hint
    for name, hint in get_type_hints(DraftPolicy).items()
    if isinstance(hint, type) and issubclass(hint, StrEnum)
}
"""Settings of a policy that are choices."""
