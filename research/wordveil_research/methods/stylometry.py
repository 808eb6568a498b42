"""Measurement of the features of style of texts, and of the distance by which sanitising moves them.

After Zheng, Li, Chen, Huang ("A framework for authorship identification of online messages", JASIST 57, 2006, table 3)
and Iqbal, Binsalleeh, Fung, Debbabi ("A unified data mining solution for authorship analysis in anonymous textual
communications", Information Sciences 231, 2013): characters, words, function words with punctuation, and structure.
Features of content, such as keywords of a topic, and features of HTML are left out.

In the definitions C is the number of characters of a text, M that of its words, V that of its distinct words in lower
case, and V(i) that of the words that occur i times. Words are those of the tokeniser ``words``. A share of nothing is
0, and so is every feature of an empty text.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int64
from wordveil.scores.score import Group, Measurement, Score, find_mean_interval, require_pairs
from wordveil.text.stop_words import ENGLISH, load_stop_words
from wordveil.text.tokeniser import Tokeniser, fold_words

VERSION = 1
"""Version of the features, whose distances must not be compared with another's: raise it when they change."""

FUNCTION_WORDS = load_stop_words(ENGLISH)
"""Words of a text's style rather than its topic: the package's list of English stop-words."""
LETTERS = string.ascii_lowercase
SPECIAL = "~@#$%^&*-_=+<>[]{}/\\|"
PUNCTUATION = ",.?!:;'\""
LONGEST = 20
"""Length at which longer words are counted."""


@dataclass(frozen=True)
class Feature:
    """Feature of style: its name, its group, its family of similar features, and its definition."""

    name: str
    group: str
    family: str
    definition: str


def _single(group: str, **definitions: str) -> tuple[Feature, ...]:
    names = {name: name.replace("_", "-") for name in definitions}
    return tuple(Feature(names[name], group, names[name], text) for name, text in definitions.items())


FEATURES: tuple[Feature, ...] = (
    *_single(
        "characters",
        characters="C",
        letters="letters of any script / C",
        upper_case="letters in upper case / C",
        digits="digits / C",
        white_space="characters of white space / C",
        tabs="tabs / C",
    ),
    *(
        Feature(f"letter-{letter}", "characters", "letter-a to letter-z", "a letter in either case / C")
        for letter in LETTERS
    ),
    *(Feature(f"special-{sign}", "characters", "special-SIGN", "a special character / C") for sign in SPECIAL),
    *_single(
        "words",
        words="M",
        short_words="words of 3 characters or fewer / M",
        characters_in_words="characters in words / C",
        word_length="mean characters of a word",
        sentence_characters="C / sentences",
        sentence_words="M / sentences",
        distinct_words="V / M",
        once="V(1) / M (hapax legomena)",
        twice="V(2) / M (hapax dislegomena)",
        yule_k="10,000 (sum over i of i^2 V(i) - M) / M^2 (Yule's K)",
        simpson_d="sum over i of V(i) i (i - 1) / (M (M - 1)) (Simpson's D)",
        sichel_s="V(2) / V (Sichel's S)",
        honore_r="100 ln M / (1 - V(1) / V), over 1 / V where each word occurs once (Honore's R)",
        brunet_w="M to the power of V^-0.172 (Brunet's W)",
    ),
    *(
        Feature(f"length-{length}", "words", f"length-1 to length-{LONGEST}", "words of so many characters / M")
        for length in range(1, LONGEST + 1)
    ),
    *(Feature(f"sign-{sign}", "syntax", "sign-SIGN", "a punctuation mark / C") for sign in PUNCTUATION),
    *(Feature(f"word-{word}", "syntax", "word-WORD", "a function word / M") for word in FUNCTION_WORDS),
    *_single(
        "structure",
        lines="lines",
        blank_lines="lines of white space alone / lines",
        quoted_lines="lines that begin with > / lines",
        sentences="sentences: ends of a sentence, at least 1 where there is a word",
        paragraphs="paragraphs: what blank lines part",
        paragraph_sentences="sentences / paragraphs",
        paragraph_words="M / paragraphs",
        paragraph_characters="C / paragraphs",
        greeting="1 where the text begins with a greeting, else 0",
        addresses="e-mail addresses and addresses of web pages",
    ),
)  # fmt: skip
NAMES = tuple(feature.name for feature in FEATURES)


TASK, METHOD, FIGURE = "style", f"features-{VERSION}", "distance"

# Characters that are measured at a time.
BLOCK_CHARACTERS = 2**22
_SHORT = 3
_LISTED = LETTERS + SPECIAL + PUNCTUATION
# The classes of characters, after the listed ones: any other.
_KINDS = ("letters", "upper-case", "digits", "white-space", "tabs")

_SENTENCE_END = r"[.!?\x{2026}]+[\"'\x{201d}\x{2019})\]]*(?:\s|$)"
_PARAGRAPH_END = r"\n[^\S\n]*\n\s*"
_GREETING = r"(?i)^\s*(?:dear|hello|hey|hi|good (?:morning|afternoon|evening))\b"
_ADDRESS = r"[\w.+-]+@[\w-]+\.[\w.-]+|(?:https?://|www\.)\S+"


def measure_style(texts: Sequence[str]) -> Float64:
    """Measure every feature of :data:`FEATURES` of every text: float64 ``(texts, features)``, in linear time."""
    if not texts:
        return np.empty((0, len(NAMES)))
    ends = np.cumsum([len(text) for text in texts])
    parts = np.flatnonzero(np.diff(ends // BLOCK_CHARACTERS)) + 1
    bounds = [0, *parts.tolist(), len(texts)]
    return np.concatenate([_measure(texts[start:end]) for start, end in pairwise(bounds)])


def find_distances(originals: Float64, sanitised: Float64) -> tuple[Float64, int]:
    """Compute Euclidean distances of features of texts and of their sanitised forms, float64 ``(texts,)``.

    Features are divided by their standard deviations over the originals; constant ones are left out. Also returns the
    number of the others. ``originals``, ``sanitised``: float64 ``(texts, features)``, of :func:`measure_style`.
    """
    spread = originals.std(axis=0)
    # Rounding may give a column of equal values a deviation above 0.
    varies = np.ptp(originals, axis=0) > 0
    moved = (sanitised[:, varies] - originals[:, varies]) / spread[varies]
    return np.linalg.norm(moved, axis=1), int(np.count_nonzero(varies))


def measure_style_change(
    originals: Sequence[str], sanitised: Sequence[str], subject: str, seed: int = 0
) -> list[Score]:
    """Measure how far sanitising moves the style of texts: the mean of :func:`find_distances`.

    Bo, Ding, Fung, Iqbal 2021 (ER-AE) also take an L2 norm. Features and their unit, standard deviations of the
    originals, are this package's. ``seed``: for the bootstrap, and for the pairs of originals that give the chance
    level. Raises :class:`ValueError` if there are no texts, or the numbers differ.
    """
    require_pairs(originals, sanitised)
    style = measure_style(originals)
    distances, features = find_distances(style, measure_style(sanitised))
    circle = np.random.default_rng(seed).permutation(len(originals))
    others = np.empty_like(style)
    others[circle] = style[np.roll(circle, -1)]
    return [
        Measurement(subject, TASK, METHOD, Group.ATTACK).make_score(
            FIGURE,
            float(distances.mean()),
            find_mean_interval(distances, seed),
            len(distances),
            "Mean Euclidean distance between the features of style of a text and of its sanitised form, each feature "
            "in standard deviations of the originals; the chance level is that of two different originals.",
            chance=float(find_distances(style, others)[0].mean()) if len(style) > 1 else None,
            note=f"{features} of {len(NAMES)} features differ between originals; version {VERSION} of the features.",
        )
    ]


def _measure(texts: Sequence[str]) -> Float64:
    characters = np.array([len(text) for text in texts], np.float64)
    column = pa.array(texts, pa.large_string())
    counts = {"characters": characters, **_count_characters(texts, characters), **_count_structure(column)}
    counts |= _count_words(column, len(texts), characters)
    counts["sentences"] = np.where(counts["words"] > 0, np.maximum(counts["sentences"], 1), 0)
    for part, whole in (("sentence", "sentences"), ("paragraph", "paragraphs")):
        for name in ("characters", "words", "sentences"):
            counts[f"{part}-{name}"] = _divide(counts[name], counts[whole])
    return np.stack([counts[name] for name in NAMES], axis=1)


def _count_characters(texts: Sequence[str], characters: Float64) -> dict[str, Float64]:
    """Compute the shares of characters and of their kinds."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    text = np.repeat(np.arange(len(texts)), characters.astype(np.int64))
    highest = int(codes.max(initial=0)) + 1
    listed = np.full(highest, len(_LISTED), np.int64)
    kinds = np.zeros((len(_KINDS), highest), np.bool_)
    for code in np.flatnonzero(np.bincount(codes, minlength=1)).tolist():
        sign = chr(code)
        index = _LISTED.find(sign.lower() if sign.isascii() else sign)
        listed[code] = index if index >= 0 else len(_LISTED)
        kinds[:, code] = (sign.isalpha(), sign.isupper(), sign.isdigit(), sign.isspace(), sign == "\t")
    width = len(_LISTED) + 1
    counts = np.bincount(text * width + listed[codes], minlength=len(texts) * width).reshape(-1, width)
    shares = _divide(counts.T, characters)
    names = [*(f"letter-{sign}" for sign in LETTERS), *(f"special-{sign}" for sign in SPECIAL)]
    names += [f"sign-{sign}" for sign in PUNCTUATION]
    shares_of = dict(zip(names, shares, strict=False))
    for name, is_member in zip(_KINDS, kinds, strict=True):
        shares_of[name] = _divide(np.bincount(text[is_member[codes]], minlength=len(texts)), characters)
    return shares_of


def _count_words(column: pa.Array, count: int, characters: Float64) -> dict[str, Float64]:
    """Compute lengths of words, function words, and measures of the richness of the vocabulary."""
    tokeniser = Tokeniser()
    pieces = tokeniser.cut_words(tokeniser.normalise(column))
    text = np.repeat(np.arange(count), np.diff(pieces.offsets))
    lengths = np.asarray(pc.utf8_length(pieces.words), np.int64)
    words = np.diff(pieces.offsets).astype(np.float64)
    counts = {
        "words": words,
        "short-words": _share(text[lengths <= _SHORT], words),
        "characters-in-words": _divide(np.bincount(text, lengths, count), characters),
        "word-length": _divide(np.bincount(text, lengths, count), words),
    }
    sizes = np.minimum(lengths, LONGEST)
    counts |= {f"length-{size}": _share(text[sizes == size], words) for size in range(1, LONGEST + 1)}
    forms = fold_words(pieces.words).dictionary_encode()
    codes, kinds = forms.indices.to_numpy().astype(np.int64), max(len(forms.dictionary), 1)
    indices = pc.index_in(forms.dictionary, pa.array(FUNCTION_WORDS, forms.dictionary.type)).fill_null(-1)
    function = np.asarray(indices, np.int64)[codes]
    width = len(FUNCTION_WORDS)
    of_text = np.bincount((text * width + function)[function >= 0], minlength=count * width).reshape(-1, width)
    counts |= {f"word-{word}": _divide(row, words) for word, row in zip(FUNCTION_WORDS, of_text.T, strict=True)}
    pairs, times = np.unique(text * kinds + codes, return_counts=True)
    return counts | _measure_richness(pairs // kinds, times.astype(np.float64), words)


def _measure_richness(text: Int64, times: Float64, words: Float64) -> dict[str, Float64]:
    """Measure the richness of the vocabulary, from ``text`` and ``times`` of each distinct word of each text."""
    count = len(words)
    distinct = np.bincount(text, minlength=count).astype(np.float64)
    once, twice = (np.bincount(text[times == number], minlength=count).astype(np.float64) for number in (1, 2))
    squares = np.bincount(text, times**2, count)
    logarithm = np.log(np.maximum(words, 1))
    repeated = np.maximum(distinct - once, 1)
    return {
        "distinct-words": _divide(distinct, words),
        "once": _divide(once, words),
        "twice": _divide(twice, words),
        "yule-k": 10_000 * _divide(squares - words, words**2),
        "simpson-d": _divide(squares - words, words * (words - 1)),
        "sichel-s": _divide(twice, distinct),
        "honore-r": 100 * logarithm * distinct / repeated,
        "brunet-w": np.where(words > 0, np.exp(logarithm * np.maximum(distinct, 1) ** -0.172), 0.0),
    }


def _count_structure(column: pa.Array) -> dict[str, Float64]:
    """Count lines, sentences and paragraphs. Arrow restarts after each match, so no counted pattern has ``^``."""

    def count(pattern: str, values: pa.Array) -> Float64:
        return np.asarray(pc.count_substring_regex(values, pattern), np.float64)

    lines = pc.split_pattern(column, "\n")
    text = np.repeat(np.arange(len(column)), np.diff(lines.offsets.to_numpy()))
    each, trimmed = lines.flatten(), pc.utf8_trim_whitespace(column)
    lines_of = np.bincount(text, minlength=len(column)).astype(np.float64)
    is_blank = np.asarray(pc.binary_length(pc.utf8_trim_whitespace(each))) == 0
    is_quoted = pc.starts_with(each, ">").to_numpy(zero_copy_only=False)
    is_empty, is_void = (np.asarray(pc.binary_length(values)) == 0 for values in (column, trimmed))
    return {
        "lines": np.where(is_empty, 0.0, lines_of),
        "blank-lines": np.where(is_empty, 0.0, _share(text[is_blank], lines_of)),
        "quoted-lines": _share(text[is_quoted], lines_of),
        "sentences": count(_SENTENCE_END, column),
        "paragraphs": np.where(is_void, 0.0, count(_PARAGRAPH_END, trimmed) + 1),
        "greeting": pc.match_substring_regex(column, _GREETING).to_numpy(zero_copy_only=False).astype(np.float64),
        "addresses": count(_ADDRESS, column),
    }


def _share(text: Int64, words: Float64) -> Float64:
    return _divide(np.bincount(text, minlength=len(words)), words)


def _divide(values: NDArray[np.number], by: Float64) -> Float64:
    """Compute the quotient; 0 if ``by`` is 0."""
    return np.asarray(np.divide(values, by, out=np.zeros(np.shape(values)), where=by > 0))
