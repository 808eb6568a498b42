"""Features of style, each with its name and definition.

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
from dataclasses import dataclass

from wordveil.text.stop_words import ENGLISH, load_stop_words

VERSION = 1
"""Increment it when a feature is added, removed, or changes its meaning. Distances of two versions must not be
compared."""

FUNCTION_WORDS = load_stop_words(ENGLISH)
"""Words of a text's style rather than its topic: the package's own list of English stop-words."""
LETTERS = string.ascii_lowercase
SPECIAL = "~@#$%^&*-_=+<>[]{}/\\|"
PUNCTUATION = ",.?!:;'\""
LONGEST = 20
"""Length as which longer words count."""


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
