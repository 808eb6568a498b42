"""What names and values cost: names among the words of film reviews, looked up in a vocabulary as a job does; shapes
and values of made tokens of all classes.

    python research/benchmarks/type_values.py [--smallest]

Processor time of one core, the best of nine runs. Half a minute; the reviews are those of tables.py. Writes
research/results/type_values.json and prints a table.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from common import DATA, load_embedding, machine, make_parser, save_results
from tables import reviews
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.text.tokeniser import Tokeniser
from wordveil.text.types.classes import CLASSES, TYPES, TypeAction
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.names import find_names
from wordveil.text.types.shapes import find_shapes
from wordveil.text.types.surrogates import WORDS, draw_values

REVIEWS = 4000
TOKENS = 20_000
EXAMPLES: dict[str, list[str]] = {
    "email": ["someone@host.example"],
    "url": ["https://www.host.example/page"],
    "phone": ["(212) 555-1234", "+49 170 1234567", "020 7946 0958"],
    "ip": ["10.1.2.3", "fe80::1:2"],
    "date": ["2026-11-23", "23/11/2026", "Aug. 23, 2004", "23 August 2004", "Sept 3rd"],
    "time": ["14:30", "2:30 pm", "14:30:05"],
    "number": ["3,500", "12", "7", "1999", "0.25", "1st"],
    "amount": ["$3,500.00", "20 EUR", "12%"],
    "account": ["DE89 3704 0044 0532 0130 00", "123-45-6789", "1234567890"],
    "card": ["4111 1111 1111 1111"],
    "mention": ["@someone"],
    "hashtag": ["#topic"],
    "emoji": ["\U0001f600"],
    "markup": ["<br />", "</p>", "&amp;"],
    "first_name": ["Alice", "BOB", "Ann's"],
    "surname": ["Smith"],
    "place": ["London"],
    "nationality": ["Austrian"],
}


def best(run: Callable[[], Any], count: int, repeats: int) -> float:
    """Measure nanoseconds of processor time an element: the best of the runs, the first one not counted."""
    run()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return round(min(found) / count * 1e9, 1)


def measure_names(lists: PublicLists, repeats: int) -> dict[str, Any]:
    """Measure names among the words of reviews."""
    texts = reviews(REVIEWS if repeats > 1 else 100)
    tokeniser = Tokeniser()
    words = load_embedding("mixed" if (DATA / "mixed_w2v_300d.f16.npz").exists() else "demo").words
    pieces = tokeniser.cut_words(tokeniser.normalise(pa.array(texts)), WordIndex(words))
    count, matches = len(pieces.words), lists.names.match(words)
    kinds = find_names(pieces, lists, matches)
    return {
        "words": count,
        "names_ns_a_word": best(lambda: find_names(pieces, lists, matches), count, repeats),
        "share": {TYPES[kind]: round(float(np.mean(kinds == kind)), 5) for kind in np.unique(kinds) if kind >= 0},
    }


def measure_values(lists: PublicLists, action: TypeAction, repeats: int) -> dict[str, Any]:
    """Shapes and values of all classes alike, under one action where a class allows it."""
    rng = np.random.default_rng(1)
    originals = pa.array([text for texts in EXAMPLES.values() for text in texts])
    of = np.array([TYPES.index(kind) for kind, texts in EXAMPLES.items() for _ in texts], np.int8)
    drawn = rng.integers(0, len(of), TOKENS)
    kinds, tokens = of[drawn], originals.take(pa.array(drawn))
    words = rng.integers(0, 2**64, (TOKENS, WORDS), dtype=np.uint64)
    actions = {kind: action if action in entry.allowed else TypeAction.SURROGATE for kind, entry in CLASSES.items()}
    shapes = find_shapes(kinds, actions, tokens)
    return {
        "tokens": TOKENS,
        "shapes_ns_a_token": best(lambda: find_shapes(kinds, actions, tokens), TOKENS, repeats),
        "values_ns_a_token": best(lambda: draw_values(kinds, actions, shapes, words, lists), TOKENS, repeats),
    }


def main() -> None:
    """Measure, save, print."""
    parser = make_parser(__doc__)
    smallest = parser.parse_args().smallest
    repeats = 1 if smallest else 9
    lists = PublicLists.load("en")
    content: dict[str, Any] = {"machine": machine(), "names": measure_names(lists, repeats)}
    for action in (TypeAction.SURROGATE, TypeAction.RESAMPLE):
        content[action] = measure_values(lists, action, repeats)
    save_results("type_values", content, smallest=smallest)
    table = Table("step", "ns", title="Names and values, one core")
    table.add_row("names, a word", f"{content['names']['names_ns_a_word']:.0f}")
    for action in (TypeAction.SURROGATE, TypeAction.RESAMPLE):
        table.add_row(f"{action}: shape, a token", f"{content[action]['shapes_ns_a_token']:.0f}")
        table.add_row(f"{action}: value, a token", f"{content[action]['values_ns_a_token']:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
