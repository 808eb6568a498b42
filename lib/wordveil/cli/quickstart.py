"""The command ``wordveil quickstart``: 300 real news articles in two ways, and counts by subject as a page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any

from wordveil.cli.files import save_page
from wordveil.cli.options import prepare_session, read_config
from wordveil.cli.output import print_figures, print_grid, print_line, print_note, show_progress
from wordveil.cli.scaffold import Call, Result, command
from wordveil.cli.tables import number
from wordveil.crypto.keys import create_key
from wordveil.errors import OutputExistsError, usage_error
from wordveil.report.values import show_interval, show_recovered, show_share

if TYPE_CHECKING:
    from wordveil.artifacts.bundle import Bundle
    from wordveil.assembly.run_report import RunReport
    from wordveil.config.load import Config
    from wordveil.mechanisms.laws import DrawnSymbols

HOME = Path("quickstart")
KEY, CORPUS, OUTPUT, STRICT, PAGE = "wordveil.key", "corpus", "sanitised", "strict", "estimates.html"
PASSAGES, WORDS = "passages", "words"
JOB = "job.yaml"
JOBS = {PASSAGES: "passages.yaml", WORDS: JOB}
"""Configurations of the two ways."""
TEMPLATES = {JOBS[PASSAGES]: "quickstart-passages.yaml", JOB: "quickstart.yaml"}
MARK = ".made-by-wordveil-quickstart"
"""An empty file that marks the directory as this command's."""
BATCHES = 3
SHOWN = ("009", "063", "172")
FEW = 5
"""Number of subjects in the terminal; the page has more."""


@command()
def quickstart(_: Call) -> Result:
    """Sanitise 300 news articles in two ways with local Spark, and count them by subject with error bars.

    All files are written to ./quickstart. Open estimates.html there in a browser.

    Example: `wordveil quickstart`
    """
    from wordveil.spark.platform.jvm import check_java

    check_java()
    with show_progress() as (progress, tasks):
        progress("writing the articles, a key and the jobs")
        prepare_home()
        ways = {name: run_way(job, progress, tasks) for name, job in JOBS.items()}
        progress("forecasting links")
        linked = {name: way.find_linked() for name, way in ways.items()}
        progress("estimating counts by subject")
        before = read_rows(HOME / CORPUS)
        counts = count_subjects([article["body"] for article in before.values()], ways[PASSAGES])
    save_page(HOME / PAGE, draw_page(counts, ways[PASSAGES]))
    document = {name: {**way.report.to_dict(), "linked": linked[name]} for name, way in ways.items()}
    return Result({**document, "counts": counts}, partial(explain, before, ways, linked, counts))


@dataclass(frozen=True)
class Way:
    """A way to sanitise the articles, and what came out, by article."""

    config: Config
    report: RunReport
    bundle: Bundle
    rows: Mapping[str, Mapping[str, Any]]

    @property
    def draws(self) -> int:
        """Number of draws of an article of median length."""
        return median_low(int(row["privacy"]["tokens"]) for row in self.rows.values())

    @cached_property
    def symbols(self) -> DrawnSymbols:
        """Return the symbols that are drawn, with their law."""
        symbols = self.bundle.mechanism.symbols
        assert symbols is not None
        return symbols

    def find_linked(self) -> float:
        """Forecast the share of such articles that are linked to their originals among 10,000 candidates."""
        from wordveil.spark.plan.plan import find_trials_once

        trials = find_trials_once(self.config.policy, lambda: self.bundle)()
        assert trials is not None
        return trials.find_linked(self.draws)


def run_way(job: str, progress: Callable[[str], None], tasks: Callable[[int, int], None]) -> Way:
    """Run one of the jobs. The second finds the first one's session."""
    from wordveil.artifacts.bundle import open_bundle
    from wordveil.spark.sanitise.job import run_sanitise

    config = read_config(HOME / job, ())
    report = run_sanitise(config, prepare_session(config), progress=progress, tasks=tasks)
    bundle = open_bundle(Path(config.bundle_store) / report.mechanism_fingerprint)
    return Way(config, report, bundle, read_rows(Path(config.output.path)))


def prepare_home() -> None:
    """Write the articles, the key and the jobs. Files of an earlier quickstart are replaced, except its bundles.

    Raises :class:`OutputExistsError` for a directory that this command did not make, and :class:`ConfigError` if it
    cannot write.
    """
    if os.path.lexists(HOME) and not (HOME / MARK).is_file():
        raise OutputExistsError(
            f"{HOME.absolute()} exists already, and `wordveil quickstart` did not make it. Nothing was changed. Move "
            "it away, or run the command in another directory."
        )
    try:
        HOME.mkdir(exist_ok=True)
        (HOME / MARK).touch()
        for name in (CORPUS, PASSAGES, OUTPUT, STRICT):
            if (HOME / name).exists():
                shutil.rmtree(HOME / name)
        for name in (KEY, PAGE):
            (HOME / name).unlink(missing_ok=True)
        write_corpus(HOME / CORPUS)
        for name, template in TEMPLATES.items():
            write_job(HOME / name, template)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}. Run the command in a directory that you may write to."
        raise usage_error("quickstart", str(HOME.absolute()), problem) from None
    create_key(HOME / KEY)


def write_corpus(path: Path) -> None:
    """Write the news articles of gensim's wheel as Parquet, partitioned by batch."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    # Named without the package itself, which takes a second to load.
    source = distribution("gensim").locate_file("gensim/test/test_data/lee_background.cor")
    articles = Path(str(source)).read_text("utf-8").splitlines()
    columns = {
        "article": [f"{number:03d}" for number in range(len(articles))],
        "body": [article.strip() for article in articles],
        "batch": [number * BATCHES // len(articles) + 1 for number in range(len(articles))],
    }
    partitioning = ds.partitioning(pa.schema([("batch", pa.int64())]), flavor="hive")
    ds.write_dataset(pa.table(columns), path, format="parquet", partitioning=partitioning)


def write_job(path: Path, template: str) -> None:
    """Write a job's configuration, and keep an edited one beside it."""
    text = (resources.files("wordveil") / "data" / "conf" / template).read_text("utf-8")
    if path.exists() and path.read_text("utf-8") != text:
        kept = path.with_name(f"{path.name}.bak")
        path.replace(kept)
        print_note(f"{path} was edited, or is that of another version. It is now {kept}.")
    path.write_text(text, "utf-8")


def read_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Read all rows of a table, by article."""
    import pyarrow.dataset as ds

    rows = ds.dataset(path, format="parquet", partitioning="hive").to_table().to_pylist()
    return {row["article"]: row for row in rows}


def count_subjects(texts: Sequence[str], way: Way) -> list[dict[str, Any]]:
    """Estimate how many articles had each subject, the most frequent first, beside the ``true`` count.

    ``texts``: the originals, whose subjects before the draw are the truth.
    """
    import numpy as np
    import pyarrow as pa

    from wordveil.assembly.bundles import describe_symbols
    from wordveil.measures.estimates import Estimator
    from wordveil.records.codec import ColumnsCodec
    from wordveil.records.columns import ONE_TEXT
    from wordveil.spark.analytics import Meanings, SymbolCounts

    described, law = describe_symbols(way.bundle), way.symbols.law
    assert described is not None
    undrawn = ColumnsCodec(ONE_TEXT, way.config.policy, way.bundle).encode([pa.array(texts, pa.string())])
    drawn = [symbol for row in way.rows.values() for symbol in row["symbols"]]
    true, counts = (np.bincount(ids, minlength=law.size) for ids in (undrawn.columns[0].ids, drawn))
    counted = SymbolCounts((), [()], counts[None, :], Meanings(Estimator(law), described["meanings"]))
    return [{**row, "true": int(true[row["symbol"]])} for row in counted.estimate()]


def draw_page(counts: Sequence[Mapping[str, Any]], way: Way) -> str:
    """Draw the page of counts, and say from which count on a subject stands out."""
    from wordveil.measures.estimates import Estimator
    from wordveil.report.estimates import render_estimates

    articles = counts[0]["draws"]
    note = (
        f"Each of the {articles:,} articles had one draw, at a loss of {number(way.bundle.guarantee.pure)}, among "
        f"{way.bundle.vocabulary.size} subjects and one more for texts without a known word."
    )
    least = Estimator(way.symbols.law).find_least_count(articles)
    return render_estimates(str(HOME / PASSAGES), None, "texts", (), None, counts, (), (), [note], articles, least)


def explain(
    before: Mapping[str, Mapping[str, Any]],
    ways: Mapping[str, Way],
    linked: Mapping[str, float],
    counts: Sequence[Mapping[str, Any]],
) -> None:
    """Print sentences before and after, the two ways, counts, a cost, the files, the next commands, and the page."""
    passages, words = ways[PASSAGES], ways[WORDS]
    shown = [
        (
            *(article, first_sentence(before[article]["body"])),
            *(passages.rows[article]["text"], first_sentence(words.rows[article]["text"])),
        )
        for article in SHOWN
    ]
    title = "Three articles, and what comes out by each way"
    print_grid(title, shown, ("article", "its first sentence", *ways), has_lines=True)
    both = (describe_passages(passages, linked[PASSAGES]), describe_words(words, linked[WORDS]))
    print_grid("The two ways", [(name, *(facts[name] for facts in both)) for name in both[0]], ("", *ways))
    rows = [
        (
            " ".join(row["keywords"].split()[:5]),
            f"{max(row['estimate'], 0):.0f}",
            show_interval(row["low"], row["high"], "{:.0f}".format),
            str(row["true"]),
        )
        for row in counts[:FEW]
    ]
    headings = {"subject": False, "estimated": True, "95% interval": True, "true": True}
    print_figures(f"Articles by subject, estimated from {HOME / PASSAGES} alone, and true", headings, rows)
    cost = words.rows[SHOWN[0]]["privacy"]
    epsilon = f"{cost['epsilon']:g}"
    hidden = next(note for note in words.bundle.manifest["notes"] if note.startswith("A word is hidden"))
    paragraphs: dict[str, Iterable[str]] = {
        f"What article {SHOWN[0]} cost by words (column privacy of its row)": (
            f"{cost['tokens']} x {epsilon} = {cost['epsilon_bound']:,.0f} at most: {epsilon} for each different word.",
            "Such a large number promises nothing between unrelated articles. It protects which of the related words",
            f"was in the text. {hidden}",
        ),
        f"Files in {HOME}/": (
            f"{JOBS[PASSAGES]}, {JOB}  the jobs of the two ways, to read and to edit; {CORPUS}/ has the articles",
            f"{PASSAGES}/, {OUTPUT}/  the results. Internal: pass on what `output.public_only: true` writes",
            "bundles/  the mechanisms, named by their fingerprints",
            f"{KEY}  a key for this quickstart alone, new each time; anyone with it can undo much of the noise",
        ),
        "Try next": suggest_commands(),
    }
    for heading, lines in paragraphs.items():
        print_line(heading, "bold")
        for line in lines:
            print_line(f"  {line}")
    print_line(f"Open {HOME / PAGE} in a browser: counts with error bars, estimated against true", "bold")


def describe_passages(way: Way, linked: float) -> dict[str, str]:
    """Describe the way that draws a whole text."""
    from wordveil.evaluation.linkage import CANDIDATES, bound_linkage

    loss = way.bundle.guarantee.pure
    return {
        "what is drawn": f"one of {way.bundle.vocabulary.size} subjects for a whole article",
        "what comes out": "a public sentence on that subject, which says nothing that the article says",
        "loss of an article": f"{number(loss)} at most between any two, whatever their length",
        "linked to its original": f"{linked:.2%} of the articles, among {CANDIDATES:,} candidates; one with a "
        f"probability of {bound_linkage(loss, CANDIDATES):.1%} at most",
        "recovered": describe_recovery(way),
        "shown": ", ".join(way.report.exposes),
        "take it for": "counts by topic and day, routing, trends; readers who may have the originals",
    }


def describe_words(way: Way, linked: float) -> dict[str, str]:
    """Describe the way that draws each word, with the same keys."""
    from wordveil.evaluation.linkage import CANDIDATES

    assert way.report.epsilon_bound is not None
    low, high = map(number, way.report.epsilon_bound)
    return {
        "what is drawn": f"one of {way.symbols.law.size} clusters of related words for each different word",
        "what comes out": "related words in the article's order; people cannot read it",
        "loss of an article": f"{low} to {high}: {way.config.mechanism.nominal_epsilon:g} for each different word",
        "linked to its original": f"{linked:.0%} of the articles of {way.draws} different words, the median, among "
        f"{CANDIDATES:,} candidates",
        "recovered": describe_recovery(way),
        "shown": ", ".join(way.report.exposes),
        "take it for": "classifiers of detail, such as sentiment; readers without the originals",
    }


def describe_recovery(way: Way) -> str:
    """Describe what one draw tells an attacker who knows frequencies."""
    recovery = way.bundle.recovery
    assert recovery is not None
    often = recovery.frequency
    return f"{show_recovered(often.after[0])} of the {recovery.of}s ({show_share(often.before)} without looking)"


def first_sentence(text: str) -> str:
    """Return a text up to the first full stop before a capital; both texts have it in the same place."""
    return re.split(r"(?<=[.!?]) +(?=[A-Z])", text, maxsplit=1)[0]


def suggest_commands() -> Iterator[str]:
    """Suggest the next commands."""
    run = f"{name_command()} sanitise --config {HOME / JOB}"
    yield f"{run} --overwrite    # after an edit"
    yield f"{run} --set 'text={{profile: strict, n_max: 64}}' --set output.path={STRICT}"
    yield f"{name_command()} init --from TABLE --passages    # a job for a table of yours; without --passages: words"
    yield f"{name_command()} docs choosing    # which of the two, and which epsilon"


def name_command() -> str:
    """Return the name that calls wordveil again: plain if the PATH leads to it, else as it was called now."""
    called = Path(sys.argv[0])
    if called.name != "wordveil":
        return f"{shlex.quote(sys.executable)} -m wordveil"
    found = shutil.which("wordveil")
    return "wordveil" if found and called.exists() and called.samefile(found) else shlex.quote(str(called))
