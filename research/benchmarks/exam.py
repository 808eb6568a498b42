"""How many labelled names, addresses and numbers of made sentences come out, under a readable job and under Presidio.

The sentences are presidio-research's labelled set, `presidio_generated_large.jsonl.xz` of the data directory. The job
is the one that `wordveil init` drafts, with `profile: readable`; it draws under several keys. Presidio replaces what it
finds by the name of its class, with its patterns alone and with spaCy's small model. Each runs in an environment of its
own, which is made with pip in the user's cache directory (XDG_CACHE_HOME). One that cannot be installed is reported.

Of each class of spans: a span comes out *whole* where its words, in this order and with nothing between them, are
anywhere in the output, in any case. It comes out *in part* where one of its telling words or groups of figures is: of
three characters or more, no stop-word, and none of `http`, `www`, `com` and the like. Spans without such a word ("Mr",
"18") count for `whole` alone; `whole_telling` leaves them out. Nationalities are not labelled in the set: they are the
words of the package's list, with a capital, outside of the labelled spans.

    python research/benchmarks/exam.py [--smallest] [--data FILE] [--environments DIR]

Writes research/results/exam.json and prints its table. ``--table`` draws nothing and prints the table that is there.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from common import DATA, RESULTS, draft_job, draft_mechanism, machine, make_parser, save_results
from wordveil.arrays import Float64
from wordveil.assembly.bundles import build_bundle
from wordveil.config.load import Config
from wordveil.crypto.keys import MasterKey
from wordveil.records.sanitiser import RecordSanitiser
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.scores.counts import bound_above, bound_below
from wordveil.scores.score import find_ratio_interval
from wordveil.text.stop_words import load_stop_words
from wordveil.text.types.lists import PublicLists
from wordveil_research.peers.processes import PRESIDIO, PRESIDIO_MODEL, Peer, PeerError, PeerSanitiser, make_environment

TEXT = {"profile": "readable", "language": "en", "max_unknown_share": 0.5}

SET = DATA / "presidio_generated_large.jsonl.xz"
KEYS, QUICK_KEYS, QUICK_SENTENCES = 20, 2, 100
SEED, TAIL = 26, 0.025
ALL, NATIONALITY = "all labelled", "nationality"
OWN = "wordveil"
PEERS: dict[str, tuple[Peer, str]] = {
    "Presidio, patterns": (PRESIDIO, "patterns"),
    "Presidio, patterns and model": (PRESIDIO_MODEL, "model"),
}
# The key of public sentences is made of a public constant, so that draws repeat.
KEY = MasterKey(sha256(b"wordveil: draws of public sentences, for the exam").digest())
# Public addresses have these last words as well.
STOP_WORDS = frozenset((*load_stop_words(None), "http", "https", "www", "com", "net", "org"))
SHORTEST = 3

Sanitise = Callable[[Sequence[str], int], list[str]]
"""From the texts and the number of a draw to what is written."""


def cut(text: str) -> list[str]:
    """Cut out the words and groups of figures of a text, in lower case."""
    return re.findall(r"[^\W_]+", text.casefold())


@dataclass(frozen=True)
class Span:
    """A labelled span: the number of its sentence, its class, its words."""

    sentence: int
    kind: str
    words: tuple[str, ...]

    @property
    def telling(self) -> frozenset[str]:
        """The words that say something."""
        return frozenset(word for word in self.words if len(word) >= SHORTEST and word not in STOP_WORDS)


def read_set(path: Path, limit: int | None) -> tuple[list[str], list[Span]]:
    """Read the sentences of a set, and their spans, nationalities among them."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][:limit]
    nations = frozenset(PublicLists.load("en").nationalities.to_pylist())
    spans = []
    for number, row in enumerate(rows):
        text = row["text"]
        for span in row["spans"]:
            spans.append(Span(number, span["type"], tuple(cut(text[span["start"] : span["end"]]))))
            text = f"{text[: span['start']]}{' ' * (span['end'] - span['start'])}{text[span['end'] :]}"
        words = re.findall(r"[^\W_]+", text)
        spans += [Span(number, NATIONALITY, (word.casefold(),)) for word in words if word in nations]
    return [row["text"] for row in rows], [span for span in spans if span.words]


def make_own(config: Config) -> Sanitise:
    """Make the job, under a key of its own for each draw. A record that it refuses becomes the empty text."""
    bundle = build_bundle(config)

    def sanitise(texts: Sequence[str], draw: int) -> list[str]:
        keys = KEY.for_release(f"exam-{draw}")
        sanitiser = RecordSanitiser(config.record_settings(f"exam-{draw}"), bundle, keys)
        columns = {"id": [f"r{number}" for number in range(len(texts))], TEXT_COLUMN: list(texts)}
        batch = pa.RecordBatch.from_pydict({**columns, REASON_COLUMN: pa.nulls(len(texts), pa.string())})
        rows = pa.Table.from_batches(sanitiser.sanitise(batch)).select(["id", "text"]).to_pylist()
        written = {row["id"]: row["text"] or "" for row in rows}
        return [written[name] for name in columns["id"]]

    return sanitise


def ask_peer(peer: Peer, mechanism: str, texts: Sequence[str], environments: Path) -> tuple[list[str], dict[str, Any]]:
    """Return what a peer writes, and what it says of itself. Raises :class:`PeerError` where it cannot be installed or
    run.
    """
    python = make_environment(peer, environments)
    with tempfile.TemporaryDirectory() as kept:
        task = {"words": "", "vectors": "", "epsilon": None, "kept": kept, "mechanism": mechanism}
        with PeerSanitiser(peer, python, task) as process:
            return process.sanitise(texts), process.about


def find_hits(outputs: Sequence[str], spans: Sequence[Span]) -> tuple[Float64, Float64]:
    """Return which spans come out whole, and which in part: 0 or 1, ``(spans,)``."""
    words = [cut(text) for text in outputs]
    lines, sets = [f" {' '.join(one)} " for one in words], [frozenset(one) for one in words]
    whole = [f" {' '.join(span.words)} " in lines[span.sentence] for span in spans]
    part = [not span.telling.isdisjoint(sets[span.sentence]) for span in spans]
    return np.array(whole, np.float64), np.array(part, np.float64)


def summarise(shares: Float64, sentences: Sequence[int]) -> dict[str, Any]:
    """Return the share of spans that come out, with its 95% interval over sentences.

    ``shares``: of its draws, for each span. ``sentences``: where each is. Where none or all come out, a bootstrap has
    no width, and the interval is the exact one of as many spans, each drawn once.
    """
    count, value = len(shares), float(shares.mean()) if len(shares) else 0.0
    if not count:
        return {"spans": 0}
    if value in (0.0, 1.0):
        hits = count * value
        low, high = float(bound_below(hits, count, TAIL)), float(bound_above(hits, count, TAIL))
    else:
        _, which = np.unique(np.asarray(sentences), return_inverse=True)
        low, high = find_ratio_interval(np.bincount(which, shares), np.bincount(which), SEED)
    return {"spans": count, "share": value, "low": low, "high": high}


def mark(outputs: Iterable[Sequence[str]], spans: Sequence[Span]) -> dict[str, Any]:
    """Return the figures of each class, from what was written in each draw."""
    found = [find_hits(texts, spans) for texts in outputs]
    whole, part = (np.mean([one[side] for one in found], axis=0) for side in (0, 1))
    rows = {}
    for kind in list_kinds(spans):
        mine = [
            place for place, span in enumerate(spans) if span.kind == kind or (kind == ALL and span.kind != NATIONALITY)
        ]
        telling = [place for place in mine if spans[place].telling]
        columns = {"whole": (whole, mine), "whole_telling": (whole, telling), "part": (part, telling)}
        rows[kind] = {
            name: summarise(shares[places], [spans[place].sentence for place in places])
            for name, (shares, places) in columns.items()
        }
    return rows


def list_kinds(spans: Sequence[Span]) -> list[str]:
    """List the classes, the frequent ones first; then all labelled spans, and nationalities."""
    labelled = [span.kind for span in spans if span.kind != NATIONALITY]
    kinds = sorted(set(labelled), key=lambda kind: (-labelled.count(kind), kind))
    return [*kinds, ALL, *([NATIONALITY] if len(labelled) < len(spans) else [])]


def show(cell: dict[str, Any]) -> str:
    """Show a share with its interval, in per cent."""
    if not cell["spans"]:
        return "-"
    return f"{100 * cell['share']:.2f} ({100 * cell['low']:.1f}-{100 * cell['high']:.1f})"


def write_table(systems: dict[str, Any]) -> str:
    """Write the table of research/docs/field.md: a row for each class, and two columns for each system."""
    marked = {name: system["classes"] for name, system in systems.items() if "classes" in system}
    columns = [f"{name}, {side}" if side == "whole" else "in part" for name in marked for side in ("whole", "part")]
    lines = [f"| class | spans | telling | {' | '.join(columns)} |", f"| --- |{' ---: |' * (2 + len(columns))}"]
    for kind, cells in marked[OWN].items():
        shown = [show(rows[kind][side]) for rows in marked.values() for side in ("whole", "part")]
        counts = [f"{cells[side]['spans']:,}" for side in ("whole", "part")]
        name = f"`{kind}`" if kind.isupper() else kind
        lines.append(f"| {' | '.join([name, *counts, *shown])} |")
    missing = [f"{name}: {system['error']}" for name, system in systems.items() if "error" in system]
    return "\n".join([*lines, *missing]) + "\n"


def main(given: Sequence[str] | None = None) -> None:
    """Measure, write, show."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, default=SET, help="the labelled sentences")
    parser.add_argument("--environments", type=Path, help="where packages' environments are, or are made")
    parser.add_argument("--table", action="store_true", help="print the table of the results that are there")
    arguments = parser.parse_args(given)
    if arguments.table:
        print(write_table(json.loads((RESULTS / "exam.json").read_text("utf-8"))["systems"]), end="")
        return
    texts, spans = read_set(arguments.data, QUICK_SENTENCES if arguments.smallest else None)
    keys = QUICK_KEYS if arguments.smallest else KEYS
    about = machine()
    with tempfile.TemporaryDirectory() as store:
        mechanism = draft_mechanism(store, smallest=arguments.smallest)
        sanitise = make_own(draft_job(store, mechanism, TEXT))
        outputs = [sanitise(texts, draw) for draw in range(keys)]
    refused = sum(not text for text in outputs[0])
    systems: dict[str, Any] = {
        OWN: {"mechanism": mechanism, "text": TEXT, "keys": keys, "refused": refused, "classes": mark(outputs, spans)}
    }
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wordveil-benchmarks"
    for name, (peer, setting) in {} if arguments.smallest else PEERS.items():
        try:
            written, says = ask_peer(peer, setting, texts, arguments.environments or cache)
        except PeerError as error:
            systems[name] = {"error": str(error)}
        else:
            systems[name] = {"about": says, "classes": mark([written], spans)}
    content = {"machine": about, "set": arguments.data.name, "sentences": len(texts), "systems": systems}
    save_results("exam", content, smallest=arguments.smallest)
    print(write_table(systems), end="")


if __name__ == "__main__":
    main()
