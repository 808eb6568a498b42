"""Makes the lists of ordinary and of sensitive English words that come with the package, from WordNet 3.0.

    python scripts/word_lists.py WORDNET

WORDNET is the directory or tar archive with WordNet 3.0's dictionary (data.*, index.*, *.exc, cntlist.rev). Only words
of the embeddings that come with the package are listed, inflected forms too. ``scripts/word_lists.toml`` has the
categories. Writes lib/wordveil/data/word_lists. Seconds; the same files give the same bytes.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from bigrams import read_files

from wordveil.assembly.word_tables import list_names
from wordveil.embeddings.embedding import load

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "lib" / "wordveil" / "data" / "word_lists"
STOP_WORDS = ROOT / "lib" / "wordveil" / "data" / "stop_words" / "english.txt"
CATEGORIES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
EMBEDDINGS = ("glove", "demo")

# What Morphy, WordNet's own rule, takes off a word, and what it puts there.
ENDINGS = {
    "noun": (
        *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man")),
        ("ies", "y"),
    ),
    "verb": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}
KINDS = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
Synset = tuple[str, int]
DERIVED, PERTAINS, BELOW = "+", "\\", "~"


class WordNet:
    """The dictionary: the synsets of each word, the words of each synset, and what leads from one to another."""

    def __init__(self, source: Path) -> None:
        self.words: dict[Synset, list[str]] = {}
        self.pointers: dict[Synset, list[tuple[str, Synset, int, int]]] = {}
        self.senses: dict[tuple[str, str], list[Synset]] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        self._exceptions: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, content in read_files(source):
            stem, _, kind = name.partition(".")
            if name == "cntlist.rev" or kind == "exc" or kind in ENDINGS:
                for line in content.decode("ascii", "replace").splitlines():
                    if line[0] != " ":
                        self._read_line(stem, kind, line)
        if not self.words or not self.senses or not self.counts:
            sys.exit(f"{source}: lacks WordNet's files data.noun, index.noun and cntlist.rev.")

    def _read_line(self, stem: str, kind: str, line: str) -> None:
        fields = line.split()
        if stem == "data":
            self._read_synset(kind, line)
        elif stem == "index":
            self.senses[fields[0], kind] = [(kind, int(offset)) for offset in fields[-int(fields[2]) :]]
        elif kind == "exc":
            self._exceptions[fields[0], stem] += fields[1:]
        elif stem == "cntlist":
            lemma, _, rest = fields[0].partition("%")
            self.counts[lemma, {"1": "noun", "2": "verb", "4": "adv"}.get(rest[0], "adj")] += int(fields[2])

    def _read_synset(self, kind: str, line: str) -> None:
        fields = line.split("|", maxsplit=1)[0].split()
        synset = (kind, int(fields[0]))
        number = int(fields[3], 16)
        self.words[synset] = [fields[4 + 2 * place].split("(")[0] for place in range(number)]
        start = 5 + 2 * number
        links = [fields[start + 4 * place : start + 4 * place + 4] for place in range(int(fields[start - 1]))]
        self.pointers[synset] = [
            (sign, (KINDS[to], int(offset)), *divmod(int(ends, 16), 256)) for sign, offset, to, ends in links
        ]

    def lemmas(self, word: str) -> Iterator[tuple[str, str]]:
        """Return the lemmas that a word may be a form of, with their kinds."""
        for kind, endings in ENDINGS.items():
            found = [word, *self._exceptions[word, kind]]
            found += [word[: -len(end)] + more for end, more in endings if word.endswith(end) and len(word) > len(end)]
            yield from ((lemma, kind) for lemma in dict.fromkeys(found) if (lemma, kind) in self.senses)

    def is_ordinary(self, word: str) -> bool:
        """Return whether a lemma of it is written in lower case."""
        return any(
            lemma in self.words[sense] for lemma, kind in self.lemmas(word) for sense in self.senses[lemma, kind]
        )

    def is_usual(self, lemma: str, sense: Synset) -> bool:
        """Return whether this is the first sense of a lemma, of the kind in which it occurs most."""
        counts = {kind: self.counts[lemma, kind] for kind in ENDINGS if (lemma, kind) in self.senses}
        return self.senses[lemma, sense[0]][0] == sense and counts[sense[0]] == max(counts.values())

    def below(self, roots: list[Synset]) -> set[Synset]:
        """Return the roots and all their hyponyms."""
        found, open_ = set(roots), list(roots)
        while open_:
            for sign, target, _, _ in self.pointers[open_.pop()]:
                if sign == BELOW and target not in found:
                    found.add(target)
                    open_.append(target)
        return found

    def members(self, roots: list[Synset]) -> set[tuple[str, str]]:
        """Return the single words of these synsets that are usual in them, and what derives from them, with their
        kinds.
        """
        synsets = self.below(roots)
        pairs = {(word, synset) for synset in synsets for word in self.words[synset]}
        for synset in synsets:
            for sign, target, _, to in self.pointers[synset]:
                if sign == DERIVED and to:
                    pairs.add((self.words[target][to - 1], target))
        for synset, links in self.pointers.items():
            for sign, target, of, _ in links:
                if sign == PERTAINS and synset[0] == "adj" and target in synsets and of:
                    pairs.add((self.words[synset][of - 1], synset))
        lowered = {(word.lower(), synset) for word, synset in pairs if "_" not in word}
        return {(word, synset[0]) for word, synset in lowered if self.is_usual(word, synset)}


def find_root(wordnet: WordNet, root: str) -> Synset:
    """Find the synset of ``word:sense``, a noun."""
    lemma, sense = root.split(":")
    senses = wordnet.senses.get((lemma, "noun"), [])
    if int(sense) > len(senses):
        sys.exit(f"{root}: WordNet has {len(senses)} senses of this noun.")
    return senses[int(sense) - 1]


def list_sensitive(wordnet: WordNet, vocabulary: list[str]) -> dict[str, str]:
    """List the category of each sensitive word; the first one that has it."""
    found: dict[str, str] = {}
    written = {name: set(category["also"].split()) for name, category in CATEGORIES.items()}
    names = list_names(world=False)
    for name, category in CATEGORIES.items():
        members = wordnet.members([find_root(wordnet, root) for root in category["roots"].split()])
        never = names.union(category["never"].split(), *(words for other, words in written.items() if other != name))
        for word in vocabulary:
            # A word that is a lemma itself is seldom a form of another one: number, singing.
            forms = {lemma for lemma in wordnet.lemmas(word) if lemma[0] == word} or {*wordnet.lemmas(word)}
            is_below = word.isalpha() and word not in never and not members.isdisjoint(forms)
            if word in written[name] or (is_below and never.isdisjoint(lemma for lemma, _ in forms)):
                found.setdefault(word, name)
    for word in vocabulary:
        if word.endswith("'s") and word[:-2] in found:
            found.setdefault(word, found[word[:-2]])
    return found


def main() -> None:
    """Write the lists, say how long they are."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).exists():
        sys.exit("usage: python scripts/word_lists.py WORDNET, or make word-lists WORDNET=...")
    wordnet = WordNet(Path(sys.argv[1]))
    vocabulary = sorted({word for name in EMBEDDINGS for word in load(name).words.to_pylist()})
    stop_words = set(STOP_WORDS.read_text("utf-8").split())
    ordinary = [word for word in vocabulary if word in stop_words or (word.isalpha() and wordnet.is_ordinary(word))]
    sensitive = list_sensitive(wordnet, vocabulary)
    TARGET.mkdir(exist_ok=True)
    (TARGET / "ordinary.tsv").write_text("".join(f"{word}\n" for word in ordinary), "utf-8")
    (TARGET / "sensitive.tsv").write_text("".join(f"{word}\t{name}\n" for word, name in sensitive.items()), "utf-8")
    print(f"ordinary {len(ordinary):,}; {dict(Counter(sensitive.values()))}")


if __name__ == "__main__":
    main()
