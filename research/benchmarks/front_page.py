"""Pictures of README.md: what becomes of one record in both ways, and subjects over time, estimated against true.

The record is the first sentence of a news article that gensim comes with. The subjects are those of 5,000 Reuters
articles of 1996 and 1997 (C50), in 20 periods of 250 articles in the order of Reuters' numbers. All are drawn in this
process by the jobs of `wordveil quickstart`, under a fixed key: a loss of 6 and 100 subjects for whole texts, 8 for
each word.

    python research/benchmarks/front_page.py
    python research/benchmarks/front_page.py --draw

A minute. Writes research/results/front_page.json, docs/pictures/record.svg and docs/pictures/subjects.svg, and prints
how many intervals hold the true count; ``--draw`` only draws the pictures from the result file again.
"""

from __future__ import annotations

import json
import lzma
import re
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from gensim.test.utils import datapath
from pyspark.sql.types import LongType
from rich.console import Console

from common import DATA, RESULTS, ROOT, load_embedding, machine, make_parser, save_results
from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import describe_symbols, ready_bundle
from wordveil.config.load import Config, parse_config
from wordveil.crypto.keys import MasterKey
from wordveil.measures.estimates import Estimator
from wordveil.records.codec import ColumnsCodec
from wordveil.records.columns import ONE_TEXT
from wordveil.records.sanitiser import RecordSanitiser
from wordveil.records.schema import REASON_COLUMN, SYMBOLS
from wordveil.report.estimates import draw_lines
from wordveil.spark.analytics import Meanings, SymbolCounts

PICTURES = ROOT / "docs" / "pictures"
KEY = MasterKey(sha256(b"research/benchmarks/front_page.py").digest())
ARTICLE, PERIODS, PERIOD, PANELS = 251, 20, "period", 6
PASSAGES, WORDS = "passages", "words"
JOBS = {PASSAGES: "quickstart-passages.yaml", WORDS: "quickstart.yaml"}

Figures = dict[str, Any]


def read_articles(*, smallest: bool) -> list[str]:
    """Read the articles of C50 in the order of Reuters' numbers."""
    with lzma.open(DATA / "c50_reuters.jsonl.xz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, 100 if smallest else None)]
    return [row["text"] for row in sorted(rows, key=lambda row: int(row["id"].removesuffix("newsML")))]


def read_job(name: str, home: Path, *, smallest: bool) -> Config:
    """Read one of the quickstart's jobs, with its bundles in ``home``."""
    settings = yaml.safe_load((ROOT / "conf" / JOBS[name]).read_text("utf-8"))
    settings["bundle_store"] = str(home / "bundles")
    if smallest:
        load_embedding("small").save(home / name)
        few = {"clusters": 4, "embedding": str(home / name)}
        settings["mechanism"] |= few if name == PASSAGES else few | {"clusters": [4], "least": 2, "merge": None}
    return parse_config(settings, JOBS[name])


def sanitise(texts: Sequence[str], config: Config, bundle: Bundle) -> list[Figures]:
    """Sanitise texts as a job's workers do."""
    sanitiser = RecordSanitiser(config.record_settings("front-page"), bundle, KEY.for_release(config.release))
    names = [config.source.id, *config.source.kept_names, *config.text_columns.inputs, REASON_COLUMN]
    columns = [pa.array([f"{number:04d}" for number in range(len(texts))]), pa.nulls(len(texts), pa.int64())]
    batch = pa.RecordBatch.from_arrays([*columns, pa.array(texts), pa.nulls(len(texts), pa.string())], names=names)
    return [row for part in sanitiser.sanitise(batch) for row in part.to_pylist()]


def find_subjects(texts: Sequence[str], config: Config, bundle: Bundle) -> np.ndarray:
    """Find the subjects of texts before the draw: int32 ``(texts,)``."""
    return ColumnsCodec(ONE_TEXT, config.policy, bundle).encode([pa.array(texts, pa.string())]).columns[0].ids


def follow_record(jobs: Mapping[str, tuple[Config, Bundle]]) -> Figures:
    """Follow the first sentence of an article through both ways."""
    article = Path(datapath("lee_background.cor")).read_text("utf-8").splitlines()[ARTICLE]
    text = re.split(r"(?<=\.) +(?=[A-Z])", article.strip(), maxsplit=1)[0]
    found: Figures = {"text": text}
    for name, (config, bundle) in jobs.items():
        symbols = bundle.mechanism.symbols
        (row,) = sanitise([text], config, bundle)
        stay = float(symbols.law.stay_probabilities().mean())
        found[name] = {"text": row["text"], "epsilon": row["privacy"]["epsilon"], "stay": stay}
        found[name] |= {"cost": row["privacy"]["epsilon_bound"], "symbols": len(symbols.law.sizes)}
    config, bundle = jobs[PASSAGES]
    (own,) = find_subjects([text], config, bundle).tolist()
    (drawn,) = sanitise([text], config, bundle)[0][SYMBOLS]
    keywords = bundle.topics.keywords.to_pylist()
    return found | {"subject": keywords[own], "drawn": keywords[drawn]}


def count_periods(texts: Sequence[str], config: Config, bundle: Bundle) -> tuple[list[Figures], list[Figures]]:
    """Estimate subjects by period, beside the ``true`` counts: rows of estimates, and of steps between periods."""
    symbols, described = bundle.mechanism.symbols, describe_symbols(bundle)
    periods, size = np.arange(len(texts)) * PERIODS // len(texts), symbols.law.size
    true, drawn = np.zeros((2, PERIODS, size), np.int64)
    np.add.at(true, (periods, find_subjects(texts, config, bundle)), 1)
    np.add.at(drawn, (periods, [row[SYMBOLS][0] for row in sanitise(texts, config, bundle)]), 1)
    groups = [(period,) for period in range(PERIODS)]
    meanings = Meanings(Estimator(symbols.law), described["meanings"])
    counted = SymbolCounts(((PERIOD, LongType()),), groups, drawn, meanings)
    rows = [{**row, "true": int(true[row[PERIOD], row["symbol"]])} for row in counted.estimate()]
    return rows, counted.compare(PERIOD)


def measure(*, smallest: bool) -> Figures:
    """Follow the record, and count the subjects: of those with the most steps beyond noise, all rows."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        configs = {name: read_job(name, home, smallest=smallest) for name in JOBS}
        jobs = {name: (config, ready_bundle(config)) for name, config in configs.items()}
        record = follow_record(jobs)
        rows, steps = count_periods(read_articles(smallest=smallest), *jobs[PASSAGES])
    real = dict.fromkeys({row["symbol"] for row in rows}, 0)
    for step in steps:
        real[step["symbol"]] += step["more_than_noise"]
    largest = {symbol: sum(row["estimate"] for row in rows if row["symbol"] == symbol) for symbol in real}
    shown = sorted(real, key=lambda symbol: (-real[symbol], -largest[symbol]))[:PANELS]
    kept = ("symbol", PERIOD, "draws", "drawn", "estimate", "low", "high", "true", "keywords")
    return {
        "record": record,
        "intervals": len(rows),
        "held": sum(row["low"] <= row["true"] <= row["high"] for row in rows),
        "steps": len(steps),
        "real_steps": sum(real.values()),
        "rows": [{name: row[name] for name in kept} for row in rows if row["symbol"] in shown],
        "shown_steps": [
            {name: step[name] for name in ("symbol", f"{PERIOD}_before", PERIOD, "more_than_noise")}
            for step in steps
            if step["symbol"] in shown
        ],
    }


STYLE = """<style>
:root { --ground: #ffffff; --panel: #f4f5f7; --ink: #1a1d21; --quiet: #555d66; --line: #d5d9de; --bar: #2a66b0;
  --range: #a9c4e6; --mark: #b3261e; --good: #146c2e; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --panel: #1f2429; --ink: #e8eaed; --quiet: #a4adb6;
  --line: #3a424a; --bar: #7fb0ee; --range: #3c5878; --mark: #ff8a80; --good: #7ddc94; } }
.ground { fill: var(--ground); } .box { fill: var(--panel); }
text { fill: var(--ink); font: 13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.quiet { fill: var(--quiet); font-size: 12px; } .strong { font-weight: 600; }
.price { fill: var(--mark); font-weight: 600; }
path { fill: none; vector-effect: non-scaling-stroke; stroke-linecap: round; stroke-linejoin: round; }
.band { fill: var(--range); stroke: var(--range); stroke-width: 2; fill-opacity: .55; stroke-opacity: .55; }
.within, .dots { stroke: var(--quiet); stroke-width: 1.5; } .dots { stroke-width: 4; }
.beyond { stroke: var(--bar); stroke-width: 3.5; }
.truth { stroke: var(--good); stroke-width: 2; stroke-dasharray: 2 3; }
.rule { stroke: var(--line); } .arrow { stroke: var(--quiet); stroke-width: 1.5; }
</style>"""


def frame(width: int, height: float, label: str, parts: Sequence[str]) -> str:
    """Make a picture of its parts, without anything that is loaded from elsewhere."""
    size = f'width="{width}" height="{height:g}" viewBox="0 0 {width} {height:g}"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(label)}">'
    ground = f'<rect class="ground" width="{width}" height="{height:g}" rx="8"/>'
    return "\n".join([begin, STYLE, ground, *parts, "</svg>\n"])


def write(x: float, y: float, lines: Sequence[str], kind: str = "") -> Iterator[str]:
    """Write lines of text below each other."""
    styled = f' class="{kind}"' if kind else ""
    for number, line in enumerate(lines):
        yield f'<text x="{x:g}" y="{y + 17 * number:g}"{styled}>{escape(line)}</text>'


def draw_record(record: Figures) -> str:
    """Draw the record, what each way reads, draws, writes and charges, and what becomes of the table."""
    width, column, gap = 760, 364, 16
    passages, words = record[PASSAGES], record[WORDS]
    changed = round(words["cost"] / words["epsilon"])
    told = [" ".join(record[name].split()[:5]) for name in ("subject", "drawn")]
    draws = {name: f"with the key, by a public law: {record[name]['stay']:.0%} stay" for name in JOBS}
    lanes = {
        "passages: one draw a text": {
            "read": f"its subject, one of {passages['symbols']}: {told[0]} …",
            "draw": f"{draws[PASSAGES]}, others become any subject. Drawn: {told[1]} …",
            "write": f"a public sentence: “{passages['text']}”",
            "price": f"{passages['cost']:g}, whatever the length",
        },
        "words: one draw a word": {
            "read": f"of each of {changed} words its cluster of related words, one of {words['symbols']}",
            "draw": f"{draws[WORDS]} in their cluster, others become any",
            "write": f"“{words['text']}”",
            "price": f"{words['cost']:.0f} = {changed} words x {words['epsilon']:g}",
        },
    }
    parts = [f'<rect class="box" x="12" y="12" width="{width - 24}" height="46" rx="6"/>']
    parts += [*write(24, 31, ["a record in the lake"], "quiet"), *write(24, 49, [f"“{record['text']}”"])]
    bottoms = []
    for number, (title, steps) in enumerate(lanes.items()):
        left = 12 + number * (column + gap - 8)
        y = 96.0
        parts += [f'<path class="arrow" d="M{left + 20} 60v18m-4 -5l4 5l4 -5"/>', *write(left, y, [title], "strong")]
        for name, told_of in steps.items():
            lines = textwrap.wrap(told_of, 46)
            parts += write(left, y + 24, [name], "quiet")
            parts += write(left + 44, y + 24, lines, "price" if name == "price" else "")
            y += 8 + 17 * len(lines)
        bottoms.append(y)
    y = max(bottoms) + 36
    last = (
        "one row out: text, drawn symbols, privacy (price, what is shown)  →  gate  →  signed public table",
        "readers of the table: counts with error bars, since the law is public; no text, no key",
    )
    parts += [
        *(
            f'<path class="arrow" d="M{32 + number * (column + gap - 8)} {y - 22:g}v16m-4 -5l4 5l4 -5"/>'
            for number in (0, 1)
        ),
        f'<rect class="box" x="12" y="{y:g}" width="{width - 24}" height="48" rx="6"/>',
        *write(24, y + 20, last[:1]),
        *write(24, y + 38, last[1:], "quiet"),
    ]
    label = (
        f"One record in both ways. It reads: {record['text']} As a passage it becomes: {passages['text']} for "
        f"{passages['cost']:g}. By words it becomes: {words['text']} for {words['cost']:.0f}."
    )
    return frame(width, y + 60, label, parts)


def draw_subjects(found: Figures) -> str:
    """Draw shares of subjects over periods: estimates with their bands, and the truth."""
    width, high, across, down = 760, 90, 240, 138
    labels = {row["symbol"]: " ".join(row["keywords"].split()[:3]) for row in found["rows"]}
    panels = draw_lines(found["rows"], found["shown_steps"], PERIOD, labels)
    parts = []
    for number, panel in enumerate(panels):
        x, y = 16 + number % 3 * (across + 8), 34 + number // 3 * down
        paths = (("band", "band"), ("within", "noise"), ("dots", "dots"), ("beyond", "real"), ("truth", "true"))
        lines = [f'<path class="{kind}" d="{panel[name]}"/>' for kind, name in paths if panel[name]]
        box = f'x="{x}" y="{y + 8}" width="{across - 16}" height="{high}" viewBox="0 0 100 {high}"'
        rules = "".join(f"M{x} {y + 8 + panel[end]}h{across - 16}" for end in ("top", "bottom"))
        parts += [
            *write(x, y, [panel["label"]], "strong"),
            f'<path class="rule" d="{rules}"/>',
            *write(x, y + 4 + panel["top"], [panel["top_text"]], "quiet"),
            f'<svg {box} preserveAspectRatio="none">{"".join(lines)}</svg>',
        ]
    below = 34 + -(-len(panels) // 3) * down - 4
    keys = (
        ("band", "M16 {0}h24v6h-24z", "estimated share and its 95% interval", 48),
        ("beyond", "M300 {1}h24", "a step beyond noise", 332),
        ("truth", "M480 {1}h24", "true share, which readers do not have", 512),
    )
    for kind, shape, text, x in keys:
        parts += [f'<path class="{kind}" d="{shape.format(below - 7, below - 4)}"/>', *write(x, below, [text], "quiet")]
    periods, draws = len({row[PERIOD] for row in found["rows"]}), found["rows"][0]["draws"]
    loss = found["record"][PASSAGES]["epsilon"]
    corpus = f"{periods} periods of {draws} Reuters articles, 1996 and 1997"
    told = f"Share of subjects in {corpus}, each drawn once at a loss of {loss:.0f}"
    chosen = "First come those with the most steps beyond noise, then the most frequent; each on its own scale from 0."
    parts += write(16, below + 22, [f"{told}.", chosen], "quiet")
    return frame(width, below + 50, f"{told}: estimates with intervals, and the truth.", parts)


def draw(found: Figures) -> dict[str, str]:
    """Draw the pictures, by the names of their files."""
    return {"record.svg": draw_record(found["record"]), "subjects.svg": draw_subjects(found)}


def main() -> None:
    """Measure, write, draw, show."""
    parser = make_parser(__doc__)
    parser.add_argument("--draw", action="store_true", help="draw the pictures from the result file")
    given = parser.parse_args()
    if given.draw:
        found = json.loads((RESULTS / "front_page.json").read_text("utf-8"))
    else:
        found = measure(smallest=given.smallest)
        save_results("front_page", {"machine": machine(), **found}, smallest=given.smallest)
    pictures = draw(found)
    if not given.smallest:
        for name, picture in pictures.items():
            (PICTURES / name).write_text(picture, "utf-8")
    Console().print(
        f"{found['held']:,} of {found['intervals']:,} intervals hold the true count; "
        f"{found['real_steps']} of {found['steps']:,} steps are more than noise"
    )


if __name__ == "__main__":
    main()
