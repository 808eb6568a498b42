"""Makes the public sentences that come with the package: what the demo's generator is trained on.

    python scripts/sentences.py WORDNET

WORDNET is the directory or tar archive with WordNet 3.0's dictionary (data.*). Its usage examples are sentences
already. Definitions of nouns and verbs become sentences here: "A bud is a partially opened flower." Writes
lib/wordveil/data/sentences/wordnet.parquet. Ten seconds; the same versions give the same bytes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bigrams import read_files
from numpy.typing import NDArray

from wordveil.embeddings.embedding import DEMO, load
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.text.tokeniser import Tokeniser, fold_words

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "lib" / "wordveil" / "data" / "sentences" / "wordnet.parquet"

FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
# Shorter ones are mostly phrases; longer ones are lists.
SHORTEST, LONGEST = 4, 20
# Words outside the demo embedding that an example may have. Definitions may have none: there are enough of them.
UNKNOWN = 1

EXAMPLE = re.compile(r'"([^"]*)"(\s*-+\s*\w)?')
BRACKETS = re.compile(r"\s*\([^)]*\)")
DOUBTFUL = re.compile(r"\.\.|[()\[\]_/;:=+*]|--")
ARTICLE = re.compile(r"(an?|the|one|any|someone|somebody|something|anything) ")
# "to sow is to place in the ground for": the object is missing.
DANGLING = re.compile(r" (about|against|as|at|by|for|from|in|into|of|off|on|out|over|to|through|upon|with)$")


def read_senses(wordnet: Path) -> Iterator[tuple[str, str, str]]:
    """Part of speech, first lemma and gloss of each sense, in the order of the dictionary."""
    found = {name: content.decode("latin-1") for name, content in read_files(wordnet) if name in FILES}
    if missing := [name for name in FILES if name not in found]:
        sys.exit(f"{wordnet}: lacks WordNet's files {', '.join(missing)}.")
    for name in FILES:
        for line in found[name].splitlines():
            if not line.startswith(" "):  # the licence
                about, gloss = line.split(" | ", 1)
                yield name.removeprefix("data."), about.split(" ")[4].replace("_", " "), gloss.strip()


def find_examples(gloss: str) -> Iterator[str]:
    """Find the usage examples of a gloss, without quotations of authors."""
    for example, author in EXAMPLE.findall(gloss):
        if not author and not DOUBTFUL.search(example):
            yield example.replace("`", "'").strip(" ,-")


def define(part: str, lemma: str, gloss: str) -> str | None:
    """Write the definition of a noun or a verb as a sentence. Return None if that fails."""
    meaning = BRACKETS.sub("", gloss.split('"', maxsplit=1)[0]).split(";")[0].strip(" ,:")
    if DOUBTFUL.search(meaning) or DANGLING.search(meaning):
        return None
    if part == "verb":
        return f"to {lemma} is to {meaning}"
    if part != "noun" or not ARTICLE.match(meaning):
        return None
    counted = re.match("an? ", meaning) and lemma.islower() and not lemma.endswith("s")
    return f"{'an' if lemma[0] in 'aeiou' else 'a'} {lemma} is {meaning}" if counted else f"{lemma} is {meaning}"


def write_out(sentence: str) -> str:
    """Write a sentence with a capital and an end."""
    whole = sentence[0].upper() + sentence[1:]
    return whole if whole[-1] in ".!?" else f"{whole}."


def count_words(texts: pa.StringArray, index: WordIndex) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Count the words of each text and the unknown ones; list its words in lower case, to compare texts by."""
    tokeniser = Tokeniser()
    cut = tokeniser.cut_words(tokeniser.normalise(texts))
    words = fold_words(cut.words)
    strange = np.concatenate([[0], np.cumsum(index.numbers(words) < 0)])
    plain = words.to_pylist()
    joined = [" ".join(plain[start:end]) for start, end in zip(cut.offsets, cut.offsets[1:], strict=False)]
    return np.diff(cut.offsets), np.diff(strange[cut.offsets]), joined


def choose(sentences: Iterable[str], unknown: int, index: WordIndex, seen: set[str]) -> list[str]:
    """Choose sentences of a fitting length with few unknown words, each once."""
    texts = list(sentences)
    length, strange, joined = count_words(pa.array(texts, pa.string()), index)
    fits = (length >= SHORTEST) & (length <= LONGEST) & (strange <= unknown)
    chosen = []
    for place in np.flatnonzero(fits):
        if joined[place] not in seen:
            seen.add(joined[place])
            chosen.append(write_out(texts[place]))
    return chosen


def main() -> None:
    """Choose, write, say what was written."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).exists():
        sys.exit("usage: python scripts/sentences.py WORDNET, or make sentences WORDNET=...: WordNet 3.0's dictionary")
    senses = list(read_senses(Path(sys.argv[1])))
    index, seen = WordIndex(load(DEMO).words), set[str]()
    examples = choose((text for *_, gloss in senses for text in find_examples(gloss) if text), UNKNOWN, index, seen)
    definitions = choose((text for sense in senses if (text := define(*sense))), 0, index, seen)
    texts = pa.array(examples + definitions, pa.string())
    TARGET.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"text": texts}), TARGET, compression="zstd", compression_level=19, use_dictionary=False)
    length, strange, _ = count_words(texts, index)
    print(
        f"written: {TARGET.relative_to(ROOT)}: {len(examples):,} examples, {len(definitions):,} definitions, "
        f"{length.sum():,} words, {1 - strange.sum() / length.sum():.1%} of them in the demo embedding; "
        f"{TARGET.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
