"""Pairs of canaries that differ in one feature of their texts, and their words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from wordveil.arrays import Bool
from wordveil.artifacts.bundle import Bundle
from wordveil.privacy.relations import Exposure
from wordveil.text import choices
from wordveil.text.codec import Codec
from wordveil.text.draft import WORD_COPIES
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel
from wordveil.text.types.classes import CLASSES, NAME_TYPES, list_classes
from wordveil.text.types.lists import PublicLists

MARK = "\ue000"
"""Placeholder in a document for a made-up word; each copy of the document has its own."""
MARK_LETTERS = 16
"""Letters of such a word."""
_PLAIN, _TRIED, _ATTEMPTS = 16, 3_000, 20
_STOP_WORDS = ("the", "of", "and", "to")
_LETTERS = "bcdfghjklmnpqrstvwxz"
_MARK = re.compile(f"zq[{_LETTERS}]{{{MARK_LETTERS - 2}}}")


@dataclass(frozen=True)
class CanaryWords:
    """Words of documents.

    ``plain``: words of the vocabulary that the policy hides in any order; ``cased``: those with letters of two cases.
    ``stop``: two stop-words of the policy, or common English words. ``carriers``: up to two words that the n-gram model
    copies.
    """

    plain: tuple[str, ...]
    cased: tuple[str, ...]
    stop: tuple[str, ...]
    carriers: tuple[str, ...]


def choose_words(
    bundle: Bundle,
    policy: TextPolicy,
    model: NgramModel | None,
    rng: np.random.Generator,
    *,
    names_language: bool = False,
) -> CanaryWords:
    """Choose the words of documents from the bundle's vocabulary and public lists.

    ``model``: the policy's n-gram model. ``names_language``: records name their language, so that none is identified.
    Raises :class:`ValueError` if the policy hides no text of such words, for example because it refuses all of them.
    """
    open_policy = replace(
        policy, unit=choices.DrawnUnit.WORD, length=choices.Length.AS_IS, n_max=None, refused=choices.Refused.QUARANTINE
    )
    codec = Codec(open_policy, bundle.lexicon, model, bundle.lists)
    listed = bundle.lexicon.array
    tried = listed.take(pa.array(rng.permutation(len(listed))[:_TRIED]))
    words = [word for word in tried.to_pylist() if word.isalpha() and word == word.lower()] or tried.to_pylist()
    hidden = _find_hidden(codec, words)
    other = np.zeros(2, np.bool_) if names_language else None
    for _ in range(_ATTEMPTS):
        plain = [hidden[index] for index in rng.permutation(len(hidden))[:_PLAIN]]
        if plain and _are_hidden(codec, plain, bundle.lexicon.unknown, other):
            carriers = _find_carriers(codec, model, words)
            return CanaryWords(tuple(plain), _find_cased(codec, policy, plain), _stop_words(policy), carriers)
    raise ValueError("the text policy hides no text that consists of words of the vocabulary.")


def make_marks(count: int, rng: np.random.Generator) -> list[str]:
    """Make words of consonants that are in no vocabulary and that nobody can guess, one for each copy."""
    letters = rng.choice(list(_LETTERS), (count, MARK_LETTERS - 2))
    return ["zq" + "".join(row) for row in letters.tolist()]


def find_marks(text: str) -> frozenset[str]:
    """Find all words in a text that :func:`make_marks` may have made, in any case, also inside others."""
    return frozenset(_MARK.findall(text.lower()))


def _find_hidden(codec: Codec, words: Sequence[str]) -> list[str]:
    """Select those of ``words`` that are hidden if each is a separate text."""
    encoded = codec.encode(pa.array(words, pa.string()), np.zeros(len(words), np.bool_))
    starts, counts = encoded.offsets[:-1], np.diff(encoded.offsets)
    encoded_words = zip(words, starts, counts, encoded.unknown, encoded.refused, strict=True)
    return [
        word
        for word, start, tokens, unknown, refused in encoded_words
        if refused is None and tokens == 1 and not unknown and start < len(encoded.ids)
    ]


def _are_hidden(codec: Codec, words: Sequence[str], unknown: int, other: Bool | None) -> bool:
    """Return whether a text of ``words``, forwards or backwards, is released and all its words are hidden."""
    encoded = codec.encode(pa.array([" ".join(words), " ".join(reversed(words))], pa.string()), other)
    released = all(refused is None for refused in encoded.refused)
    return released and not (encoded.ids == unknown).any() and bool((np.diff(encoded.offsets) == len(words)).all())


def _find_cased(codec: Codec, policy: TextPolicy, words: Sequence[str]) -> tuple[str, ...]:
    """Select those of ``words`` with letters of two cases that no list of names has in another case."""
    cased = [word for word in words if len(word) > 1 and word.capitalize() not in (word, word.upper())]
    if policy.names == choices.Names.WORDS:
        return tuple(cased)
    first, all_upper = ({*_find_hidden(codec, [turn(word) for word in cased])} for turn in (str.capitalize, str.upper))
    return tuple(word for word in cased if word.capitalize() in first and word.upper() in all_upper)


def _stop_words(policy: TextPolicy) -> tuple[str, ...]:
    plain = [word for word in policy.stop_word_list if word.isalpha()] or list(policy.stop_word_list)
    return tuple((plain * 2)[:2] or _STOP_WORDS[:2])


def _find_carriers(codec: Codec, model: NgramModel | None, words: Sequence[str]) -> tuple[str, ...]:
    """Find two words that are copied after a hidden one, if there are any."""
    if model is None:
        return ()
    tried = [*_STOP_WORDS, *words]
    texts = [f"{word} zqxkvw {word}" for word in tried]
    encoded = codec.encode(pa.array(texts, pa.string()), np.zeros(len(texts), np.bool_))
    copied = [word for word, tokens in zip(tried, np.diff(encoded.offsets), strict=True) if tokens == 1]
    return tuple((copied * 2)[:2])


Document = str | bytes | None
"""Text, bytes that are not UTF-8, or None."""
Shown = frozenset[Exposure]

COPIES: Shown = WORD_COPIES | {Exposure.PUNCTUATION, Exposure.CASE, Exposure.LENGTH}
"""Exposures of a policy that copies something."""
WORDS = 12
"""Number of words of the longer documents."""
_LONGEST = 200
_OTHER_LANGUAGES = {
    "fr": "demain nous allons visiter le jardin avec nos voisins avant le dîner",
    "de": "morgen gehen wir mit unseren nachbarn vor dem essen noch durch den garten",
}


@dataclass(frozen=True)
class DocumentPair:
    """Pair of documents that differ in one feature.

    ``first``, ``second``: the document in each text column, possibly with :data:`MARK`. ``about``: exposure that shows
    this feature; None if none does. ``shows``: exposures under which a reader may distinguish their texts.
    ``is_redrawn``: their hidden words differ under every policy, so that each must have its own noise. ``keeps_words``:
    their hidden words are the same, each as often, and so have one law under every mechanism. ``languages``: those that
    records name, if they do.
    """

    feature: str
    first: tuple[Document, ...]
    second: tuple[Document, ...]
    about: Exposure | None = None
    shows: Shown = field(default=frozenset())
    is_redrawn: bool = False
    keeps_words: bool = False
    languages: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class DocumentPlan:
    """Plan of the documents, besides their words.

    ``max_bytes``: largest size of a record's texts. ``names_language``: each record names its language in a column.
    """

    policy: TextPolicy
    columns: int = 1
    max_bytes: int = 2**24
    names_language: bool = False
    lists: PublicLists | None = None


def make_pairs(words: CanaryWords, plan: DocumentPlan) -> tuple[DocumentPair, ...]:
    """Make all pairs of documents, in the order in which their findings are shown."""
    makers = (_plain_pairs, _copied_pairs, _refused_pairs, _typed_pairs, _column_pairs)
    # A policy that identifies languages may see different languages in any two texts.
    identifies = plan.policy.other_language != choices.OtherLanguage.RELEASE and not plan.names_language
    return tuple(
        replace(
            pair,
            first=_spread(pair.first, plan),
            second=_spread(pair.second, plan),
            shows=pair.shows | _if(identifies, frozenset({Exposure.LANGUAGE})),
            keeps_words=pair.keeps_words and not identifies,
            languages=pair.languages if any(pair.languages) else (plan.policy.language,) * 2,
        )
        for make in makers
        for pair in make(words, plan)
    )


def write_document(document: Document, mark: str) -> bytes | None:
    """Write a copy of a document, with its own unknown word."""
    return document.replace(MARK, mark).encode() if isinstance(document, str) else document


def _spread(documents: tuple[Document, ...], plan: DocumentPlan) -> tuple[Document, ...]:
    """Repeat a single document in each text column."""
    return documents * plan.columns if len(documents) == 1 else documents


def _take(words: Sequence[str], start: int, count: int) -> list[str]:
    """Take ``count`` words from an index on, and again from the beginning if there are no more."""
    return [words[index % len(words)] for index in range(start, start + count)]


def _plain_pairs(words: CanaryWords, plan: DocumentPlan) -> Iterator[DocumentPair]:
    """Yield pairs of hidden words alone."""
    policy, plain = plan.policy, words.plain
    base = _take(plain, 0, 5)
    text = " ".join(base)
    length, carried = frozenset({Exposure.LENGTH}), frozenset({Exposure.CARRIER_PHRASES})
    few, many = (" ".join(_take(plain, start, count)) for start, count in ((0, 3), (3, WORDS)))
    yield DocumentPair("length", (few,), (many,), Exposure.LENGTH, length, is_redrawn=True)
    yield DocumentPair("empty", (text,), ("",), Exposure.LENGTH, length)
    is_bag = policy.output == choices.Output.BAG and (policy.n_max is None or policy.n_max >= plan.columns * len(base))
    back = " ".join(reversed(base))
    yield DocumentPair("order", (text,), (back,), None, carried, is_redrawn=len(plain) > 1, keeps_words=is_bag)
    first, second = _take(plain, 5, 2)
    again = f"{first} {second} {first} {second} {first}"
    exposures = frozenset({Exposure.REPETITION, Exposure.CARRIER_PHRASES})
    yield DocumentPair("repetition", (text,), (again,), Exposure.REPETITION, exposures, is_redrawn=len(plain) > 6)
    if words.cased:
        yield _case_pair(words, plan)
    loose = f"{base[0]},  {base[1]};\n({base[2]}) {base[3]} / {base[4]}!"
    whole = frozenset({Exposure.PUNCTUATION}) | _if(policy.tokeniser == choices.TokeniserKind.WHITESPACE, _LOOKED_UP)
    yield DocumentPair("punctuation", (text,), (loose,), Exposure.PUNCTUATION, whole, keeps_words=len(whole) == 1)
    wide = (" " * 99).join(base)
    yield DocumentPair(
        "size", (text,), (wide,), Exposure.PUNCTUATION, frozenset({Exposure.PUNCTUATION}), keeps_words=True
    )
    yield from _byte_pairs(base, policy)


_LOOKED_UP = frozenset({Exposure.UNKNOWN_WORDS, Exposure.LENGTH})


def _if(condition: bool, shown: Shown) -> Shown:  # noqa: FBT001 - the one thing it is about
    return shown if condition else frozenset()


def _case_pair(words: CanaryWords, plan: DocumentPlan) -> DocumentPair:
    policy, cased = plan.policy, _take(words.cased, 0, 5)
    turned = [cased[0].capitalize(), cased[1].upper(), cased[2], cased[3].capitalize(), cased[4].upper()]
    exposures = frozenset({Exposure.CASE}) | _if(policy.case == choices.Case.EXACT, _LOOKED_UP)
    same = exposures == {Exposure.CASE}
    return DocumentPair("case", (" ".join(cased),), (" ".join(turned),), Exposure.CASE, exposures, keeps_words=same)


def _byte_pairs(base: Sequence[str], policy: TextPolicy) -> Iterator[DocumentPair]:
    """Yield pairs of the same tokens in other bytes."""
    first, second = f"{MARK}\u00e9\u00e8\u00fc", f"{MARK}e\u0301e\u0300u\u0308"
    texts = [" ".join([base[0], word, *base[1:]]) for word in (first, second)]
    yield DocumentPair("bytes", (texts[0],), (texts[1],), keeps_words=True)
    middle = len(base[1]) // 2
    unseen = " ".join([base[0], f"{base[1][:middle]}\u200b{base[1][middle:]}", *base[2:]])
    copied = frozenset({Exposure.PUNCTUATION, Exposure.UNKNOWN_WORDS, Exposure.LENGTH, Exposure.REPETITION})
    exposures = _if(policy.controls != choices.Controls.DROP, copied)
    yield DocumentPair("controls", (" ".join(base),), (unseen,), None, exposures, keeps_words=not exposures)


def _copied_pairs(words: CanaryWords, plan: DocumentPlan) -> Iterator[DocumentPair]:
    """Yield pairs with a word, in one document, that some policies copy."""
    policy, plain = plan.policy, words.plain
    # If a share of unknown words is allowed, a text with one of them must not be refused for it.
    share = policy.max_unknown_share
    count = 8 if not share else min(_LONGEST, max(8, int(1 / share) + 2))
    base = _take(plain, 0, count)
    text = (" ".join(base),)

    def put(*copied: str) -> tuple[str]:
        return (" ".join([copied[0], base[1], *copied[1:], *base[1 + len(copied) :]]),)

    yield DocumentPair("unknown_words", text, put(MARK), Exposure.UNKNOWN_WORDS, _LOOKED_UP, is_redrawn=True)
    exposures = _LOOKED_UP | {Exposure.DIGITS}
    yield DocumentPair("digits", text, put("zq7x4"), Exposure.DIGITS, exposures, is_redrawn=True)
    exposures = _LOOKED_UP | {Exposure.STOP_WORDS, Exposure.CARRIER_PHRASES}
    yield DocumentPair("stop_words", text, put(*words.stop), Exposure.STOP_WORDS, exposures)
    if words.carriers:
        yield DocumentPair("carrier_phrases", text, put(*words.carriers), Exposure.CARRIER_PHRASES, exposures)
    yield _language_pair(words, base, plan)


def _language_pair(words: CanaryWords, base: Sequence[str], plan: DocumentPlan) -> DocumentPair:
    """Make texts of two languages, or one text if records name theirs, with words that some policies copy."""
    language, code = plan.policy.language, "de" if plan.policy.language == "fr" else "fr"
    copied = [*words.stop, *words.carriers, "4812", "zq7x4"]
    text = " ".join([*base, *copied])
    if plan.names_language:
        exposures = frozenset({Exposure.LANGUAGE, Exposure.LENGTH})
        return DocumentPair("language", (text,), (text,), Exposure.LANGUAGE, exposures, languages=(language, code))
    foreign = " ".join([_OTHER_LANGUAGES[code], *copied])
    return DocumentPair(
        "language", (text,), (foreign,), Exposure.LANGUAGE, COPIES | {Exposure.LANGUAGE}, is_redrawn=True
    )


def _refused_pairs(words: CanaryWords, plan: DocumentPlan) -> Iterator[DocumentPair]:
    """Yield pairs with one document that some policies refuse because of its text."""
    base = _take(words.plain, 0, 5)
    text = (" ".join(base),)
    exposures = _LOOKED_UP | {Exposure.PUNCTUATION}
    refused: dict[str, Document] = {
        "no text": None,
        "not UTF-8": b" ".join([base[0].encode(), b"\xff\xfe"]),
        "script": f"{base[0]} \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    }
    if plan.max_bytes < 2**16:
        refused["too long"] = " ".join([*base, " " * plan.max_bytes])
    for reason, document in refused.items():
        yield DocumentPair(f"presence ({reason})", text, (document,), Exposure.PRESENCE, exposures)


def _typed_pairs(words: CanaryWords, plan: DocumentPlan) -> Iterator[DocumentPair]:
    """Yield pairs of a word and a typed token of each class, and of tokens of one class and shape."""
    base = _take(words.plain, 0, 5)

    def put(token: str) -> tuple[str]:
        return (" ".join([base[0], token, *base[2:]]),)

    # A token outside the classes may be several words, some of them equal.
    exposures = (COPIES | {Exposure.REPETITION}) - {Exposure.STOP_WORDS, Exposure.CARRIER_PHRASES}
    listed = list_classes(plan.policy.types_version).items()
    examples = {token_type: entry.examples for token_type, entry in listed if entry.examples}
    for token_type, (first, second) in {**examples, **_name_values(plan.lists)}.items():
        yield DocumentPair(f"types ({token_type})", (" ".join(base),), put(first), Exposure.TYPES, exposures)
        yield DocumentPair(
            f"values ({token_type})",
            put(first),
            put(second),
            None,
            _if(token_type not in plan.policy.type_actions, exposures),
        )


def _name_values(lists: PublicLists | None) -> dict[str, tuple[str, str]]:
    """Find two names of each list that are not ordinary words and have the same form."""
    if lists is None:
        return {}
    values = {}
    for token_type in NAME_TYPES:
        names, levels = lists.ranked[CLASSES[token_type].list]
        certain = [
            name
            for name, level in zip(names.to_pylist(), np.asarray(levels).tolist(), strict=True)
            if level == 0 and len(name) == 6 and name.isascii() and name.isalpha() and name == name.capitalize()
        ]
        if len(certain) > 1:
            values[token_type] = (certain[0], certain[-1])
    return values


def _column_pairs(words: CanaryWords, plan: DocumentPlan) -> Iterator[DocumentPair]:
    """Yield pairs of the same texts in other columns."""
    if plan.columns > 1:
        few, many = (" ".join(_take(words.plain, start, count)) for start, count in ((0, 2), (2, 7)))
        rest = (few,) * (plan.columns - 2)
        exposures = frozenset({Exposure.LENGTH})
        yield DocumentPair(
            "column", (few, many, *rest), (many, few, *rest), Exposure.LENGTH, exposures, is_redrawn=True
        )
