"""The command ``wordveil ngrams``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from wordveil.cli.options import JarsOption, absolute_path, prepare_plain_session
from wordveil.cli.output import show_status
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import usage_error
from wordveil.text.choices import MAX_N, Hyphens, TokeniserKind


@command()
def ngrams(
    _: Call,
    source: Annotated[
        str,
        Option(
            "--input",
            metavar="TABLE",
            callback=absolute_path,
            help="The path of a table of public text, Parquet or Delta.",
        ),
    ],
    text: Annotated[str, Option("--text", metavar="COLUMN", help="The column with the text.")],
    output: Annotated[Path, Option("--output", "-o", help="The directory in which the model's own directory is made.")],
    *,
    public: Annotated[
        bool,
        Option("--public", help="Confirm that the table is public text, written without the private corpus. Required."),
    ] = False,
    max_n: Annotated[int, Option("--max-n", min=2, max=MAX_N, help="The number of words of the longest n-grams.")] = 4,
    min_count: Annotated[int, Option("--min-count", min=1, help="Leave out n-grams that occur less often.")] = 5,
    tokeniser: Annotated[
        TokeniserKind, Option("--tokeniser", help="The tokeniser of the text policy.")
    ] = TokeniserKind.WORDS,
    hyphens: Annotated[Hyphens, Option("--hyphens", help="The hyphens of the text policy.")] = Hyphens.SPLIT,
    jars: JarsOption = None,
) -> Result:
    """Count the n-grams of public text, for the text policy carrier_phrases.

    Example: `wordveil ngrams --input public/reviews --text body --output models --public`
    """
    from wordveil.artifacts import content_store
    from wordveil.artifacts.ngram_model import read_model
    from wordveil.config import template
    from wordveil.spark.builds.ngrams import build_ngrams
    from wordveil.spark.input.inspect import open_path
    from wordveil.text.slots import NgramSettings

    if not public:
        problem = (
            "is required. Add it only if the table is public text, written without the private corpus: a model "
            "counted over the corpus reveals the corpus's phrases by the n-grams that it keeps. Otherwise "
            "name another table."
        )
        raise usage_error("--public", "", problem)
    settings = NgramSettings(max_n, min_count, tokeniser, hyphens)
    with show_status() as progress:
        progress("starting Spark")
        session = prepare_plain_session(jars, delta=template.is_local_delta(source))
        table = open_path(session, source, "--input", "Write it as Parquet first.")
        model, texts, left_out = build_ngrams(table, text, output, settings, source, progress)
    facts = {
        "digest": model.digest,
        "path": str(model.path),
        "texts": texts,
        "left_out": left_out,
        "words": model.total,
        "ngrams": len(model.counts),
        "max_n": max_n,
        "min_count": min_count,
        "bytes": content_store.payload_bytes(read_model(model.path)),
    }
    note = "set text.profile: carrier_phrases and text.ngrams to the path above."
    return Result.of("N-gram model", facts, notes=[note])
