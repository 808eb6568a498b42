"""Compare the outputs of two tables of made documents: what shows of the features in which the documents differ."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace

from scipy.stats import binom

from wordveil.audit.canaries.contrast import Contrast, find_contrast
from wordveil.audit.canaries.documents import Pair, Shown
from wordveil.audit.canaries.observables import (
    PRICE_SHOWS,
    TEXT_OBSERVABLES,
    Row,
    count_words,
    find_words,
)
from wordveil.audit.canaries.tables import Inputs, Output
from wordveil.audit.canaries.words import MARK_LETTERS
from wordveil.privacy.relations import Exposure

_PRICES = ("tokens", "epsilon_bound", "epsilon_pure", "delta")


@dataclass(frozen=True)
class Difference:
    """What one test of two documents found.

    Attributes
    ----------
    feature
        in what the documents differ.
    what
        what was compared, for people.
    about
        the exposure that shows this feature; None where none does.
    allowed
        the exposures that explain a difference.
    contrast
        the test.
    is_specific
        whether a difference says more of the text than how long it is.
    """

    feature: str
    what: str
    about: Exposure | None
    allowed: Shown
    contrast: Contrast
    is_specific: bool = True


@dataclass(frozen=True)
class Run:
    """The outputs of both tables, drawn with one mechanism.

    Attributes
    ----------
    one, other
        the outputs.
    is_blind
        whether the mechanism draws the same law for every symbol, so that texts can differ only by their structure.
    size
        the words of the vocabulary.
    """

    one: Output
    other: Output
    is_blind: bool
    size: int


def compare_run(inputs: Inputs, run: Run) -> Iterator[Difference]:
    """Compare the documents of every pair.

    Texts are compared where nothing but structure can part them: under a blind mechanism, and for pairs with the same
    hidden words. The words themselves are the mechanism's matter.
    """
    ids = inputs.ids
    for place, pair in enumerate(inputs.pairs):
        numbers = inputs.records_of(place)
        one, other = ([side.rows.get(ids[number]) for number in numbers] for side in (run.one, run.other))
        marks = frozenset(inputs.marks[number] for number in numbers)
        rows = [(first, second) for first, second in zip(one, other, strict=True) if first and second]
        yield from _compare_presence(pair, one, other)
        yield from _compare_prices(pair, rows)
        if run.is_blind or pair.keeps_words:
            yield from _compare_texts(pair, rows, _words_of(pair) | marks)
        yield from _compare_noise(pair, rows, marks)
        if run.is_blind:
            yield from _compare_ids(pair, rows, run.size)


def _words_of(pair: Pair) -> frozenset[str]:
    """The words of both documents, in lower case."""
    texts = [text for text in (*pair.one, *pair.other) if isinstance(text, str)]
    return frozenset(word for text in texts for word in find_words(text))


def _compare_presence(pair: Pair, one: list[Row | None], other: list[Row | None]) -> Iterator[Difference]:
    """Whether records are there, and whether they were released."""
    there = [[row is not None for row in side] for side in (one, other)]
    yield from _both_ways(pair, "whether there is a row", frozenset(), *there)
    status = [[row.status for row in side if row] for side in (one, other)]
    yield from _both_ways(pair, "status and reason", frozenset({Exposure.PRESENCE}), *status)


def compare_admitted(inputs: Inputs, one: Collection[str], other: Collection[str]) -> Iterator[Difference]:
    """Compare which records of each table meet the condition on the input: ``one`` and ``other`` are their ids."""
    ids = inputs.ids
    for place, pair in enumerate(inputs.pairs):
        sides = [[ids[number] in some for number in inputs.records_of(place)] for some in (one, other)]
        renamed = replace(pair, feature="condition")
        yield from _both_ways(renamed, f"whether it is read ({pair.feature})", frozenset({Exposure.CONDITION}), *sides)


def _compare_prices(pair: Pair, rows: list[tuple[Row, Row]]) -> Iterator[Difference]:
    prices = [[_price_of(row) for row in side if row.texts is not None] for side in _sides(rows)]
    found = _both_ways(pair, "the price", pair.shows & PRICE_SHOWS, *prices)
    yield from (replace(one, is_specific=False) for one in found)


def _price_of(row: Row) -> Hashable:
    return tuple((row.privacy or {}).get(name) for name in _PRICES)


def _sides(rows: list[tuple[Row, Row]]) -> tuple[list[Row], list[Row]]:
    return [one for one, _ in rows], [other for _, other in rows]


def _compare_texts(pair: Pair, rows: list[tuple[Row, Row]], words: frozenset[str]) -> Iterator[Difference]:
    texts = [[row.texts for row in side if row.texts is not None] for side in _sides(rows)]
    counts = [{(count_words(text), *(len(find_words(one)) for one in text)) for text in side} for side in texts]
    # Where the number of words shows, so does whatever follows from it.
    follows = frozenset({Exposure.LENGTH}) if counts[0] != counts[1] else frozenset()
    for observable in TEXT_OBSERVABLES:
        allowed = pair.shows & (observable.shows | follows)
        values = [[observable.measure(text, words) for text in side] for side in texts]
        found = _both_ways(pair, observable.name, allowed, *values, is_ordered=observable.is_ordered)
        yield from (replace(one, is_specific=observable.is_specific) for one in found)


def _both_ways(
    pair: Pair,
    what: str,
    allowed: Shown,
    one: Sequence[Hashable],
    other: Sequence[Hashable],
    *,
    is_ordered: bool = False,
) -> Iterator[Difference]:
    """Test for events that the first document has more often, and for those that the second one has."""
    ways = ((one, other),) if is_ordered else ((one, other), (other, one))
    for first, second in ways:
        contrast = find_contrast(first, second, is_ordered=is_ordered)
        if contrast is not None:
            yield Difference(pair.feature, what, pair.about, allowed, contrast)


def _compare_noise(pair: Pair, rows: list[tuple[Row, Row]], marks: frozenset[str]) -> Iterator[Difference]:
    """Whether two versions of a record share noise: whether their outputs have more words in common than those of two
    records.
    """
    both = [(one, other) for one, other in rows if one.texts is not None and other.texts is not None]
    unchanged = all(one.texts == other.texts and one.tag == other.tag for one, other in both)
    if not both or (unchanged and not pair.is_redrawn):
        return  # what is drawn depends on neither version
    # Every output is in one of the samples, so that the samples are independent.
    versions, rest = both[::2], both[1::2]
    strangers = [(one, other) for (one, _), (_, other) in zip(rest, rest[1:] + rest[:1], strict=True)]
    matches = [[_count_matches(*two, marks) for two in some] for some in (versions, strangers)]
    contrast = find_contrast(*matches, is_ordered=True)
    if contrast is not None:
        what = f"words that two versions of a record have in common ({pair.feature})"
        yield Difference("noise", what, None, frozenset(), contrast)


def _count_matches(one: Row, other: Row, marks: frozenset[str]) -> int:
    """In how many places two outputs have the same word, but for words that were made for one record."""
    texts = zip(one.texts or (), other.texts or (), strict=True)
    words = [zip(find_words(first), find_words(second), strict=False) for first, second in texts]
    return sum(a == b and a[:MARK_LETTERS] not in marks for column in words for a, b in column)


def _compare_ids(pair: Pair, rows: list[tuple[Row, Row]], size: int) -> Iterator[Difference]:
    """Whether records with one text share noise. A blind draw of one word or more repeats another one with a
    probability of at most one over the words of the vocabulary.
    """
    if pair.feature != "length":
        return
    for side in _sides(rows):
        texts = [row.texts for row in side if row.texts is not None]
        equal = [one == other for one, other in zip(texts[::2], texts[1::2], strict=False)]
        if equal:
            hits, draws = sum(equal), len(equal)
            p_value = float(binom.sf(hits - 1, draws, 1 / size))
            contrast = Contrast("equal outputs", hits, 0, (draws, 0), p_value)
            yield Difference("ids", "outputs of two records with one text", None, frozenset(), contrast)
