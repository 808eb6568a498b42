"""Typed tokens in texts: what finding them costs beside a bare pass over the bytes, and how often it is right.

One core, one process.

- Speed: the pass and a bare pass that adds up a table's entry for each byte take turns over the same texts; medians of
  the rounds, in nanoseconds a token (a run between blanks). Beside them what one call
  of phonenumbers, dateutil, emoji and Python's own regular expressions costs.
- The whole way from newswire to token ids, by policies with types and without.
- Made texts: Faker's sentences with addresses, numbers, dates and so on at known places, and with what looks like them.
  A token counts where class, beginning and end are right.
- Mails: counts only, of tokens that the pass and another finder have in common: phonenumbers (numbers of the United
  States, grouped as numbers are written), dateutil, and regular expressions for mail and web addresses. Nothing of a
  mail is printed or kept.

    python research/benchmarks/typed_tokens.py [--smallest]

It takes Faker, emoji, phonenumbers and python-dateutil (the extra ``dev``). The texts are read from the data directory
beside the repository; without it the made texts stand in for them. Writes research/results/typed_tokens.json and
prints tables.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy loads its BLAS

import dateutil.parser
import emoji
import numpy as np
import phonenumbers
import pyarrow as pa
from faker import Faker
from rich.console import Console
from rich.table import Table

from common import DATA, machine, make_parser, save_results
from wordveil.compiled import compiled
from wordveil.embeddings import embedding
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.text.codec import Codec
from wordveil.text.policy import with_profile
from wordveil.text.scanner import cut_strings
from wordveil.text.stop_words import load_stop_words
from wordveil.text.types.classes import TYPES
from wordveil.text.types.finders.characters import load_tables
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.typed import Recogniser

FOUND = TYPES[:14]
CORPORA = ("aclImdb", "c50_reuters", "enron_jstylo50")
# Simple forms, for a second opinion.
MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[A-Za-z]{2,}")
WEB = re.compile(r"(?<!\w)(?:https?://|ftp://|www\.)[^\s<>\"]+")
# What looks like a token of some class and is none.
DECOYS = (
    "version v2.1.3", "the A380", "a < b", "end.In the", "HOU/ECT", "report.doc", "C# and F#", "at @ home", "I may go",
    "abc123", "the 3D film", "e.g. this", "3D", "x_3", "AT&T", "std::vector", "<-", "#",
)  # fmt: skip


@compiled
def add_up(data: np.ndarray, table: np.ndarray) -> int:
    """Make a bare pass: one look-up and one addition for each byte."""
    total = 0
    for place in range(len(data)):
        total += table[data[place]]
    return total


def read(name: str, most: int) -> list[str]:
    """Read the first texts of a corpus, ``most`` characters of them; none where it is absent."""
    path = Path(DATA) / f"{name}.jsonl.xz"
    texts: list[str] = []
    if path.exists():
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                texts.append(json.loads(line)["text"])
                most -= len(texts[-1])
                if most < 0:
                    break
    return texts


def seconds(work: Callable[[], Any]) -> float:
    """Measure the processor's time, so that others on the machine count less."""
    started = time.process_time()
    work()
    return time.process_time() - started


def speed(texts: list[str], rounds: int) -> dict[str, Any]:
    """Measure nanoseconds a token, and how many tokens of each class were found."""
    array = pa.array(texts, pa.string())
    data = np.frombuffer(array.buffers()[2], np.uint8)
    roles = load_tables().roles
    recogniser = Recogniser(FOUND)
    spans = recogniser.find(array)
    work: dict[str, Callable[[], Any]] = {
        "find": lambda: recogniser.find(array),
        "cut": lambda: cut_strings(array, spans.starts, spans.ends),
        "bare_pass": lambda: add_up(data, roles),
    }
    taken: dict[str, list[float]] = {name: [] for name in work}
    for name, one in work.items():
        one()
        taken[name].clear()
    for _ in range(rounds):
        for name, one in work.items():
            taken[name].append(seconds(one))
    tokens = sum(len(text.split()) for text in texts)
    counts = np.bincount(spans.kinds, minlength=len(FOUND))
    return {
        "bytes": len(data),
        "tokens": tokens,
        "found": {kind: int(count) for kind, count in zip(FOUND, counts, strict=True)},
        "nanoseconds_a_token": {name: round(statistics.median(some) / tokens * 1e9, 2) for name, some in taken.items()},
        "nanoseconds_of_find_a_span": round(statistics.median(taken["find"]) / max(len(spans.starts), 1) * 1e9),
    }


def call_costs(repeats: int) -> dict[str, float]:
    """Measure microseconds of one call of other finders: over one candidate, or for each token of plain text."""
    plain = "Then the old man went back to his house by the river and said no more of it that night " * 20
    words = len(plain.split())
    candidates: dict[str, tuple[Callable[[], Any], int]] = {
        "phonenumbers_candidate": (lambda: list(phonenumbers.PhoneNumberMatcher("(650) 253-0000", "US")), 1),
        "dateutil_candidate": (lambda: dateutil.parser.parse("August 23, 2004"), 1),
        "emoji_plain_token": (lambda: emoji.emoji_list(plain), words),
        "regex_mail_plain_token": (lambda: MAIL.findall(plain), words),
        "phonenumbers_plain_token": (lambda: list(phonenumbers.PhoneNumberMatcher(plain, "US")), words),
    }
    costs = {}
    for name, (work, count) in candidates.items():
        work()
        costs[name] = round(seconds(lambda one=work: [one() for _ in range(repeats)]) / repeats / count * 1e6, 3)
    return costs


def makers(fakers: list[Faker]) -> dict[str, list[Callable[[], str]]]:
    """For each class the ways to make a token."""
    one, rng = fakers[0], fakers[0].random
    sequences = sorted(
        sequence for sequence, about in emoji.EMOJI_DATA.items() if about["status"] == emoji.STATUS["fully_qualified"]
    )
    dates = ("%Y-%m-%d", "%d/%m/%Y", "%m/%d/%y", "%d.%m.%Y", "%B %d, %Y", "%b. %d, %Y", "%d %B %Y", "%B %Y", "%d-%b-%Y")
    times = ("%H:%M", "%I:%M %p", "%H:%M:%S", "%H:%M:%SZ")
    return {
        "email": [one.email, one.ascii_company_email, lambda: one.email().replace("@", "+tag@")],
        "url": [one.url, one.uri, lambda: "www." + one.domain_name(), lambda: one.domain_name() + "/" + one.slug()],
        "phone": [faker.phone_number for faker in fakers],
        "ip": [one.ipv4, one.ipv6],
        "date": [lambda: one.date(pattern=rng.choice(dates))],
        "time": [lambda: one.time(pattern=rng.choice(times))],
        "number": [
            lambda: f"{rng.randrange(10 ** rng.randrange(1, 7)):,}",
            lambda: f"{rng.uniform(-1000, 1000):.2f}",
            lambda: f"{rng.choice((21, 31, 51))}st",
        ],
        "amount": [one.pricetag, lambda: f"{rng.randrange(1, 999)} EUR", lambda: f"{rng.randrange(100)}%"],
        "account": [one.iban, lambda: one.numerify("###-##-####"), one.bban],
        "card": [lambda: one.credit_card_number(card_type="visa"), lambda: one.credit_card_number(card_type="amex")],
        "mention": [lambda: "@" + one.user_name()],
        "hashtag": [lambda: "#" + one.word(), lambda: "#" + one.word() + str(rng.randrange(100))],
        "emoji": [lambda: rng.choice(sequences)],
        "markup": [
            lambda: f"<{rng.choice(('b', 'p', '/p', 'br/'))}>",
            lambda: f'<a href="{one.url()}">',
            lambda: "&amp;",
        ],
    }


def encoding(texts: list[str], rounds: int) -> dict[str, float]:
    """Measure nanoseconds a word of the whole way from texts to token ids, by policies that take turns: with types and
    without.
    """
    vocabulary, lists = Vocabulary(embedding.load("demo").words), PublicLists.load("en")
    plain = {"types": {}, "names": "words"}
    stops = {"stop_word_list": load_stop_words("english", "en")}
    policies = {
        "strict, no types": with_profile("strict", n_max=256, **plain),
        "strict": with_profile("strict", n_max=256),
        "readable, no types": with_profile("readable", **stops, **plain),
        "readable": with_profile("readable", **stops),
    }
    codecs = {name: Codec(policy, vocabulary, None, lists) for name, policy in policies.items()}
    batch = pa.array(texts, pa.string())
    words = int(codecs["strict, no types"].encode(batch).words.sum())
    taken: dict[str, list[float]] = {name: [] for name in codecs}
    for number in range(rounds + 1):
        for name, codec in codecs.items():
            needed = seconds(lambda codec=codec: codec.encode(batch))
            if number:  # the first round compiles
                taken[name].append(needed)
    return {name: statistics.median(values) / words * 1e9 for name, values in taken.items()}


def make_texts(count: int) -> tuple[list[str], list[list[tuple[str, int, int]]]]:
    """Make texts with tokens at known places: class, first and last byte."""
    Faker.seed(20261123)
    fakers = [Faker(locale) for locale in ("en_US", "en_GB", "de_DE", "fr_FR")]
    ways = makers(fakers)
    rng = fakers[0].random
    texts, places = [], []
    for _ in range(count):
        text, found = "", []
        for _ in range(rng.randrange(1, 6)):
            text += fakers[0].sentence(rng.randrange(3, 10))[:-1] + " "
            if rng.random() < 0.25:
                text += rng.choice(DECOYS) + " "
            kind = rng.choice(sorted(ways))
            token = rng.choice(ways[kind])()
            found.append((kind, len(text.encode()), len((text + token).encode())))
            text += token + rng.choice((" ", ", ", ". ", "; ", " ", ") "))
        texts.append(text)
        places.append(found)
    return texts, places


def rightness(texts: list[str], places: list[list[tuple[str, int, int]]]) -> dict[str, Any]:
    """Precision and recall of each class over made texts."""
    array = pa.array(texts, pa.string())
    spans = Recogniser(FOUND).find(array)
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    made, found, right = Counter[str](), Counter[str](), Counter[str]()
    for record, known in enumerate(places):
        start = int(offsets[record])
        here = {
            (TYPES[spans.kinds[i]], int(spans.starts[i]) - start, int(spans.ends[i]) - start)
            for i in range(spans.offsets[record], spans.offsets[record + 1])
        }
        made.update(kind for kind, _, _ in known)
        found.update(kind for kind, _, _ in here)
        right.update(kind for kind, _, _ in here & set(known))
    return {
        kind: {
            "made": made[kind],
            "found": found[kind],
            "precision": round(right[kind] / max(found[kind], 1), 4),
            "recall": round(right[kind] / max(made[kind], 1), 4),
        }
        for kind in FOUND
    }


def overlap(ours: Iterable[tuple[int, int]], theirs: Iterable[tuple[int, int]]) -> dict[str, int]:
    """Return how many spans of each side lie over one of the other."""
    mine, other = sorted(ours), sorted(theirs)

    def touched(some: list[tuple[int, int]], by: list[tuple[int, int]]) -> int:
        return sum(any(a < d and c < b for c, d in by) for a, b in some)

    return {
        "ours": len(mine),
        "theirs": len(other),
        "ours_in_theirs": touched(mine, other),
        "theirs_in_ours": touched(other, mine),
    }


def parses(token: str) -> bool:
    """Return whether dateutil reads a token as a date."""
    try:
        dateutil.parser.parse(token)
    except (ValueError, OverflowError):
        return False
    return True


def mails(texts: list[str]) -> dict[str, Any]:
    """Return what the pass and other finders have in common."""
    texts = [text.encode("ascii", "replace").decode() for text in texts]  # a character a byte
    array = pa.array(texts, pa.string())
    spans = Recogniser(FOUND).find(array)
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    totals: dict[str, Counter[str]] = {"phone": Counter(), "email": Counter(), "url": Counter()}
    for record, text in enumerate(texts):
        ours: dict[str, list[tuple[int, int]]] = {kind: [] for kind in totals}
        for i in range(spans.offsets[record], spans.offsets[record + 1]):
            kind = TYPES[spans.kinds[i]]
            if kind in ours:
                ours[kind].append((int(spans.starts[i] - offsets[record]), int(spans.ends[i] - offsets[record])))
        leniency = phonenumbers.Leniency.VALID
        theirs = {
            "phone": [(match.start, match.end) for match in phonenumbers.PhoneNumberMatcher(text, "US", leniency)],
            "email": [match.span() for match in MAIL.finditer(text)],
            "url": [match.span() for match in WEB.finditer(text)],
        }
        for kind, total in totals.items():
            total.update(overlap(ours[kind], theirs[kind]))
    cut = cut_strings(array, spans.starts, spans.ends).to_pylist()
    dates = [token for token, kind in zip(cut, spans.kinds.tolist(), strict=True) if TYPES[kind] == "date"]
    return {
        "mails": len(texts),
        **{kind: dict(total) for kind, total in totals.items()},
        "date": {"ours": len(dates), "read_by_dateutil": sum(map(parses, dates))},
    }


def show(content: dict[str, Any]) -> None:
    console = Console(width=140)
    table = Table("texts", "tokens", "spans", "find", "cut", "bare pass", title="Nanoseconds a token")
    for name, row in content["speed"].items():
        cells = [f"{row['nanoseconds_a_token'][step]:.1f}" for step in ("find", "cut", "bare_pass")]
        table.add_row(name, f"{row['tokens']:,}", f"{sum(row['found'].values()):,}", *cells)
    console.print(table)
    console.print(content["microseconds"])
    table = Table("class", "made", "found", "precision", "recall", title="Made texts")
    for kind, row in content["made_texts"].items():
        table.add_row(kind, str(row["made"]), str(row["found"]), f"{row['precision']:.3f}", f"{row['recall']:.3f}")
    console.print(table)
    console.print(content["mails"])


def main() -> None:
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    about = machine()
    texts, places = make_texts(50 if smallest else 6000)
    corpora = {name: read(name, 10**4 if smallest else 6 * 10**6) for name in CORPORA}
    read_mails = corpora["enron_jstylo50"][: 40 if smallest else 400]
    content = {
        "machine": about,
        "versions": {
            "emoji": emoji.__version__,
            "phonenumbers": phonenumbers.__version__,
            "dateutil": dateutil.__version__,
        },
        "speed": {
            name: speed(some, 1 if smallest else 15) for name, some in {**corpora, "made": texts}.items() if some
        },
        "microseconds": call_costs(2 if smallest else 200),
        "encoding_ns_a_word": encoding(corpora["c50_reuters"] or texts, 1 if smallest else 7),
        "made_texts": rightness(texts, places),
        "mails": mails(read_mails),
    }
    show(content)
    save_results("typed_tokens", content, smallest=smallest)


if __name__ == "__main__":
    main()
