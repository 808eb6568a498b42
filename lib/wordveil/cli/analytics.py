"""The command ``wordveil analytics``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option

from wordveil.cli.options import JarsOption, absolute_path, prepare_plain_session
from wordveil.cli.output import print_table, show_status
from wordveil.cli.scaffold import Call, Result, command
from wordveil.cli.tables import left_out_facts
from wordveil.errors import usage_error

if TYPE_CHECKING:
    from wordveil.spark.analytics import Analysis


@command(report=True, html=True)
def analytics(
    call: Call,
    table: Annotated[str, Option("--table", metavar="PATH", callback=absolute_path, help="The published table.")],
    output: Annotated[
        str,
        Option(
            "--output",
            "-o",
            metavar="PATH",
            callback=absolute_path,
            help="The directory for the tables of estimates. Existing ones are replaced.",
        ),
    ],
    version: Annotated[
        int | None,
        Option("--version", min=0, metavar="N", help="The version to read: the public_version of a manifest."),
    ] = None,
    text: Annotated[str, Option("--text", metavar="COLUMN", help="The column with the text.")] = "text",
    shown: Annotated[int, Option("--top", min=1, max=1000, help="The number of symbols that are shown.")] = 10,
    min_documents: Annotated[
        int, Option("--min-documents", min=1, metavar="N", help="Without symbols: leave out words of fewer texts.")
    ] = 2,
    by: Annotated[
        str | None,
        Option(
            "--by",
            metavar="COLUMN,...",
            help="Estimate counts in each group of these kept columns.",
        ),
    ] = None,
    over: Annotated[
        str | None,
        Option(
            "--over", metavar="COLUMN", help="Also compare the groups of each value of this kept column with the next."
        ),
    ] = None,
    every: Annotated[
        Literal["week", "month", "quarter", "year"] | None,
        Option("--every", help="With --over: the column has dates, and these periods of them are compared."),
    ] = None,
    pairs: Annotated[
        int,
        Option("--pairs", min=0, max=200, metavar="N", help="Count pairs of the N most frequent symbols; 0: no pairs."),
    ] = 30,
    jars: JarsOption = None,
) -> Result:
    """Estimate from a published table how often texts had each subject, or cluster of words, with intervals.

    Needs neither a key nor a configuration: what was drawn is in the column `symbols`, and its law is public. Verify
    the table first. A table without symbols has its written words counted, which are biased.

    Example: `wordveil analytics --table published/reviews --over day --every week --output analytics`
    """
    from wordveil.spark.analytics import analyse
    from wordveil.text.stop_words import load_stop_words

    groups = by.split(",") if by else []
    if every and not over:
        raise usage_error("--every", every, "needs --over COLUMN, a kept column of dates.")
    with show_status() as progress:
        progress("starting Spark")
        spark = prepare_plain_session(jars)()
        found = analyse(
            spark,
            table,
            output,
            version=version,
            text=text,
            by=groups,
            over=over,
            every=every,
            pairs=pairs,
            min_documents=min_documents,
            stop_words=load_stop_words("english"),
            page=call.page is not None,
            progress=progress,
        )
    if call.page is not None and found.unit is not None:
        from wordveil.report.estimates import render_estimates

        columns = [*dict.fromkeys([*groups, *([over] if over else ())])]
        notes = [f"Left out by budgets: {fact}." for fact in left_out_facts(found.refused).values()]
        notes += [f"{over} is the first day of each {every}."] if every else []
        tables = (found.estimates, found.trends, found.pairs)
        named = (table, found.public_version, found.unit, columns, over)
        call.save_page(render_estimates(*named, *tables, notes, found.least_draws, found.least_count), None)
    return Result(found.to_dict(), partial(print_table, f"Analytics of {table}", _list_facts(found, shown, output)))


def _list_facts(found: Analysis, shown: int, output: str) -> dict[str, str]:
    facts = {"records": f"{found.records:,}", **left_out_facts(found.refused)}
    if found.public_version is not None:
        facts = {"version": str(found.public_version), **facts}
    if found.unit is None:
        biased = "counted as they came out, which is biased. output.symbols: true lets readers estimate"
        return {**facts, "written words": f"{found.drawn:,}, {biased}", "written to": output}
    draws = found.totals[0]["draws"] if found.totals else 0
    facts["draws"] = f"{draws:,} {found.unit}"
    if found.least_count:
        facts["stands out"] = (
            f"from {found.least_count:,} on, of {found.least_draws:,} {found.unit} of the smallest group"
        )
    for row in found.totals[:shown]:
        words = " ".join(row["keywords"].split()[:5]) or "no known word"
        interval = f"{row['low']:,.0f} to {row['high']:,.0f}"
        facts[f"{row['rank']}"] = f"{max(row['estimate'], 0):,.0f} {found.unit} (95%: {interval}): {words}"
    for name, rows, marked in (
        ("changes", found.trends, "more_than_noise"),
        ("pairs", found.pairs, "more_than_chance"),
    ):
        if rows:
            real = sum(row[marked] for row in rows)
            facts[name] = f"{real:,} of {len(rows):,} are {marked.replace('_', ' ')}"
    return {**facts, "written to": output}
