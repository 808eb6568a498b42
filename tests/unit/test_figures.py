"""Figures on the pages are those of research/results.

A function for each page yields what must stand there, with the figures taken from their files. A table of figures that
no such text touches says that it has no result file. After a new measurement the failures list the new texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from statistics import mean, median
from typing import Any

import pytest

from support.figures import MIB, PAGES, TASKS, Texts, cells, flatten, page, point, read, show_means
from support.repository import ROOT


@page("research/docs/mechanisms.md")
def show_all_mechanisms() -> Texts:
    for result in read("tradeoff")["results"].values():
        (row,) = (row for row in result["rows"] if row["epsilon"] == 3)
        found = (row[name] for name in ("laplace", "exponential", "gamma", "neighbours", "tight"))
        yield cells("3", *(f"{one['stays']:.1%} ({one['moved']:.2f})" for one in found))
    for row in read("meaning_glove")["rows"]:
        if row["block"] == "loss" and "least 10" not in row["mechanism"] and row["at"] == 8:
            means = show_means(row, ("topic", "sst2", "trec6", "intent", "author"), is_half_shown=True)
            yield cells(f"{row['at']:g}", f"{row['recovered']['public']:.1%}", *means)
    for row in read("meaning_demo")["rows"]:
        yield from show_words(row)
    for row in (*read("meaning_demo")["rows"], *read("meaning_books")["rows"]):
        if row["block"] == "loss" and row["mechanism"] != "laplace" and row["at"] in (6, 10, 12):
            means = show_means(row, ("topic", "trec6", "author"))
            yield f"{row['recovered']['public']:.1%}: {' / '.join(means)} |"


def show_words(row: Mapping[str, Any]) -> Texts:
    """A row of the large tables of the demo embedding."""
    shown = show_means(row, TASKS, is_half_shown=True) + show_means(row, ("kept", "cosine"))
    perplexity, is_drawn = f"{row['figures']['perplexity']['mean']:,.0f}", row["mechanism"] == "laplace"
    if row["block"] == "loss" and row["at"] in (6.85, 8):
        recovered = "" if is_drawn else f"{row['recovered']['public']:.1%}"
        yield cells(f"{row['at']:g}", row["mechanism"], recovered, *shown, perplexity)
    elif row["block"] == "recovery" and row["at"] != ["public", 0.18] and not is_drawn:
        yield cells(row["mechanism"], f"{row['loss']:.2f}", *shown, perplexity)


@page("research/docs/benchmarks.md")
def show_benchmarks() -> Texts:
    yield from show_speeds()
    yield from show_memory()
    yield from show_cores()
    yield from show_releases()
    yield from show_night_rows()
    yield from show_object_stores()
    yield from show_connect()
    yield from show_starts()
    yield from show_tokens()


def show_speeds() -> Texts:
    for result in read("peers")["results"]:
        for side, runs in result["runs"].items():
            speed, ratio = result["tokens_per_second"][side], result["ratios"].get(side)
            shown = f"{speed:,.0f}" if speed >= 50 else f"{speed:.1f}"
            over = "" if ratio is None else f"{ratio:,.0f}"
            yield f"| {shown} | {over if side in ('wordveil', 'default') else f'**{over}**'}".rstrip() + " |"
            yield cells(f"{mean(run['kept'] for run in runs):.1%}")
    tables = read("tables")
    for name, spent in tables["processor_nanoseconds_per_token"].items():
        seconds = [run[name] for run in tables["runs"]]
        speed = tables["tokens"] / median(seconds) / 1e6
        yield f"| {', '.join(f'{one:.1f}' for one in seconds)} | **{speed:.2f}** | {spent:.0f} |"
    for step, label in STEPS.items():
        steps = [tables["microseconds_per_token"][name][step] * 1000 for name in ("exponential", "staircase", "tree")]
        bold = "**" if step == "all" else ""
        yield cells(f"{bold}{label}{bold}", *(f"{bold}{one:.0f}{bold}" for one in steps))
    for name, label in {"strict": "with `length: as_is`", "readable": "", "readable_same": ""}.items():
        over = tables["policies"]["over_strict"][name]
        shown = "1" if name == "strict" else f"**{over:.2f}**"
        yield f"{label} | {tables['policies']['nanoseconds_a_word'][name]:.0f} | {shown} |"
    billion = read("tables_billion")
    yield f"{billion['seconds']:.0f} ({billion['tokens_per_second'] / 1e6:.2f} million tokens a second)"
    yield f"{billion['records']:,} records, {billion['tokens']:,} tokens"


STEPS = {
    "texts to ids": "texts to ids: cut, lower case, look up",
    "ids to texts": "ids to texts",
    "what contexts and tags cover": "what contexts and tags cover",
    "content tags (BLAKE2b)": "content tags (BLAKE2b)",
    "drawing, with random words": "drawing, with its random words (AES)",
    "contexts (BLAKE2b)": "contexts (BLAKE2b)",
    "accounting": "accounting",
    "the rest": "the rest",
    "all": "all",
}


def show_memory() -> Texts:
    for result in read("memory")["results"]:
        for row in result["rows"]:
            names = ("total_pss", "private_steady", "driver_jvm", "driver_python")
            yield cells(f"{row['bundle_pss'] / MIB:.1f}", *(f"{row[name] / MIB:,.0f}" for name in names))
    first, second = read("large_input_laplace"), read("large_input_exponential")
    yield f"| {first['tokens']:,}; {first['records']:,}; {first['input_files']:,} ("
    yield cells("seconds", *(f"{one['seconds']:.0f}" for one in (first, second)))
    sizes = [
        {name: f"{size / MIB:,.0f} MiB" for name, size in one["peak_resident_bytes"].items()} for one in (first, second)
    ]
    for names in (("driver python", "jvm"), ("largest worker", "workers")):
        yield cells(*(", ".join(one[name] for name in names) for one in sizes))
    yield cells(
        *(f"{one['task_seconds']['median']:.1f}, {one['task_seconds']['largest']:.1f}" for one in (first, second))
    )


def show_cores() -> Texts:
    speeds = read("scaling")["by_cores"]
    for way, ratio in (
        ("pinned", f"**{speeds['both_over_pinned']:.2f}**"),
        ("free", f"{speeds['both_over_free']:.2f}"),
    ):
        yield cells(f"{median(speeds['tokens_per_second'][way]):,.0f}", ratio)
    for row in read("scaling")["by_size"]:
        seconds = (f"{row['seconds']:.1f}", f"{row['seconds_per_million_tokens']:.1f}")
        yield cells(f"{row['records']:,}", f"{row['tokens']:,}", *seconds)
    for runs in read("cluster")["runs"].values():
        seconds, whole = (median(run[name] for run in runs) for name in ("seconds", "command_seconds"))
        yield cells(f"{seconds:.1f}", f"{runs[0]['tokens'] / seconds:,.0f}", f"{whole:.0f} s")


def show_releases() -> Texts:
    releases = read("releases")
    yield from show_overhead(releases["overhead"])
    for label, seconds in {
        "first run over 1,000,000 records": releases["nights"]["first_feed"],
        "a night without a change": releases["nights"]["unchanged"],
        "1% edited, contents compared": releases["nights"]["edited_scan"],
        "1% edited, by the change data feed": releases["nights"]["edited_feed"],
        "ledger by author, 10,000,000 entries": releases["ledger"]["by_author"],
    }.items():
        yield cells(label, f"{seconds:.1f} s")
    yield from show_publications(releases["publication"])
    yield from show_merges(releases["merge"]["sizes"])
    night = read("night")["seconds"]
    for name in ("release night", "the three commands"):
        yield cells(
            *(f"{one:.0f}" for one in (median(night[name]),)), f"{min(night[name]):.0f} to {max(night[name]):.0f}"
        )


def show_publications(found: Mapping[str, Any]) -> Texts:
    plain = found["plain"]
    for night in (*(found[name] for name in ("of_each_day", "a_day", "to_each_day")), plain["edited"], plain["added"]):
        yield cells(f"{night['publish']:.1f} s")


def show_merges(sizes: Iterable[Mapping[str, Any]]) -> Texts:
    for found in sizes:
        shown = (f"{found[name]['processor_seconds']:.1f}" for name in ("copy", "first", "merge", "night"))
        yield cells(f"{found['records']:,}", *shown)


def show_overhead(found: Mapping[str, Any]) -> Texts:
    yield cells(f"{median(found['job']):.1f} s")
    yield cells(f"{median(found['release']):.1f} s, {found['overhead']:+.0%}")


def show_night_rows() -> Texts:
    nights = read("night_rows")["nights"]["200000"].values()
    for label, tables in {
        "input, or its feed": ("input", "feed"),
        "draws": ("draws",),
        "ledger": ("ledger",),
        "public table": ("public",),
    }.items():
        counts = (sum(night[what].get(name, 0) for name in tables) for night in nights for what in ("read", "written"))
        yield cells(label, *(f"{count / 200_000:.2f}" if count else "0" for count in counts))


def show_object_stores() -> Texts:
    results = read("object_stores")
    small, large = results["releases"].values()
    for step in ("first run", "gate and publication", "a night with 1% edited"):
        on_s3, on_disk = large[f"S3: {step}"], large[f"disk: {step}"]["seconds"]
        yield cells(step, str(count_requests(small[f"S3: {step}"])), *list_requests(on_s3))
        yield cells(f"{on_s3['seconds'] / on_disk:.2f}")
    parts = results["parts"]
    for part, row in parts.items():
        yield cells(f"{part}, alone", str(count_requests(row)), *list_requests(row))
    yield f"probe of a bucket is {count_requests(parts['probe'])}, the lease {count_requests(parts['lease'])} and"


def show_connect() -> Texts:
    results = read("connect")
    rows = {f"{int(name):,}": row for name, row in results["records"].items()}
    for label, row in {"the first call of a session": results["first"], **rows}.items():
        shown = (*row.values(), row["connect"] / row["classic"])
        yield cells(label, *(f"{value:.2f}" for value in shown))


def list_requests(row: Mapping[str, Any]) -> list[str]:
    return [str(number) for kind, number in row.items() if kind != "seconds"]


def count_requests(row: Mapping[str, Any]) -> int:
    return sum(map(int, list_requests(row)))


@page("docs/operations.md")
def show_requests() -> Texts:
    small, large = (
        count_requests(of["S3: a night with 1% edited"]) for of in read("object_stores")["releases"].values()
    )
    yield f"A night made {large} requests with 200,000 records of which 1% were edited, {small} with 10,000"


@page("docs/scale.md")
def show_scale() -> Texts:
    nights = read("night_rows")["nights"]
    for label, name in {
        "input, by its feed": "feed",
        "draws": "draws",
        "ledger": "ledger",
        "public table": "public",
    }.items():
        small, large = (
            [
                night[of][what].get(name, 0) / int(records)
                for of in ("1% edited", "1% added")
                for what in ("read", "written")
            ]
            for records, night in nights.items()
        )
        assert small[:2] == large[:2]
        yield cells(label, *(f"{count:.2f}" if count else "0" for count in large))
    yield f"{nights['200000']['all edited']['read']['draws'] / 200_000:.2f} rows of draws are read"
    found = read("releases")["publication"]
    for night in (found["of_each_day"], found["a_day"], found["plain"]["edited"], found["plain"]["added"]):
        yield f"{night['publish']:.1f} s after"


def show_starts() -> Texts:
    for run in read("start_up")["runs"]:
        medians = (f"{median(seconds):.1f}" for seconds in run["seconds"].values())
        yield cells(f"{run['articles']:,}", f"{run['megabytes']:.1f} MB", *medians)
    starts = read("task_start")
    for name in ("python", "wordveil"):
        yield cells(f"{median(starts[name]) * 1000:.0f} ms")
    checks = read("checks")
    for timing in (*checks["input"].values(), *checks["verify"].values()):
        one, other = (median(timing[name]) for name in ("checked", "unchecked"))
        ratio = f"{one / other:.2f}" if one / other < 1.5 else f"{one / other:.1f}"
        yield cells(*(f"{t * 1000:,.0f} ms" if t >= 0.01 else f"{t * 1000:.1f} ms" for t in (one, other)), ratio)


def show_tokens() -> Texts:
    for speed in read("typed_tokens")["speed"].values():
        each = speed["nanoseconds_a_token"]
        found = f"{sum(speed['found'].values()):,}"
        yield cells(f"{speed['tokens']:,}", found, f"{each['find']:.1f}", f"{each['bare_pass']:.1f}")
    calls = read("typed_tokens")["microseconds"]
    yield cells("phonenumbers, one candidate", f"{calls['phonenumbers_candidate']:.0f} µs")
    yield cells("python-dateutil, one date", f"{calls['dateutil_candidate']:.0f} µs")
    yield cells("emoji, each token of plain text", f"{calls['emoji_plain_token']:.1f} µs")
    for row in read("calibration")["rows"]:
        seconds = [row["processor_seconds"], row["plain_processor_seconds"]]
        shown = [f"{one:,.0f}" if one > 100 else f"{one:.1f}" if one > 2 else f"{one:.2f}" for one in seconds]
        yield cells(f"{row['words']:,}", shown[0], f"{row['plain_words']:,}", shown[1])
    for row in read("auditor")["broken"]:
        if row["draws"] and row["seconds"] >= 0.095:
            yield cells(f"{row['draws']:,}", f"{row['seconds']:.1f}")


@page("research/docs/search.md")
def show_search() -> Texts:
    for result in read("annoy_recall")["results"]:
        for row in result["annoy"]:
            speed = row["tokens_per_second"]
            ratio = f"{speed / result['exact']['tokens_per_second']:.2f}"
            left = (f"{row['kept']:.1%}", f"{row['alike']:.2f}", f"{row['moved']:.2f}")
            yield cells(f"{row['search_k']:,}", f"{row['recall']:.1%}", f"{speed:,.0f}", ratio, *left)
    for trees, cost in read("annoy_recall")["results"][0]["trees"].items():
        yield cells(trees, f"{cost['megabytes']:.0f} MB", f"{cost['seconds']:.1f} s")


@page("docs/types.md")
def show_names() -> Texts:
    result = read("name_forms")
    versions = [result[name] for name in ("before", "written_any", "after")]
    for part in ("tuned", "held_out"):
        for side in ("whole", "found"):
            yield cells(*(f"{one[part][side]:.1%}" for one in versions))
    for name in ("news", "reviews"):
        for side in ("taken", "ordinary_taken"):
            yield cells(*(f"{one['texts'][name][side]:.2%}" for one in versions))


@page("research/docs/training.md")
def show_training() -> Texts:
    for row in (*read("poincare")["mammals"], read("poincare")["nouns_trained"]):
        rank, precision = f"{row['mean_rank']:.3g}", f"{row['mean_average_precision']:.3f}"
        rank = f"{row['mean_rank']:.2f}" if row["mean_rank"] < 10 else rank
        bold = "**" if row["epochs"] == 300 else ""
        yield cells(f"{bold}{rank}{bold}", f"{bold}{precision}{bold}", f"{row['pairs_a_second']:,}")
    steps, paper = read("generator_training"), read("generator_inference")
    yield f"a step of 128 sequences takes {steps['paper']['step_seconds']:.1f} s"
    yield f"{steps['paper']['share_of_bound']:.2f} of the bare products"
    yield f"a step of 64 takes {steps['demo']['step_seconds'] * 1000:.0f} ms"
    yield (
        f"reads and writes {paper['tokens_per_second']['whole_numbers']:,} tokens a second and core, "
        f"{paper['whole_numbers_over_bare']:.2f} of the bare products; XLA reaches {paper['xla_over_bare']:.2f}"
    )


@page("research/docs/languages.md")
def show_languages() -> Texts:
    found, cutters = read("languages")["identifiers"].values(), read("languages")["tokenisers"].values()
    for group in ("4 to 7", "8 to 14", "15 or more"):
        yield cells(*(f"{one['english'][group]['called other']['20']:.1%}" for one in found))
    for cut in ("all", "4", "2", "1"):
        yield cells(*(f"{one['others'][cut]['20']:.0%}" for one in found))
    yield cells(*(f"{one['texts_per_second']:,.0f}" for one in found))
    yield cells(*(f"{one['memory_mib']:,.0f}" for one in found))
    for one in cutters:
        yield cells(f"{one['words_per_second'] / 1000:,.0f},000", f"{one['memory_mib']:.0f}")


@page("research/docs/attacks.md")
def show_koppel() -> Texts:
    found = read("koppel")
    product = found["product_seconds"]
    yield (
        f"the products take {product:.1f} s of a core, {product + found['count_seconds']:.1f} s with the counting of "
        f"features; a loop over pairs takes {found['loop_seconds_scaled']:,.0f} s"
    )


Scores = Mapping[tuple[str, ...], Mapping[str, Any]]


def read_scores(name: str, figure: str = "accuracy") -> Scores:
    """Of an experiment, by subject, task, method and variant."""
    places = ("subject", "task", "method", "variant")
    return {tuple(one[part] for part in places): one for one in read(name)["scores"] if one["figure"] == figure}


def show_half(score: Mapping[str, Any], digits: int = 3) -> str:
    """A figure, and half of its interval."""
    value, half = (f"{one:.{digits}f}" for one in (score["value"], (score["high"] - score["low"]) / 2))
    return f"{value} ±{half}"


def show_both(scores: Scores, subject: str, task: str, method: str) -> str:
    """An attacker who learned from clean texts, and one who knows the mechanism."""
    both = [show_half(scores[subject, task, method, variant]) for variant in ("static", "adaptive")]
    return "; ".join(both[:1] if subject.startswith(("original", "no noise")) else both)


@page("research/docs/experiments.md")
def show_experiments() -> Texts:
    scores = read_scores("f19_table1")
    pairs = [(f"{count} authors", method) for count in (20, 50) for method in ("nearest-author", "koppel")]
    for subject in dict.fromkeys(subject for subject, *_ in scores):
        topics = [
            "; ".join(
                show_half(one) for (of, _, by, _), one in [*scores.items()][::-1] if (of, by) == (subject, method)
            )
            for method in ("fasttext", "fasttext-pretrained", "neighbours-mean")
        ]
        yield cells(subject, *(show_both(scores, subject, *pair) for pair in pairs), *topics)
    scores = read_scores("fdd_table3")
    pairs = [(task, method) for task in ("pan11", "novels") for method in ("koppel", "svm-characters")]
    for subject in dict.fromkeys(subject for subject, *_ in scores):
        yield cells(*(show_both(scores, subject, *pair).replace("0.", ".") for pair in pairs))
    scores = read_scores("fdd_table6")
    for subject in dict.fromkeys(subject for subject, *_ in scores):
        found = [show_half(score) for place, score in scores.items() if place[0] == subject]
        yield cells(*found).replace("0.", ".")
    scores = read_scores("fdd_table4", "mean N_w")
    names = ("laplace", "hyperbolic-fdd, 2-D", "hyperbolic-laplace, 2-D")
    for loss in (5, 10, 20, 40):
        means = [f"{scores[name, f'loss to the nearest {loss}', 'draws', '']['value']:.0f}" for name in names]
        yield cells(f"loss {loss}", means[0], "", *means[1:])
    for (subject, task, *place), score in read_scores("fdd_table4", "commonest outputs").items():
        epsilon, sigma, steps = (part.split()[1] for part in task.split(", "))
        if subject == "as printed, 100-D" and (sigma, steps) in (("1", "100"), ("0.01", "100"), ("0.001", "1,000")):
            printed, moved = (f"{scores[by, task, *place]['value']:,.0f}" for by in (subject, "Moebius, 100-D"))
            yield cells(epsilon, sigma, steps, printed, f"{score['value']:.0%}", moved)
    scores = read_scores("eraee_table1")
    for subject in ("AE-DP, 20 a token", "ER-AE, 40 a token"):
        both = (show_half(scores[subject, "c50", "svm-characters", variant], 2) for variant in ("static", "adaptive"))
        yield cells("; ".join(both).replace("0.", "."))
    scores = read_scores("eraee_tables", "similar")
    for generator in ("AE-DP", "ER-AE"):
        for choice in ("exponential", "two-set", "softmax-rr"):
            places = ((f"{generator}, {loss} a token", "similar words", choice, "") for loss in ("11.4", 15, 20, 40))
            yield cells(*(point(scores[place]["value"]) for place in places))


@page("research/docs/field.md")
def show_field() -> Texts:
    """The tasks and the strongest attackers of each row."""
    rows = read("field")["rows"]
    for name, row in rows.items():
        found = [row.get(f"utility {task} linear-words accuracy") for task in ("sst2", "trec6", "news20", "imdb")]
        if all(found) and name.partition(":")[0] in ("loss 8", name):
            yield cells(*(f"{value:.3f} ±{(high - low) / 2:.3f}" for value, low, high in found))
    for label in ("TEM, tight", "randomised response", "staircase, floors", "tree 20, representative"):
        yield cells(label, *(show_mean(rows[f"loss {loss}: {label}"]) for loss in (6, 8, 10, 12)))
        of = ("5% uniform", "10% public", "25% public")
        yield cells(label, *(show_mean(rows[f"recovery {share}: {label}"]) for share in of))
    for found in read("exam")["systems"]["wordveil"]["classes"].values():
        shown = (found["whole"], found["part"])
        yield cells(*(f"{one['share']:.2%} ({one['low']:.1%}-{one['high']:.1%})".replace("%", "") for one in shown))


def show_mean(row: Mapping[str, list[float]]) -> str:
    """The mean accuracy of the tasks, and of the strongest attackers who know the mechanism."""
    tasks = [row[f"utility {task} linear-words accuracy"][0] for task in ("sst2", "trec6", "news20", "imdb")]
    attacks = [
        max(figures[0] for name, figures in row.items() if name.startswith(f"attack {corpus} ") and "adaptive" in name)
        for corpus in ("c50", "enron", "pan11")
    ]
    return f"{point(mean(tasks))} / {point(mean(attacks))}"


@pytest.mark.parametrize("name", PAGES)
def test_figures_are_those_of_the_files(name):
    text = flatten((ROOT / name).read_text("utf-8"))
    missing = [figures for figures in PAGES[name]() if figures not in text]
    assert not missing, f"{name} lacks, from research/results:\n" + "\n".join(missing)


def test_a_changed_figure_is_noticed():
    """Every text has a figure, and with another last digit it is not on the page, where it is long enough to tell."""
    for name, texts in PAGES.items():
        text, found = flatten((ROOT / name).read_text("utf-8")), list(texts())
        assert found, name
        for figures in found:
            changed = re.sub(r"\d(?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), figures)
            assert changed != figures, figures
            if len(re.findall(r"\d", figures)) > 6:
                assert changed not in text, figures


TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("research/") or "benchmarks" in name])
def test_every_table_of_figures_is_compared_or_says_that_no_file_has_it(name):
    """Under its heading or in the page's introduction. Columns of figures are aligned to the right."""
    introduction, *sections = re.split(r"^##+ ", (ROOT / name).read_text("utf-8"), flags=re.MULTILINE)
    found = list(PAGES[name]())
    alone = [
        table
        for section in sections
        for table in TABLE.findall(section)
        if "---:" in table
        and not re.search(r"[Nn]o\sresult\sfile|A\stest\sholds", introduction + section)
        and not any(figures in flatten(table) for figures in found)
    ]
    assert not alone, "compare these, or say under their heading that no result file has them:\n" + "\n".join(alone)
