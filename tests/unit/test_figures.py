"""README.md and docs/guarantees.md state the figures of research/results. Other pages name the file and a date."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from support.benchmarks import BENCHMARKS
from support.pages import Elements
from support.repository import ROOT
from wordveil.measures.estimates import Estimator
from wordveil.mechanisms.laws import SymbolLaw


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
    yield from list_counts()
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


def list_counts() -> Iterator[str]:
    """Figures of the pictures, and of estimated counts."""
    front = read("front_page")
    record = front["record"]
    yield f"| before | {record['text']} | the same |"
    yield f"| after | {record['passages']['text']} | {record['words']['text']} |"
    yield f"{record['passages']['cost']:.0f} a record of any length"
    yield f"{record['words']['cost']:.0f} here"
    yield f"Of {front['intervals']:,} intervals of 95%, {front['held'] / front['intervals']:.0%} hold the true count"
    (posts,) = (
        row
        for row in read("estimates")["found"]
        if (row["corpus"], row["unit"], row["epsilon"]) == ("20 newsgroups", "subjects", 6)
    )
    ratio = posts["naive_over_estimated"]
    yield f"Over {posts['draws']:,} posts drawn counts err {ratio:.1f} times as much as estimates"
    least = Estimator(SymbolLaw.of_response(6, record["passages"]["symbols"])).find_least_count(300)
    yield f"of 300 articles a subject needs {least} to stand out"


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


def test_readme_has_at_most_900_words():
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900


def test_pictures_of_readme_are_drawn_from_their_results(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    pictures = importlib.import_module("front_page").draw(read("front_page"))
    for name, picture in pictures.items():
        assert picture == (ROOT / "docs" / "pictures" / name).read_text("utf-8"), "python front_page.py --draw"
        assert f"docs/pictures/{name}" in flatten("README.md")
        assert "prefers-color-scheme: dark" in picture
        elements = Elements(picture)
        assert (elements.open, elements.wrong) == ([], [])
        assert not re.search(r"href|url\(|@import|<(script|image|use)", picture), "loads nothing"
