"""Comparison of the outputs of two tables of canaries, which shows the features in which these differ."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from scipy.stats import binom

from wordveil.audit.canaries.contrast import Contrast, find_contrast
from wordveil.audit.canaries.documents import Pair, Shown
from wordveil.audit.canaries.observables import PRICE_SHOWS, TEXT_OBSERVABLES, Row, count_words, find_words
from wordveil.audit.canaries.tables import Inputs, Output
from wordveil.audit.canaries.words import MARK_LETTERS
from wordveil.privacy.relations import Exposure

PRICES = ("tokens", "epsilon_bound", "epsilon_pure", "delta")
"""The fields of ``privacy`` that may differ from record to record."""
_RowPairs = list[tuple[Row, Row]]


@dataclass(frozen=True)
class Difference:
    """Result of one test of two documents.

    ``feature``: in what the documents differ. ``what``: what was compared, for people. ``about``: the exposure that
    shows this feature; None where none does. ``allowed``: the exposures that explain a difference. ``contrast``: the
    test. ``is_specific``: whether a difference says more about the text than its length.
    """

    feature: str
    what: str
    about: Exposure | None
    allowed: Shown
    contrast: Contrast
    is_specific: bool = True


@dataclass(frozen=True)
class Run:
    """Outputs of both tables, drawn with one mechanism over a vocabulary of ``size`` words.

    ``is_blind``: whether the mechanism draws from the same law for every symbol, so that texts can differ only by
    their structure.
    """

    first: Output
    second: Output
    is_blind: bool
    size: int


def compare_run(inputs: Inputs, run: Run) -> Iterator[Difference]:
    """Compare the documents of every pair.

    Texts are compared if only structure can distinguish them: under a blind mechanism, and for pairs with the same
    hidden words. Other words are left to the audit of the mechanism.
    """
    ids = inputs.ids
    for index, pair in enumerate(inputs.pairs):
        numbers = inputs.records_of(index)
        first, second = ([side.rows.get(ids[number]) for number in numbers] for side in (run.first, run.second))
        marks = frozenset(inputs.marks[number] for number in numbers)
        rows = [(left, right) for left, right in zip(first, second, strict=True) if left and right]
        yield from _compare_presence(pair, first, second)
        yield from _compare_prices(pair, rows)
        if run.is_blind or pair.keeps_words:
            texts = [text for text in (*pair.first, *pair.second) if isinstance(text, str)]
            words = frozenset(word for text in texts for word in find_words(text))
            yield from _compare_texts(pair, rows, words | marks)
        yield from _compare_noise(pair, rows, marks)
        if run.is_blind and pair.feature == "length":
            yield from _compare_ids(rows, run.size)


def _compare_presence(pair: Pair, first: list[Row | None], second: list[Row | None]) -> Iterator[Difference]:
    """Test whether records are there, and whether they were released."""
    there = [[row is not None for row in side] for side in (first, second)]
    yield from _both_ways(pair, "whether there is a row", frozenset(), *there)
    status = [[row.status for row in side if row] for side in (first, second)]
    yield from _both_ways(pair, "status and reason", frozenset({Exposure.PRESENCE}), *status)


def compare_admitted(inputs: Inputs, first: Collection[str], second: Collection[str]) -> Iterator[Difference]:
    """Compare which records of each table meet the condition on the input: ``first`` and ``second`` are their ids."""
    ids = inputs.ids
    for index, pair in enumerate(inputs.pairs):
        sides = [[ids[number] in admitted for number in inputs.records_of(index)] for admitted in (first, second)]
        renamed = replace(pair, feature="condition")
        yield from _both_ways(renamed, f"whether it is read ({pair.feature})", frozenset({Exposure.CONDITION}), *sides)


def _compare_prices(pair: Pair, rows: _RowPairs) -> Iterator[Difference]:
    prices = [
        [tuple((row.privacy or {}).get(name) for name in PRICES) for row in side if row.texts is not None]
        for side in _sides(rows)
    ]
    for difference in _both_ways(pair, "the price", pair.shows & PRICE_SHOWS, *prices):
        yield replace(difference, is_specific=False)


def _sides(rows: _RowPairs) -> tuple[list[Row], list[Row]]:
    return [first for first, _ in rows], [second for _, second in rows]


def _compare_texts(pair: Pair, rows: _RowPairs, words: frozenset[str]) -> Iterator[Difference]:
    texts = [[row.texts for row in side if row.texts is not None] for side in _sides(rows)]
    counts = [{(count_words(row), *(len(find_words(text)) for text in row)) for row in side} for side in texts]
    # Where the number of words shows, so does whatever follows from it.
    follows = frozenset({Exposure.LENGTH}) if counts[0] != counts[1] else frozenset()
    for observable in TEXT_OBSERVABLES:
        allowed = pair.shows & (observable.shows | follows)
        values = [[observable.measure(row, words) for row in side] for side in texts]
        for difference in _both_ways(pair, observable.name, allowed, *values, is_ordered=observable.is_ordered):
            yield replace(difference, is_specific=observable.is_specific)


def _both_ways(
    pair: Pair,
    what: str,
    allowed: Shown,
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    is_ordered: bool = False,
) -> Iterator[Difference]:
    """Test for events that the first document has more often, and for those that the second one has."""
    for likely, unlikely in ((first, second),) if is_ordered else ((first, second), (second, first)):
        contrast = find_contrast(likely, unlikely, is_ordered=is_ordered)
        if contrast is not None:
            yield Difference(pair.feature, what, pair.about, allowed, contrast)


def _compare_noise(pair: Pair, rows: _RowPairs, marks: frozenset[str]) -> Iterator[Difference]:
    """Test whether two versions of a record share noise.

    Their outputs would then have more words in common than those of two records.
    """
    both = [(first, second) for first, second in rows if first.texts is not None and second.texts is not None]
    unchanged = all(first.texts == second.texts and first.tag == second.tag for first, second in both)
    if not both or (unchanged and not pair.is_redrawn):
        return  # what is drawn depends on neither version
    # Every output is in only one of the samples, so the samples are independent.
    versions, rest = both[::2], both[1::2]
    strangers = [(first, second) for (first, _), (_, second) in zip(rest, rest[1:] + rest[:1], strict=True)]
    matches = [[_count_matches(*outputs, marks) for outputs in sample] for sample in (versions, strangers)]
    contrast = find_contrast(*matches, is_ordered=True)
    if contrast is not None:
        what = f"words that two versions of a record have in common ({pair.feature})"
        yield Difference("noise", what, None, frozenset(), contrast)


def _count_matches(first: Row, second: Row, marks: frozenset[str]) -> int:
    """Count the positions at which two outputs have the same word, without words that were made for one record."""
    texts = zip(first.texts or (), second.texts or (), strict=True)
    words = [zip(find_words(left), find_words(right), strict=False) for left, right in texts]
    return sum(left == right and left[:MARK_LETTERS] not in marks for column in words for left, right in column)


def _compare_ids(rows: _RowPairs, size: int) -> Iterator[Difference]:
    """Test whether records with one text share noise.

    A blind draw of one word or more repeats another one with a probability of at most one over the words of the
    vocabulary.
    """
    for side in _sides(rows):
        texts = [row.texts for row in side if row.texts is not None]
        equal = [first == second for first, second in zip(texts[::2], texts[1::2], strict=False)]
        if equal:
            hits, draws = sum(equal), len(equal)
            contrast = Contrast("equal outputs", (hits, 0), (draws, 0), float(binom.sf(hits - 1, draws, 1 / size)))
            yield Difference("ids", "outputs of two records with one text", None, frozenset(), contrast)
