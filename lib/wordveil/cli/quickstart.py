"""The command ``wordveil quickstart``: the main job over 300 real news articles, with its output explained."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import resources
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordveil.cli.options import prepare_session, read_config
from wordveil.cli.output import ResultTable, print_line, print_note, print_rows, show_progress
from wordveil.cli.release_tables import print_report
from wordveil.cli.scaffold import Call, Result, command
from wordveil.crypto.keys import create_key
from wordveil.errors import OutputExistsError, usage_error

if TYPE_CHECKING:
    from wordveil.artifacts.bundle import Bundle

HOME = Path("quickstart")
JOB, KEY, CORPUS, OUTPUT, STRICT = "job.yaml", "wordveil.key", "corpus", "sanitised", "strict"
MARK = ".made-by-wordveil-quickstart"
"""An empty file that marks the directory as this command's."""
BATCHES = 3
SHOWN = ("001", "002", "009")


@command()
def quickstart(_: Call) -> Result:
    """Sanitise 300 news articles with local Spark, and explain the result.

    All files are written to ./quickstart.

    Example: `wordveil quickstart`
    """
    from wordveil.spark.platform.jvm import check_java
    from wordveil.spark.sanitise.job import run_sanitise

    check_java()
    with show_progress() as (progress, tasks):
        progress("writing the articles, a key and the job")
        prepare_home()
        settings = read_config(HOME / JOB, ())
        report = run_sanitise(settings, prepare_session(settings), progress=progress, tasks=tasks)

    def show() -> None:
        print_report(report)
        explain(read_rows(HOME / CORPUS), read_rows(HOME / OUTPUT))

    return Result(report.to_dict(), show)


def prepare_home() -> None:
    """Write the articles, the key and the job. Files of an earlier quickstart are replaced, except its bundle.

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
        for name in (CORPUS, OUTPUT, STRICT):
            if (HOME / name).exists():
                shutil.rmtree(HOME / name)
        (HOME / KEY).unlink(missing_ok=True)
        write_corpus(HOME / CORPUS)
        write_job(HOME / JOB)
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


def write_job(path: Path) -> None:
    """Write the job's configuration, and keep an edited one beside it."""
    text = (resources.files("wordveil") / "data" / "conf" / "quickstart.yaml").read_text("utf-8")
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


def explain(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> None:
    """Print sentences before and after, the cost of one article, the files, and the next commands."""
    from wordveil.artifacts.bundle import open_bundle

    table = ResultTable("Three sentences", has_lines=True)
    for heading in ("article", "before", "after"):
        table.add_column(heading)
    for article in SHOWN:
        table.add_row(article, first_sentence(before[article]["body"]), first_sentence(after[article]["text"]))
    print_rows(table)
    article = SHOWN[0]
    bundle = open_bundle(HOME / "bundles" / after[article]["privacy"]["bundle"])
    paragraphs = {
        f"What article {article} cost (column privacy of its row)": [
            *describe_costs(before[article]["body"], after[article], bundle)
        ],
        f"Files in {HOME}/": [*describe_files()],
        "Try next": [*suggest_commands()],
    }
    for heading, lines in paragraphs.items():
        print_line(heading, "bold")
        for line in lines:
            print_line(f"  {line}")


def first_sentence(text: str) -> str:
    """Return a text up to the first full stop before a capital; both texts have it in the same place."""
    return re.split(r"(?<=[.!?]) +(?=[A-Z])", text, maxsplit=1)[0]


def count_changed_words(before: str, after: str) -> int:
    """Count the words that changed; both texts have their words in the same places."""
    pairs = zip(re.findall(r"[\w']+", before), re.findall(r"[\w']+", after), strict=False)
    return sum(mine != theirs for mine, theirs in pairs)


def describe_costs(before: str, row: dict[str, Any], bundle: Bundle) -> Iterator[str]:
    """Explain the ``privacy`` column of one record."""
    privacy = row["privacy"]
    epsilon, words, bound = privacy["epsilon"], privacy["tokens"], privacy["epsilon_bound"]
    yield "Anyone with the original articles can tell which of them this is, by the copied and the drawn words."
    yield "`wordveil plan` shows how surely, and `wordveil docs choosing` explains what keeps records apart."
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
    if bundle.recovery is not None:
        found = bundle.recovery.frequency
        yield (
            "An attacker who knows everything but the key and the text, and how frequent words are, recovers "
            f"{found.after[0].at_least:.0%} of"
        )
        yield f"the words (without looking: {found.before:.1%})."
    yield (
        f"The bound compares articles of the {privacy['relation'].replace('_', ' ')}. These are shown unchanged: "
        f"{', '.join(privacy['exposes'])}."
    )
    yield "epsilon_pure is null: no bound holds between any two texts. The profile `strict` has one."


def describe_files() -> Iterator[str]:
    """Describe the files that the command has written."""
    yield f"{HOME / JOB}  the job, to read and to edit"
    yield f"{HOME / CORPUS}  the articles, Parquet partitioned by batch"
    yield f"{HOME / OUTPUT}  the result: article, text, status, reason, privacy, content_tag, run_id. Internal: pass on"
    yield "    what `output.public_only: true` writes, released records without status, reason, content_tag and run_id"
    yield f"{HOME / 'bundles'}  the mechanism with its vectors, named by its fingerprint"
    yield f"{HOME / KEY}  a key for this quickstart alone, new each time; anyone with it can undo much of the noise"


def suggest_commands() -> Iterator[str]:
    """Suggest the next commands."""
    run = f"{name_command()} sanitise --config {HOME / JOB}"
    yield f"{run} --overwrite    # after an edit"
    yield f"{run} --set 'text={{profile: strict, n_max: 64}}' --set output.path={STRICT}"
    yield f"{name_command()} init --from TABLE    # a job for a table of yours"


def name_command() -> str:
    """Return the name that calls wordveil again: plain if the PATH leads to it, else as it was called now."""
    called = Path(sys.argv[0])
    if called.name != "wordveil":
        return f"{shlex.quote(sys.executable)} -m wordveil"
    found = shutil.which("wordveil")
    return "wordveil" if found and called.exists() and called.samefile(found) else shlex.quote(str(called))
