"""The command ``wordveil analytics``."""

from __future__ import annotations

from typing import Annotated

import typer

from wordveil.cli.options import JarsOption, JsonOption, starter, status
from wordveil.cli.output import print_json, print_table
from wordveil.cli.report_file import ReportOption, reported
from wordveil.config.schema import SparkSection
from wordveil.text.stop_words import load_stop_words


def analytics(
    table: Annotated[str, typer.Option("--table", metavar="PATH", help="The published table.")],
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="PATH", help="The directory of the tables terms and topics, which are replaced."
        ),
    ],
    version: Annotated[
        int | None,
        typer.Option("--version", min=0, metavar="N", help="The version to read: public_version of a manifest."),
    ] = None,
    text: Annotated[str, typer.Option("--text", metavar="COLUMN", help="The column of text.")] = "text",
    topics: Annotated[int, typer.Option("--topics", min=2, max=1000, help="How many topics.")] = 5,
    shown: Annotated[int, typer.Option("--terms", min=1, max=1000, help="How many terms stand for a topic.")] = 10,
    min_documents: Annotated[
        int,
        typer.Option("--min-documents", min=1, metavar="N", help="Terms that stand in fewer documents are left out."),
    ] = 2,
    jars: JarsOption = None,
    *,
    as_json: JsonOption = False,
    report: ReportOption = None,
) -> None:
    """Count the terms of a published table and find topics among them. Needs neither key nor configuration; verify the
    table first.
    """
    from wordveil.spark.analytics import analyse

    with reported("analytics", report) as tell, status() as progress:
        progress("starting Spark")
        spark = starter(SparkSection(delta_jars=jars), delta=True)()
        found = analyse(
            spark,
            table,
            output,
            version=version,
            text=text,
            topics=topics,
            shown=shown,
            min_documents=min_documents,
            stop_words=load_stop_words("english"),
            progress=progress,
        )
        tell(found.to_dict())
    if as_json:
        print_json(found.to_dict())
        return
    facts = {
        "version": found.public_version,
        "records": f"{found.records:,}, {found.documents:,} with a term",
        "terms": f"{found.terms:,}, which stand {found.occurrences:,} times",
        **{f"topic {number}": ", ".join(topic) for number, topic in enumerate(found.topics)},
        "written to": output,
    }
    print_table(f"Analytics of {table}", facts)
