"""The command ``wordveil analytics``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from typer import Option

from wordveil.cli.options import JarsOption, absolute_path, prepare_plain_session
from wordveil.cli.output import print_table, show_status
from wordveil.cli.scaffold import Call, Result, command


@command(report=True)
def analytics(
    _: Call,
    table: Annotated[str, Option("--table", metavar="PATH", callback=absolute_path, help="The published table.")],
    output: Annotated[
        str,
        Option(
            "--output",
            "-o",
            metavar="PATH",
            callback=absolute_path,
            help="The directory for the tables terms, topics, subjects and trends. Existing ones are replaced.",
        ),
    ],
    version: Annotated[
        int | None,
        Option("--version", min=0, metavar="N", help="The version to read: the public_version of a manifest."),
    ] = None,
    text: Annotated[str, Option("--text", metavar="COLUMN", help="The column with the text.")] = "text",
    topics: Annotated[int, Option("--topics", min=2, max=1000, help="The number of topics.")] = 5,
    shown: Annotated[int, Option("--terms", min=1, max=1000, help="The number of terms shown for each topic.")] = 10,
    min_documents: Annotated[
        int, Option("--min-documents", min=1, metavar="N", help="Leave out terms that occur in fewer documents.")
    ] = 2,
    by: Annotated[
        str | None,
        Option(
            "--by",
            metavar="COLUMN,...",
            help="Estimate subjects in each group of these kept columns, where texts were drawn whole.",
        ),
    ] = None,
    over: Annotated[
        str | None,
        Option(
            "--over", metavar="COLUMN", help="Also compare the groups of each value of this kept column with the next."
        ),
    ] = None,
    jars: JarsOption = None,
) -> Result:
    """Count the terms of a published table, find topics in them, and estimate the subjects of texts drawn whole.

    Needs neither a key nor a configuration. Verify the table first.

    Example: `wordveil analytics --table published/reviews --output analytics`
    """
    from wordveil.spark.analytics.analysis import analyse
    from wordveil.text.stop_words import load_stop_words

    with show_status() as progress:
        progress("starting Spark")
        spark = prepare_plain_session(jars)()
        analysis = analyse(
            spark,
            table,
            output,
            version=version,
            text=text,
            topics=topics,
            shown=shown,
            min_documents=min_documents,
            stop_words=load_stop_words("english"),
            by=by.split(",") if by else (),
            over=over,
            progress=progress,
        )
    facts = {
        "version": analysis.public_version,
        "records": f"{analysis.records:,}, {analysis.documents:,} with a term",
        "terms": f"{analysis.terms:,}, which occur {analysis.occurrences:,} times",
        **{f"topic {number}": ", ".join(topic) for number, topic in enumerate(analysis.topics)},
        **{f"subject {row['symbol']}": _show_subject(row) for row in analysis.subjects[:shown]},
        "written to": output,
    }
    return Result(analysis.to_dict(), partial(print_table, f"Analytics of {table}", facts))


def _show_subject(row: Mapping[str, Any]) -> str:
    words = " ".join(row["keywords"].split()[:5]) or "no known word"
    return f"{max(row['estimate'], 0):,.0f} texts ({row['low']:,.0f} to {row['high']:,.0f}): {words}"
