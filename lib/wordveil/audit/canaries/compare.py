"""Comparison of two tables of canaries: events are chosen on one half of the outputs and tested on the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom, hypergeom

from wordveil.arrays import Float64
from wordveil.audit.canaries.documents import MARK_LETTERS, DocumentPair, Shown
from wordveil.audit.canaries.tables import (
    PRICE_SHOWS,
    TEXT_OBSERVABLES,
    CanaryOutput,
    Inputs,
    Row,
    count_words,
    find_words,
)
from wordveil.privacy.relations import Exposure

Event = Callable[[Any], bool]


@dataclass(frozen=True)
class Contrast:
    """Power of an event to distinguish two samples.

    ``hits``: number of occurrences in the half of each sample that tests it, of ``draws`` values. ``p_value``:
    probability of such a difference, or a greater one, under one law: Fisher's exact test, one-sided.
    """

    event: str
    hits: tuple[int, int]
    draws: tuple[int, int]
    p_value: float

    def __str__(self) -> str:
        return f"{self.event}: {self.hits[0]} of {self.draws[0]} against {self.hits[1]} of {self.draws[1]}"


def find_contrast(
    first: Sequence[Hashable], second: Sequence[Hashable], *, is_ordered: bool = False
) -> Contrast | None:
    """Find an event that the first of two samples of independent values has more often.

    The event is chosen on every second value of both samples, and tested on the others, so the p-value is valid for any
    choice. Under one law, counts of the event are hypergeometric given their sum. ``is_ordered``: values are numbers,
    and events their ranges, more frequent in either sample. Return None if a sample has fewer than four values.
    """
    if min(len(first), len(second)) < 4:
        return None
    if is_ordered:
        chosen, event = _choose_range(np.array(first[::2], float), np.array(second[::2], float))
    else:
        chosen, event = _choose_values(first[::2], second[::2])
    likely, unlikely = first[1::2], second[1::2]
    hits = sum(map(chosen, likely)), sum(map(chosen, unlikely))
    draws = len(likely), len(unlikely)
    return Contrast(event, hits, draws, _compute_tail(hits[0], sum(hits), *draws))


def find_least_hits(draws: int, alpha: float) -> int | None:
    """Find the least count with a p-value of at most ``alpha`` of an event that the other sample lacks, if any."""
    return next((hits for hits in range(1, draws + 1) if _compute_tail(hits, hits, draws, draws) <= alpha), None)


@cache
def _compute_tail(hits: int, both: int, first: int, second: int) -> float:
    """Compute the probability that ``hits`` or more of ``both`` events fall on the first of two samples."""
    return min(1.0, float(hypergeom.sf(hits - 1, first + second, both, first)))


def _choose_values(first: Sequence[Hashable], second: Sequence[Hashable]) -> tuple[Event, str]:
    """Choose the values that the first sample has more often, or all but those that it has less often."""
    ours, theirs = Counter(first), Counter(second)
    share = {value: ours[value] / len(first) - theirs[value] / len(second) for value in {*ours, *theirs}}
    more = frozenset(value for value, difference in share.items() if difference > 0)
    less = frozenset(value for value, difference in share.items() if difference < 0)
    # Values that neither half has may come too: they belong to the side that has more single values.
    singles = [sum(count == 1 for count in counts.values()) for counts in (ours, theirs)]
    if singles[0] > singles[1]:
        return (lambda value: value not in less), "any other value"
    return (lambda value: value in more), f"one of {len(more)} values" if len(more) != 1 else "one value"


def _choose_range(first: Float64, second: Float64) -> tuple[Event, str]:
    """Choose the range above or below a number that separates the samples best."""
    cuts = np.unique(np.concatenate([first, second]))
    below = [np.searchsorted(np.sort(sample), cuts, "left") for sample in (first, second)]
    difference = below[1] / len(second) - below[0] / len(first)
    best = int(np.argmax(np.abs(difference)))
    cut = float(cuts[best])
    if difference[best] >= 0:
        return (lambda value: value >= cut), f"{cut:g} or more"
    return (lambda value: value < cut), f"less than {cut:g}"


PRICES = ("tokens", "epsilon_bound", "epsilon_pure", "delta")
"""Fields of ``privacy`` that may differ between records."""
_RowPairs = list[tuple[Row, Row]]


@dataclass(frozen=True)
class Difference:
    """Result of one test of two documents.

    ``feature``: differs between the documents. ``what``: the comparison, for people. ``about``: exposure that shows
    this feature; None if none does. ``allowed``: exposures that explain a difference. ``is_specific``: a difference
    reveals more about the text than its length.
    """

    feature: str
    what: str
    about: Exposure | None
    allowed: Shown
    contrast: Contrast
    is_specific: bool = True


@dataclass(frozen=True)
class CanaryRun:
    """Outputs of both tables, drawn with one mechanism over a vocabulary of ``size`` words.

    ``is_blind``: the mechanism draws from one law for every symbol, so that texts can differ only by their structure.
    """

    first: CanaryOutput
    second: CanaryOutput
    is_blind: bool
    size: int


def compare_run(inputs: Inputs, run: CanaryRun) -> Iterator[Difference]:
    """Compare the documents of every pair.

    Texts are compared if only structure can distinguish them: under a blind mechanism, and for pairs with the same
    hidden words. Other words are left to the audit of the mechanism.
    """
    ids = inputs.ids
    for index, pair in enumerate(inputs.pairs):
        numbers = range(index, len(inputs.marks), len(inputs.pairs))  # the records with copies of the pair
        first, second = ([side.rows.get(ids[number]) for number in numbers] for side in (run.first, run.second))
        marks = frozenset(inputs.marks[number] for number in numbers)
        released = [(left, right) for left, right in zip(first, second, strict=True) if left and right]
        yield from _compare_presence(pair, first, second)
        yield from _compare_prices(pair, released)
        if run.is_blind or pair.keeps_words:
            texts = [text for text in (*pair.first, *pair.second) if isinstance(text, str)]
            words = frozenset(word for text in texts for word in find_words(text))
            yield from _compare_texts(pair, released, words | marks)
        yield from _compare_noise(pair, released, marks)
        if run.is_blind and pair.feature == "length":
            yield from _compare_ids(released, run.size)


def _compare_presence(pair: DocumentPair, first: list[Row | None], second: list[Row | None]) -> Iterator[Difference]:
    """Test whether records are present, and whether they were released."""
    there = [[row is not None for row in side] for side in (first, second)]
    yield from _both_ways(pair, "whether there is a row", frozenset(), *there)
    status = [[row.status for row in side if row] for side in (first, second)]
    yield from _both_ways(pair, "status and reason", frozenset({Exposure.PRESENCE}), *status)


def _compare_prices(pair: DocumentPair, rows: _RowPairs) -> Iterator[Difference]:
    prices = [
        [tuple((row.privacy or {}).get(name) for name in PRICES) for row in side if row.texts is not None]
        for side in _sides(rows)
    ]
    for difference in _both_ways(pair, "the price", pair.shows & PRICE_SHOWS, *prices):
        yield replace(difference, is_specific=False)


def _sides(rows: _RowPairs) -> tuple[list[Row], list[Row]]:
    return [first for first, _ in rows], [second for _, second in rows]


def _compare_texts(pair: DocumentPair, rows: _RowPairs, words: frozenset[str]) -> Iterator[Difference]:
    texts = [[row.texts for row in side if row.texts is not None] for side in _sides(rows)]
    counts = [{(count_words(row), *(len(find_words(text)) for text in row)) for row in side} for side in texts]
    # The number of words shows all that follows from it.
    follows = frozenset({Exposure.LENGTH}) if counts[0] != counts[1] else frozenset()
    for observable in TEXT_OBSERVABLES:
        allowed = pair.shows & (observable.shows | follows)
        values = [[observable.measure(row, words) for row in side] for side in texts]
        for difference in _both_ways(pair, observable.name, allowed, *values, is_ordered=observable.is_ordered):
            yield replace(difference, is_specific=observable.is_specific)


def _both_ways(
    pair: DocumentPair,
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


def _compare_noise(pair: DocumentPair, rows: _RowPairs, marks: frozenset[str]) -> Iterator[Difference]:
    """Test whether two versions of a record share noise: more words in common than those of two records."""
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

    A blind draw of one word or more repeats another one with a probability of at most 1 / ``size``.
    """
    for side in _sides(rows):
        texts = [row.texts for row in side if row.texts is not None]
        equal = [first == second for first, second in zip(texts[::2], texts[1::2], strict=False)]
        if equal:
            hits, draws = sum(equal), len(equal)
            contrast = Contrast("equal outputs", (hits, 0), (draws, 0), float(binom.sf(hits - 1, draws, 1 / size)))
            yield Difference("ids", "outputs of two records with one text", None, frozenset(), contrast)
