"""What stands on the product's pages of research/results, and how figures are read and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from statistics import median
from typing import Any

from support.repository import ROOT

MIB = 2**20
Texts = Iterator[str]
PAGES: dict[str, Callable[[], Texts]] = {}


@cache
def read(name: str) -> Any:
    return json.loads((ROOT / "research" / "results" / f"{name}.json").read_text("utf-8"))


def page(name: str) -> Callable[[Callable[[], Texts]], Callable[[], Texts]]:
    def register(texts: Callable[[], Texts]) -> Callable[[], Texts]:
        PAGES[name] = texts
        return texts

    return register


def flatten(text: str) -> str:
    """Without what a line's width decides."""
    return " ".join(text.split())


def cells(*values: str) -> str:
    """Neighbouring cells of a table."""
    return flatten(f"| {' | '.join(values)} |")


def point(share: float) -> str:
    """As .563."""
    return f"{share:.3f}".removeprefix("0")


def find_row(name: str, mechanism: str) -> Mapping[str, Any]:
    """A mechanism at a largest loss of 8."""
    rows = read(f"meaning_{name}")["rows"]
    return next(row for row in rows if (row["mechanism"], row["block"], row["at"]) == (mechanism, "loss", 8))


TASKS = ("topic", "sst2", "trec6", "author")


def show_means(found: Mapping[str, Any], tasks: tuple[str, ...], *, is_half_shown: bool = False) -> list[str]:
    """The mean of each task, with half of its interval where that is wanted; empty where it was not measured."""
    shown = []
    for figure in map(found["figures"].get, tasks):
        half = f" ±{point(figure['half'])}" if figure and is_half_shown else ""
        shown.append(point(figure["mean"]) + half if figure else "")
    return shown


@page("README.md")
def show_first_page() -> Texts:
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
    (john,) = (row for row in read("canaries")["rows"] if row["text"] == "John Smith")
    assert john["words"] == john["types"]
    yield f'either way "John Smith" comes out whole in {john["words"]:.0%} of its places'


@page("docs/choosing.md")
def show_linkage() -> Texts:
    for row in read("linkage")["rows"]:
        shares = (f"{share:.0%}" for share in row["linked"].values())
        yield cells(f"{row['epsilon']:g}", *shares, f"{row['recovered']:.1%}")


@page("docs/benchmarks.md")
def show_summary() -> Texts:
    tem = read("peers")["results"][-1]["ratios"]["tem"]
    yield f"over mldp-text's TEM, one core | {tem:,.0f} times |"
    tables = read("tables")
    speeds, over = tables["tokens_per_second"].values(), tables["policies"]["over_strict"]
    yield f"| {min(speeds) / 1e6:.1f} to {max(speeds) / 1e6:.1f} million tokens a second |"
    yield f"with `repeat: same` | {over['readable']:.1f} times; {over['readable_same']:.1f} times |"
    yield f"only splits and joins, over `exponential` | {1 / tables['ratio']:.1f} times |"
    cores = read("scaling")["by_cores"]
    yield f"two cores over one | {cores['both_over_pinned']:.2f} times |"
    yield f"local mode: time | {read('cluster')['cluster_over_local_seconds']:.2f} times |"
    billion = read("tables_billion")
    peak = {name: f"{size / MIB:,.0f}" for name, size in billion["peak_resident_bytes"].items()}
    yield f"`exponential`, two cores | {billion['seconds']:.0f} s |"
    yield f"with the table's 166 MB | {peak['largest worker']} MiB |"
    yield f"driver's Python and JVM, a billion tokens | {peak['driver python']} and {peak['jvm']} MiB |"
    shared = max(result["bundle_pss_4_over_1"] for result in read("memory")["results"])
    yield f"over those of one | {shared:.2f} times |"
    large = read("large_input_laplace")
    peak = {name: f"{size / MIB:,.0f}" for name, size in large["peak_resident_bytes"].items()}
    yield f"in {large['input_files']:,} files | {peak['largest worker']} MiB |"
    yield f"| driver's Python and JVM, the same | {peak['driver python']} and {peak['jvm']} MiB |"
    releases = read("releases")
    yield f"400,000 records: time | {1 + releases['overhead']['overhead']:.2f} times |"
    yield f"without a change | {releases['nights']['unchanged']:.1f} s |"
    yield f"contents compared | {releases['nights']['edited_scan']:.1f} s |"
    ratios = list_night_ratios()
    yield f"5,000 records: time | {min(ratios):.2f} to {max(ratios):.2f} times |"
    verified = read("checks")["verify"]["400,000 rows, 160 files, 220 MB"]["checked"]
    yield f"of 400,000 rows | {median(verified):.1f} s |"


def list_night_ratios() -> list[float]:
    seconds = read("night")["seconds"]
    return [one / three for one, three in zip(seconds["release night"], seconds["the three commands"], strict=True)]


@page("docs/mechanisms.md")
def show_mechanisms() -> Texts:
    """Of the mechanisms that are shown."""
    for name in ("random", "exponential, hyperbolic, 2", "hyperbolic-fdd, 0.5", "tree, 300 clusters, 8", *RAISED):
        row = find_generalised(name)
        shares = (f"{row[share]:.1%}" for share in ("stays", "hypernyms", "below_hypernym"))
        yield cells(f"{row['loss']:.3g}", *shares).replace("87.0%", "**87.0%**")
    for mechanism in ("250 clusters", "1,000 clusters", "500, rarity 0", "500, no classes"):
        found = find_row("glove", f"{mechanism}, representative")
        means = show_means(found, ("topic", "sst2", "trec6", "intent", "author"))
        yield cells(f"{found['recovered']['public']:.1%}", *means)
    for mechanism in SHOWN:
        found = find_row("demo", mechanism)
        yield cells(mechanism, f"{found['recovered']['public']:.1%}", *show_means(found, (*TASKS, "kept")))


RAISED = ("tree, hypernyms of 300 clusters, 8", "staircase with pairs, specific first, 8")
SHOWN = ("exponential", "TEM, tight", "randomised response", "staircase, floors", "tree 80, representative")


def find_generalised(name: str) -> Mapping[str, Any]:
    return next(row for row in read("generalisation")["rows"] if row["row"] == name)


@page("docs/search.md")
def show_search_in_short() -> Texts:
    for result in read("annoy_recall")["results"]:
        for row in result["annoy"]:
            if row["aim"] in ("50%", "90%") and result["epsilon"] == {100: 20, 300: 60}[result["dimension"]]:
                over = f"{row['tokens_per_second'] / result['exact']['tokens_per_second']:.2f}"
                kept = f"{row['kept']:.1%} of {result['exact']['kept']:.1%}"
                yield cells(f"{row['recall']:.1%}", f"{row['n_trees']}, {row['search_k']:,}", over, kept)


@page("docs/training.md")
def show_training_in_short() -> Texts:
    rows = [row for row in read("poincare")["mammals"] if row["epochs"] == 50]
    yield cells(
        *(
            ", ".join(f"{row['mean_average_precision']:.3f}" for row in rows if row["who"] == who)
            for who in ("gensim", "compiled")
        )
    )


@page("docs/text-policies.md")
def show_languages_in_short() -> Texts:
    found = read("languages")["identifiers"]["py3langid"]
    yield (
        f"it found {found['others']['all']['20']:.0%}, of their first word {found['others']['1']['20']:.0%}, and of "
        f"English texts of 4 to 7 words it called {found['english']['4 to 7']['called other']['20']:.1%} another "
        "language"
    )
