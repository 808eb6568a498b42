"""Terms, topics and subjects of a published table: an analysis that a reader can do with Spark alone.

Where texts were drawn whole, the subjects that records had are counted without bias, with intervals, from the drawn
symbols, the law that the column ``privacy`` names and the meaning of symbols in the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.ml.clustering import LDA, LDAModel
from pyspark.ml.feature import CountVectorizer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from wordveil.errors import InputError, usage_error
from wordveil.records.schema import SYMBOLS
from wordveil.spark.analytics.subjects import SubjectCounts, read_meanings
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.delta_table import DeltaTable
from wordveil.spark.platform.errors import input_errors, job_errors
from wordveil.spark.platform.progress import ignore
from wordveil.spark.platform.versions import parse_schema

TERMS, TOPICS, SUBJECTS, TRENDS = "terms", "topics", "subjects", "trends"
"""Names of the tables in the output's directory."""
_WORD = r"[\p{L}\p{N}]+(?:['\u2019][\p{L}\p{N}]+)*"
_VOCABULARY = 10_000
"""Number of the most frequent terms that the topics use."""
_TERMS_SCHEMA = "public_version bigint, term string, count bigint, documents bigint"
_TOPICS_SCHEMA = "public_version bigint, topic int, rank int, term string, weight double"


@dataclass(frozen=True)
class Analysis:
    """Terms and topics of a table.

    ``table``, ``public_version``, ``output``: what was read and where the tables are. ``documents``: records that have
    a term. ``terms``: different terms, without stop-words, in enough documents. ``occurrences``: their total number.
    ``topics``: the terms of each topic with the highest weights; no more topics than documents. ``subjects``: rows of
    the table of subjects over all records, the most frequent first; empty unless texts were drawn whole.
    """

    table: str
    public_version: int
    output: str
    records: int
    documents: int
    terms: int
    occurrences: int
    topics: tuple[tuple[str, ...], ...]
    subjects: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**self.__dict__, "topics": [list(topic) for topic in self.topics]}


def analyse(
    spark: SparkSession,
    table: str,
    output: str,
    *,
    version: int | None = None,
    text: str = "text",
    topics: int = 5,
    shown: int = 10,
    min_documents: int = 2,
    stop_words: Sequence[str] = (),
    by: Sequence[str] = (),
    over: str | None = None,
    progress: Callable[[str], None] = ignore,
) -> Analysis:
    """Count the terms of a published table, find its topics, and write both as Delta tables.

    Latent Dirichlet allocation finds the topics. ``version``: the table's version to read, by default the latest.
    ``text``: its column of text. ``topics``: the number of topics; ``shown``: the number of terms that describe each.
    ``min_documents``: terms of fewer documents are left out. ``by``: kept columns in whose groups subjects are counted.
    ``over``: a kept column, such as a week, between whose values in order subjects are compared. Each table is replaced
    in one commit.

    Raises :class:`InputError` for a table that cannot be read, :class:`ConfigError` for an output inside it.
    """
    _check_output(table, output)
    store = DeltaTable(spark, table, "table")
    if not store.exists():
        raise InputError(f"--table = {table}: there is no Delta table. Name the directory that holds _manifest.json.")
    chosen = store.version() if version is None else version
    with input_errors("--table", table, f"Delta table at version {chosen}"):
        rows = store.read(chosen)
    if text not in rows.columns:
        raise InputError(f"--text = {text}: the table has no such column. It has: {', '.join(rows.columns)}.")
    groups = (*by, *([over] if over and over not in by else ()))
    if unknown := [name for name in groups if name not in rows.columns or name in (text, SYMBOLS, "privacy")]:
        raise InputError(f"--by = {unknown[0]}: the table has no such kept column. It has: {', '.join(rows.columns)}.")
    meanings = read_meanings(spark, table) if SYMBOLS in rows.columns else []
    if groups and not meanings:
        raise InputError(
            f"--by = {', '.join(groups)}: groups the subjects of texts that were drawn whole, and the manifest of this "
            "table names none. Remove it."
        )
    progress("counting terms")
    with job_errors("the earlier tables are unchanged"):
        words = _split_words(rows, text, stop_words).cache()
        try:
            records, documents = words.count(), words.where("size(words) > 0").count()
            terms = _count_terms(words, min_documents).cache()
            kept = terms.count()
            total = int(terms.agg({"count": "sum"}).collect()[0][0] or 0)
            progress("finding topics")
            weighed = _find_topics(words, min_documents, min(topics, documents), shown) if kept else []
            progress("writing")
            versioned = terms.selectExpr(f"{chosen}L AS public_version", "*")
            _replace(versioned, f"{output}/{TERMS}", parse_schema(_TERMS_SCHEMA))
            flat = [
                (chosen, number, rank, term, weight)
                for number, topic in enumerate(weighed)
                for rank, (term, weight) in enumerate(topic)
            ]
            tables = {TOPICS: (flat, parse_schema(_TOPICS_SCHEMA))}
            terms.unpersist()
            subjects: tuple[dict[str, Any], ...] = ()
            if meanings:
                progress("estimating subjects")
                found = SubjectCounts.count(rows, groups, meanings)
                tables[SUBJECTS] = found.list_rows(chosen)
                if over:
                    tables[TRENDS] = found.list_trends(chosen, over)
                subjects = found.sum_up()
            for name, (values, schema) in tables.items():
                _replace(spark.createDataFrame(values, schema), f"{output}/{name}", schema)
        finally:
            words.unpersist()
    shown_topics = tuple(tuple(term for term, _ in topic) for topic in weighed)
    return Analysis(table, chosen, output, records, documents, kept, total, shown_topics, subjects)


def _check_output(table: str, output: str) -> None:
    here, there = (path.rstrip("/") + "/" for path in (output, table))
    if here.startswith(there) or there.startswith(here):
        raise usage_error("--output", output, "is the table, inside it or above it. Choose another path.")


def _split_words(rows: DataFrame, text: str, stop_words: Sequence[str]) -> DataFrame:
    """Split each record's text into its words, in lower case, without the stop-words."""
    words = F.regexp_extract_all(F.lower(column(text)), F.lit(_WORD), F.lit(0))
    if stop_words:
        stops = F.array(*map(F.lit, stop_words))
        words = F.filter(words, lambda word: ~F.array_contains(stops, word))
    return rows.select(F.coalesce(words, F.array().cast("array<string>")).alias("words"))


def _count_terms(words: DataFrame, min_documents: int) -> DataFrame:
    """Count how often each term occurs, and in how many documents; the most frequent first."""
    # Numbered in a separate step: together with explode, Spark would number the words and not the records.
    numbered = words.withColumn("document", F.monotonically_increasing_id()).select(
        "document", F.explode("words").alias("term")
    )
    counted = numbered.groupBy("term", "document").agg(F.count(F.lit(1)).alias("here")).groupBy("term")
    terms = counted.agg(F.sum("here").alias("count"), F.count(F.lit(1)).alias("documents"))
    return terms.where(F.col("documents") >= min_documents).orderBy(F.desc("count"), "term")


def _find_topics(words: DataFrame, min_documents: int, topics: int, shown: int) -> list[list[tuple[str, float]]]:
    """Find the terms of each topic with the highest weights; the same ones for the same table."""
    documents = words.where("size(words) > 0").coalesce(4)
    counter = CountVectorizer(
        inputCol="words", outputCol="features", vocabSize=_VOCABULARY, minDF=float(min_documents)
    ).fit(documents)
    # At least two: a single topic would be the list of frequent terms, which the other table holds.
    model: LDAModel = LDA(k=max(topics, 2), maxIter=20, seed=1).fit(counter.transform(documents).select("features"))
    described = model.describeTopics(shown).orderBy("topic").collect()
    return [
        [(counter.vocabulary[index], float(weight)) for index, weight in zip(*row[1:3], strict=True)]
        for row in described
    ]


def _replace(rows: DataFrame, path: str, schema: StructType) -> None:
    store = DeltaTable(rows.sparkSession, path, "table of analytics")
    store.create(schema)
    store.replace(rows.coalesce(1))
