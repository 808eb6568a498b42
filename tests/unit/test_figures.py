"""README.md and docs/guarantees.md state the figures of research/results. Other pages name the file and a date."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from support.repository import ROOT


@cache
def read(name: str) -> Any:
    return json.loads((ROOT / "research" / "results" / f"{name}.json").read_text("utf-8"))


def list_readme_figures() -> Iterator[str]:
    exam, speeds = read("exam")["systems"], read("tables")["tokens_per_second"].values()
    whole = [exam[name]["classes"]["all labelled"]["whole"] for name in exam]
    yield (
        f"Of {whole[0]['spans']:,} labelled names, addresses and numbers in presidio-research's made sentences "
        f"{whole[0]['share']:.1%} come out whole. Presidio's patterns leave {whole[1]['share']:.0%}, with spaCy's "
        f"small model {whole[2]['share']:.0%} (`research/results/exam.json`)."
    )
    yield f"{min(speeds) / 1e6:.1f} to {max(speeds) / 1e6:.1f} million tokens a second on two cores"
    last = read("linkage")["rows"][-1]
    yield (
        f"{last['linked']['20']:.0%} of records of 20 words among {last['candidates']:,} candidates, "
        f"{last['linked']['5']:.0%} of 5 words."
    )
    yield f"gets {last['recovered']:.0%} of the words right"
    yield from list_ways()
    (john,) = (row for row in read("canaries")["rows"] if row["text"] == "John Smith")
    assert john["words"] == john["types"]
    yield f'either way "John Smith" comes out whole in {john["words"]:.0%} of its places'


def list_ways() -> Iterator[str]:
    """Figures of whole texts at a loss of 6 with 64 subjects, and of words at 8 each."""
    rows = read("passages")["rows"]
    field, shipped, words = (
        rows["field, 64 subjects, loss 6"],
        rows["wordnet, 64 subjects, loss 6"],
        rows["tree, 8 a word"],
    )
    bound, linked = (
        rows["loss 6"]["privacy any texts bound linked"],
        field["privacy 20 newsgroups best-attacker linked"],
    )
    yield f"{linked[0]:.2%} of records among 10,000 candidates; any one with {bound[0]:.1%} at most"

    def show(row: Any, task: str, method: str = "most-frequent") -> str:
        return f"{row[f'utility {task} {method} accuracy'][0]:.2f}".lstrip("0")

    topics, mood = "20 newsgroups", "SST-2"
    yield f"{show(field, topics)} of {topics}' topics with passages of the field, {show(shipped, topics)} with the"
    yield (
        f"{show(words, topics, 'linear-words')} of these topics; {show(words, mood, 'linear-words')} of {mood}'s "
        f"sentiment (passages: {show(field, mood)})"
    )


def list_recoveries() -> Iterator[str]:
    rows = [row for row in read("meaning_demo")["rows"] if row["block"] == "loss" and row["at"] == 8]
    recovered = {row["mechanism"]: row["recovered"] for row in rows}
    tem, tree, lists = (recovered[name] for name in ("TEM, tight", "tree 20, representative", "staircase, floors"))
    yield (
        f"recovers {tem['public']:.1%} of running words under TEM, {tree['public']:.1%} under `tree` with clusters of "
        f"20, and {lists['public']:.1%} under `staircase`"
    )
    yield f"{tem['uniform']:.1%}, {tree['uniform']:.1%} and {lists['uniform']:.1%} of all words counted alike"


PAGES = {"README.md": list_readme_figures, "docs/guarantees.md": list_recoveries}


def flatten(name: str) -> str:
    """Join a page's lines."""
    return " ".join((ROOT / name).read_text("utf-8").split())


@pytest.mark.parametrize("name", PAGES)
def test_figures_of_a_page_are_those_of_the_result_files(name):
    missing = [figures for figures in PAGES[name]() if figures not in flatten(name)]
    assert not missing, f"{name} lacks, from research/results:\n" + "\n".join(missing)
