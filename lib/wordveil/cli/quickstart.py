"""The command ``wordveil quickstart``: the main job over 300 real news articles in two ways, with results explained."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any

from wordveil.cli.options import prepare_session, read_config
from wordveil.cli.output import ResultTable, print_line, print_note, print_rows, show_progress
from wordveil.cli.scaffold import Call, Result, command
from wordveil.cli.tables import number, recovery_facts
from wordveil.crypto.keys import create_key
from wordveil.errors import OutputExistsError, usage_error

if TYPE_CHECKING:
    from wordveil.artifacts.bundle import Bundle
    from wordveil.assembly.run_report import RunReport
    from wordveil.config.load import Config

HOME = Path("quickstart")
KEY, CORPUS, OUTPUT, STRICT = "wordveil.key", "corpus", "sanitised", "strict"
PASSAGES, WORDS = "passages", "words"
JOB = "job.yaml"
JOBS = {PASSAGES: "passages.yaml", WORDS: JOB}
"""Configurations of the two ways."""
TEMPLATES = {JOBS[PASSAGES]: "quickstart-passages.yaml", JOB: "quickstart.yaml"}
MARK = ".made-by-wordveil-quickstart"
"""An empty file that marks the directory as this command's."""
BATCHES = 3
SHOWN = ("001", "002", "009")


@command()
def quickstart(_: Call) -> Result:
    """Sanitise 300 news articles in two ways with local Spark, and explain the results.

    All files are written to ./quickstart.

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
    document = {name: {**way.report.to_dict(), "linked": linked[name]} for name, way in ways.items()}
    return Result(document, partial(explain, read_rows(HOME / CORPUS), ways, linked))


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
        (HOME / KEY).unlink(missing_ok=True)
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


def explain(before: Mapping[str, Mapping[str, Any]], ways: Mapping[str, Way], linked: Mapping[str, float]) -> None:
    """Print sentences before and after, the two ways, the cost of an article, the files, and the next commands."""
    passages, words = ways[PASSAGES], ways[WORDS]
    table = ResultTable("Three articles, and what comes out by each way", has_lines=True)
    table.add_columns("article", "its first sentence", *ways)
    for article in SHOWN:
        passage, after = passages.rows[article]["text"], first_sentence(words.rows[article]["text"])
        table.add_row(article, first_sentence(before[article]["body"]), passage, after)
    print_rows(table)
    table = ResultTable("The two ways")
    table.add_columns("", *ways)
    both = (describe_passages(passages, linked[PASSAGES]), describe_words(words, linked[WORDS]))
    for name in both[0]:
        table.add_row(name, *(facts[name] for facts in both))
    print_rows(table)
    article = SHOWN[0]
    paragraphs = {
        f"What article {article} cost word by word (column privacy of its row)": [
            *describe_costs(before[article]["body"], words.rows[article], words.bundle)
        ],
        f"Files in {HOME}/": [*describe_files()],
        "Try next": [*suggest_commands()],
    }
    for heading, lines in paragraphs.items():
        print_line(heading, "bold")
        for line in lines:
            print_line(f"  {line}")


def describe_passages(way: Way, linked: float) -> dict[str, str]:
    """Describe the way that draws a whole text."""
    from wordveil.evaluation.linkage import CANDIDATES, bound_linkage

    loss = way.bundle.guarantee.pure
    recovery = recovery_facts(way.bundle.recovery)
    return {
        "what is drawn": f"one of {way.bundle.vocabulary.size} subjects for a whole article",
        "what comes out": "a public sentence on that subject, which says nothing that the article says",
        "loss of an article": f"{number(loss)} at most between any two, whatever their length",
        "linked to its original": f"{linked:.2%} of the articles, among {CANDIDATES:,} candidates; one with a "
        f"probability of {bound_linkage(loss, CANDIDATES):.1%} at most",
        "recovered": recovery["subjects recovered"],
        "shown": ", ".join(way.report.exposes),
        "take it for": "counts by topic and day, routing, trends; readers who may have the originals",
    }


def describe_words(way: Way, linked: float) -> dict[str, str]:
    """Describe the way that draws each word, with the same keys."""
    from wordveil.evaluation.linkage import CANDIDATES

    assert way.report.epsilon_bound is not None
    low, high = map(number, way.report.epsilon_bound)
    return {
        "what is drawn": f"one of {way.bundle.manifest['recipe']['settings']['clusters'][0]} clusters of related words "
        "for each different word",
        "what comes out": "related words in the article's order; people cannot read it",
        "loss of an article": f"{low} to {high}: {way.config.mechanism.nominal_epsilon:g} for each different word",
        "linked to its original": f"{linked:.0%} of the articles of {way.draws} different words, the median, among "
        f"{CANDIDATES:,} candidates",
        "recovered": recovery_facts(way.bundle.recovery)["words recovered"],
        "shown": ", ".join(way.report.exposes),
        "take it for": "classifiers of detail, such as sentiment; readers without the originals",
    }


def first_sentence(text: str) -> str:
    """Return a text up to the first full stop before a capital; both texts have it in the same place."""
    return re.split(r"(?<=[.!?]) +(?=[A-Z])", text, maxsplit=1)[0]


def count_changed_words(before: str, after: str) -> int:
    """Count the words that changed; both texts have their words in the same places."""
    pairs = zip(re.findall(r"[\w']+", before), re.findall(r"[\w']+", after), strict=False)
    return sum(mine != theirs for mine, theirs in pairs)


def describe_costs(before: str, row: Mapping[str, Any], bundle: Bundle) -> Iterator[str]:
    """Explain the ``privacy`` column of one record."""
    privacy = row["privacy"]
    epsilon, words, bound = privacy["epsilon"], privacy["tokens"], privacy["epsilon_bound"]
    yield f"The mechanism `{privacy['mechanism']}` drew a word for each of the {words} different words of the text."
    yield "One draw serves all places where a word stands (repeat: same), so the price counts different words."
    yield f"{count_changed_words(before, row['text'])} places changed."
    clusters = bundle.manifest["recipe"]["settings"]["clusters"][0]
    yield f"The vocabulary is cut into {clusters} public clusters of related words. A word most often becomes"
    yield "the most frequent word of its own cluster, sometimes that of any other."
    yield "The guarantee: the words of one cluster are drawn alike, so nobody can tell which of them was in the text."
    yield next(note for note in bundle.manifest["notes"] if note.startswith("A word is hidden"))
    yield (
        f"Between any two words the probability of an output differs by a factor of at most e^{epsilon:g}: each word "
        f"costs at most E = {epsilon:g}."
    )
    yield f"For the whole article this adds up to at most epsilon_bound = {words} x {epsilon:g} = {bound:,.0f}."
    yield "Such a large number promises nothing between unrelated articles. It protects which of the related words"
    yield "was in the text."
    yield (
        f"The bound compares articles of the {privacy['relation'].replace('_', ' ')}. These are shown unchanged: "
        f"{', '.join(privacy['exposes'])}."
    )
    yield "epsilon_pure is null: no bound holds between any two texts. The profile `strict` has one."


def describe_files() -> Iterator[str]:
    """Describe the files that the command has written."""
    yield f"{HOME / JOBS[PASSAGES]}, {HOME / JOB}  the jobs of the two ways, to read and to edit"
    yield f"{HOME / CORPUS}  the articles, Parquet partitioned by batch"
    yield f"{HOME / PASSAGES}, {HOME / OUTPUT}  the results: article, text, status, reason, privacy, run_id and"
    yield "    content_tag; for passages also symbols, the subject, as in _symbols.json. Internal: pass on what"
    yield "    `output.public_only: true` writes, released records without status, reason, content_tag and run_id"
    yield f"{HOME / 'bundles'}  the mechanisms with their vectors, named by their fingerprints"
    yield f"{HOME / KEY}  a key for this quickstart alone, new each time; anyone with it can undo much of the noise"


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
