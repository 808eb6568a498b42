"""Linkage of sanitised records to their originals.

The attacker has a pool of texts, each the original of one of the records, and ranks the pool for each record
separately. A record is *linked* if its own original is ranked first.

**By laws.** If the order of words shows, an original ``x`` of the record's length has the score ``sum over positions of
ln P(y_i | x_i)``, and an original of another length, or with other copied words, is impossible. If all texts of the
pool are equally likely, this is the logarithm of the posterior probability up to a constant, so no attacker links more
records on average. Words that are drawn once for all their occurrences count once.

If the order is hidden, the exact score is the logarithm of a permanent, for which no fast algorithm is known. It is
replaced by ``sum over outputs of ln mean over i of P(y | x_i)``: exact if words are sampled (``length: sample``), an
approximation for ``output: bag``. Laws that are estimated from draws (:func:`wordveil.measures.recovery.fit_laws`) give
a lower bound.

**By vectors.** The text whose vector is nearest to the record's, by Euclidean distance: a lower bound that needs no
mechanism.

Texts of the pool with equal scores share a rank: a record whose own original is among the ``t`` best counts as ``1 /
t`` of a link, the average result of a guess among them.

**Forecast**, before anything is drawn, from the mechanism's laws and public data. Candidate originals are texts of
words drawn independently by their public frequency, all of one length. Real texts differ in more than their words:
anyone with the originals of real records links more of them, not fewer.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma

from wordveil.arrays import Float64, Int32, Int64
from wordveil.compiled import compiled
from wordveil.evaluation.encoders import SentenceEncoder
from wordveil.evaluation.redrawn import Ragged, Redrawn
from wordveil.measures.recovery import WordScores
from wordveil.mechanisms.laws import WordLaws
from wordveil.scores.counts import find_detectable, find_share_interval
from wordveil.scores.score import Group, Measurement, Score, find_mean_interval, require_pairs

TASK = "linkage"
LINKED = "linked"
"""Figure that counts records whose own original is ranked first."""
BY_LAWS, BY_FITTED_LAWS, BY_VECTORS, BY_LENGTH = "bayes", "bayes-fitted", "nearest-vector", "what-shows"

# Scores in memory at a time: 128 MiB in float64.
BLOCK_SCORES = 2**24
# Texts whose outputs' probabilities are in memory at a time.
BLOCK_TEXTS = 256
_UNIT = 2.0**32
_LEAST = 1e-300


@dataclass(frozen=True)
class Links:
    """Ranks of each record's own original in a ``pool`` of so many texts.

    ``better``, ``tied``: int64 ``(records,)``, texts with a higher score, and with an equal one, the original included.
    """

    better: Int64
    tied: Int64
    pool: int

    @property
    def hits(self) -> Float64:
        """Probability that the original is ranked first, ties broken at random: float64 ``(records,)``."""
        return np.where(self.better == 0, 1 / self.tied, 0.0)

    @property
    def reciprocal_ranks(self) -> Float64:
        """Expectation of 1 / rank, ties broken at random: float64 ``(records,)``."""
        return np.asarray((digamma(self.better + self.tied + 1) - digamma(self.better + 1)) / self.tied)


def link_by_laws(redrawn: Redrawn) -> Links:
    """Link draws to the texts by the laws of the mechanism; see the module.

    Time is proportional to the pairs of a record and a text with the same exposures, times the words of either. Raises
    :class:`ValueError` if the mechanism has no laws.
    """
    if redrawn.laws is None:
        raise ValueError(f"Expected a mechanism that draws one output for each word, got {redrawn.mechanism.name}.")
    laws = redrawn.laws.laws
    is_first = redrawn.is_first  # the tokens with a draw of their own
    offsets = np.concatenate([[0], np.cumsum(is_first)])[redrawn.hidden.offsets]
    hidden, drawn = Ragged(redrawn.hidden.ids[is_first], offsets), Ragged(redrawn.drawn[is_first], offsets)
    texts = _fill_empty(redrawn.whole, redrawn.size + 1) if redrawn.is_sampled else hidden
    scorer = _OrderedScorer(laws, drawn, texts) if redrawn.shows_order else _BagScorer(laws, drawn, texts)
    ranks = np.empty((2, len(texts)), np.int64)
    for group in _split_groups(redrawn.shows):
        for rows, scores in scorer.score(group):
            ranks[:, group[rows]] = _rank(scores, np.arange(rows.start, rows.start + len(scores)))
    return Links(ranks[0], ranks[1], len(texts))


def link_by_vectors(originals: NDArray[np.floating], sanitised: NDArray[np.floating]) -> Links:
    """Link each row of ``sanitised`` to the nearest row of ``originals``: both ``(texts, dimension)``, in one order.

    Distances are Euclidean, in float64, and rounded to 2^-32 of the largest squared length, so that equal vectors tie.
    """
    pool, records = np.asarray(originals, np.float64), np.asarray(sanitised, np.float64)
    squares = np.einsum("ij,ij->i", pool, pool)
    scale = _UNIT / max(float(squares.max(initial=0)), _LEAST)
    ranks = np.empty((2, len(records)), np.int64)
    step = max(1, BLOCK_SCORES // max(len(pool), 1))
    for start in range(0, len(records), step):
        block = slice(start, min(start + step, len(records)))
        scores = np.rint((2 * records[block] @ pool.T - squares) * scale)
        ranks[:, block] = _rank(scores, np.arange(block.start, block.stop))
    return Links(ranks[0], ranks[1], len(pool))


def rank_candidates(scores: WordScores, texts: Int32, drawn: Int32) -> Links:
    """Link records to texts of their length, by position.

    ``texts``: int32 ``(pool, length)``, words. ``drawn``: int32 ``(records, length)``, outputs of the first texts.
    """
    ranks = np.empty((2, len(drawn)), np.int64)
    for block, sums in _score_by_position(scores, texts, drawn):
        ranks[:, block] = _rank(sums, np.arange(block.start, block.start + len(sums)))
    return Links(ranks[0], ranks[1], len(texts))


def link_by_what_shows(redrawn: Redrawn) -> Links:
    """Link only by the exposures besides the drawn words: the length and the copied words."""
    counts = np.bincount(redrawn.shows)[redrawn.shows]
    return Links(np.zeros_like(counts), counts, len(counts))


def measure_linkage(
    originals: Sequence[str],
    sanitised: Sequence[str],
    encoder: SentenceEncoder,
    subject: str,
    seed: int = 0,
    redrawn: Redrawn | None = None,
) -> list[Score]:
    """Measure the share of records that are linked to their originals, and the mean reciprocal rank, by attacker.

    ``redrawn``: the originals drawn again by the same bundle, for attackers with the mechanism; None leaves these out.
    Raises :class:`ValueError` if there are no texts, or the numbers differ.
    """
    require_pairs(originals, sanitised)
    links = [(BY_VECTORS, link_by_vectors(encoder.encode(originals), encoder.encode(sanitised)))]
    if redrawn is not None and len(redrawn.rows):
        links.append((BY_LENGTH, link_by_what_shows(redrawn)))
        if redrawn.laws is not None:
            links.append((BY_LAWS if redrawn.laws.is_exact else BY_FITTED_LAWS, link_by_laws(redrawn)))
    attackers = {**_ATTACKERS, BY_VECTORS: f"the text with the nearest vector, by the encoder {encoder.name}"}
    return [score for method, ranks in links for score in _summarise(ranks, method, attackers[method], subject, seed)]


_ATTACKERS = {
    BY_LENGTH: "any text that shows the same length and copied words, ignoring the words drawn",
    BY_LAWS: "the text that most probably became the record, by the mechanism's exact laws",
    BY_FITTED_LAWS: "the text that most probably became the record, by laws estimated from the mechanism's own draws",
}


def _summarise(links: Links, method: str, attacker: str, subject: str, seed: int) -> Iterator[Score]:
    measurement, count = Measurement(subject, TASK, method, Group.ATTACK), len(links.hits)
    among = f"in a pool of {links.pool:,} texts; the attacker takes {attacker}."
    yield measurement.make_score(
        LINKED,
        float(links.hits.mean()),
        find_share_interval(float(links.hits.sum()), count),
        count,
        f"Share of records whose own original is ranked first {among}",
        chance=1 / links.pool,
        higher_is_better=False,
        detectable=find_detectable(1 / links.pool, count),
    )
    yield measurement.make_score(
        "reciprocal-rank",
        float(links.reciprocal_ranks.mean()),
        find_mean_interval(links.reciprocal_ranks, seed),
        count,
        f"Mean of 1 / rank of a record's own original {among}",
        chance=float((1 / np.arange(1, links.pool + 1)).mean()),
        higher_is_better=False,
    )


def _fill_empty(texts: Ragged, unknown: int) -> Ragged:
    """Put an unknown word into each empty text, since that is what is sampled from it."""
    is_empty = texts.lengths == 0
    ids = np.insert(texts.ids, texts.offsets[:-1][is_empty], np.int32(unknown))
    return Ragged(ids, np.concatenate([[0], np.cumsum(texts.lengths + is_empty)]))


def _split_groups(labels: Int64) -> list[Int64]:
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if len(labels) else []


def _rank(scores: Int64 | Float64, own: Int64) -> Int64:
    """Count the texts that are better than that of column ``own``, and as good: int64 ``(2, records)``."""
    mine = scores[np.arange(len(own)), own][:, None]
    return np.stack([np.count_nonzero(scores > mine, axis=1), np.count_nonzero(scores == mine, axis=1)])


class _OrderedScorer:
    """Scorer of texts with as many tokens as a record, by position: multiples of 2^-32, so that ties are exact."""

    def __init__(self, laws: WordLaws, drawn: Ragged, texts: Ragged) -> None:
        self._scores = WordScores.of(laws)
        self._drawn, self._texts = drawn, texts

    def score(self, group: Int64) -> Iterator[tuple[slice, Int64]]:
        """Yield the scores of all texts of a group for some of its records at a time."""
        entries = self._texts.offsets[group][:, None] + np.arange(self._texts.lengths[group[0]])
        yield from _score_by_position(self._scores, self._texts.ids[entries], self._drawn.ids[entries])


def _score_by_position(scores: WordScores, texts: Int32, drawn: Int32) -> Iterator[tuple[slice, Int64]]:
    """Yield scores of ``texts``, int32 ``(pool, length)``, for some of the records ``drawn``, ``(records, length)``."""
    words = np.ascontiguousarray(texts.T)
    base = scores.floors[words].sum(axis=0)
    step = max(1, BLOCK_SCORES // len(texts))
    for start in range(0, len(drawn), step):
        block = slice(start, start + step)
        sums = np.tile(base, (len(drawn[block]), 1))
        _add_gains(scores.starts, scores.words, scores.gains, drawn[block], words, len(scores.floors), sums)
        yield block, sums


@compiled
def _add_gains(
    starts: Int64, words: Int32, gains: Int64, outputs: Int32, texts: Int32, symbols: int, scores: Int64
) -> None:
    """Add to ``scores``, ``(records, texts)``, the gains of ``texts``, ``(length, texts)``.

    ``outputs``: ``(records, length)``.
    """
    gained = np.zeros(symbols, np.int64)
    for record in range(len(outputs)):
        row = scores[record]
        for step in range(outputs.shape[1]):
            start, end = starts[outputs[record, step]], starts[outputs[record, step] + 1]
            for entry in range(start, end):
                gained[words[entry]] = gains[entry]
            column = texts[step]
            for text in range(len(column)):
                row[text] += gained[column[text]]
            for entry in range(start, end):
                gained[words[entry]] = 0


class _BagScorer:
    """Scorer of texts whose words were sampled: by the mean of their words' laws, whatever the order.

    A word's law is a multiple of the common law plus few entries, so ``P(output | text)``, the mean of its words' laws,
    is a sparse product plus a term of rank one.
    """

    def __init__(self, laws: WordLaws, drawn: Ragged, texts: Ragged) -> None:
        self._laws, self._drawn, self._texts = laws, drawn, texts
        shape = len(laws.shares), len(laws.common)
        self._entries = sparse.csr_array((laws.extras, laws.ids, laws.offsets), shape=shape).T.tocsr()

    def score(self, group: Int64) -> Iterator[tuple[slice, Int64]]:
        outputs, counts = self._count(self._drawn, group, len(self._laws.common))
        symbols, texts = self._count(self._texts, group, len(self._laws.shares))
        # A word is picked with its share of the text: row t of ``means`` is the law of that pick in text t.
        means = texts.multiply(1 / np.maximum(texts.sum(axis=1), 1)[:, None]).tocsr()
        # Outputs that no record of the group has add nothing to any score, so the products leave them out.
        listed = self._entries[outputs][:, symbols]
        common, shares = self._laws.common[outputs], means @ self._laws.shares[symbols]
        step = max(1, BLOCK_SCORES // len(group))
        for start in range(0, len(group), step):
            part = slice(start, start + step)
            scores = np.empty((len(group[part]), len(group)), np.int64)
            # Blocks of texts bound the memory of the dense laws. Draws are independent, so a record's score is the sum
            # of its outputs' log probabilities; rounding it to a multiple of 1 / _UNIT makes equal texts tie exactly.
            for first in range(0, len(group), BLOCK_TEXTS):
                block = slice(first, first + BLOCK_TEXTS)
                law = (listed @ means[block].T).toarray() + common[:, None] * shares[block]
                scores[:, block] = np.rint(counts[part] @ np.log(np.maximum(law, _LEAST)) * _UNIT)
            yield part, scores

    def _count(self, texts: Ragged, group: Int64, symbols: int) -> tuple[Int64, sparse.csr_array]:
        """Return the occurring symbols of a group, and their counts in each of its texts, ``(texts, occurring)``."""
        lengths = texts.lengths[group]
        ends = np.cumsum(lengths)
        entries = np.arange(ends[-1]) + np.repeat(texts.offsets[group] - ends + lengths, lengths)
        ids = texts.ids[entries]
        occurring = np.flatnonzero(np.bincount(ids, minlength=symbols))
        columns = np.searchsorted(occurring, ids)
        shape = len(group), len(occurring)
        counts = sparse.coo_array((np.ones(len(ids)), (np.repeat(np.arange(len(group)), lengths), columns)), shape)
        return occurring, counts.tocsr()


CANDIDATES = 10_000
"""Number of texts that a record may come from."""
LENGTHS = (5, 20)
"""Numbers of drawn words of the texts whose linkage is forecast."""
_HALVES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
# The standard error of a share is at most 0.025. A mechanism that searches takes up to 0.2 ms for a word, so it draws
# fewer long records: then the standard error is at most 0.07.
_RECORDS, _FEWEST, _DRAWN = 400, 50, 10_000


@dataclass(frozen=True)
class LinkageForecast:
    """Forecast of the records that the attacker links.

    ``candidates``: number of texts that a record may come from. ``linked``: share of linked records by their number of
    drawn words. ``half``: least number of drawn words at which at least half of the records are linked, among 1, 2, 3,
    4, 6, 8, 12 and so on to 512; None if fewer are linked even at 512. ``is_exact``: the attacker has the mechanism's
    own laws; with estimates it links fewer. ``typical``: drawn words of a sample's median record, if there is a sample.
    """

    candidates: int
    linked: dict[int, float]
    half: int | None
    is_exact: bool = True
    typical: int | None = None


def bound_linkage(loss: float, candidates: int) -> float:
    """Bound the probability of naming a record's original among equally likely ``candidates``, whatever is known.

    ``loss``: between any two of them, in nats. By Bayes' theorem, with each other candidate's likelihood at least
    ``exp(-loss)`` times that of the original.
    """
    return 1.0 / (1.0 + (candidates - 1) * math.exp(-loss))


class LinkageTrials:
    """Trials of linking records of a length, if the order of words shows.

    ``frequencies``: float64 ``(size,)``, frequency of draws for each word, up to a factor. ``draw``: draws outputs for
    words, int32 ``(count,)`` each, if ``laws`` are estimates; by default records are drawn by ``laws``. Figures
    do not depend on their order.
    """

    def __init__(self, laws: WordLaws, frequencies: Float64, draw: Callable[[Int32], Int32] | None = None) -> None:
        self._laws, self._scores, self._draw = laws, WordScores.of(laws), draw
        self._below = np.cumsum(frequencies) / frequencies.sum()

    def forecast(self, lengths: Sequence[int] = LENGTHS) -> LinkageForecast:
        """Forecast the shares for texts of so many drawn words, and the length from which half are linked."""
        tried = {words: self.find_linked(words) for words in lengths}
        # Longer texts are linked more often.
        index = bisect_left(_HALVES, x=True, key=lambda words: self.find_linked(words) >= 1 / 2)
        half = _HALVES[index] if index < len(_HALVES) else None
        return LinkageForecast(CANDIDATES, tried, half, is_exact=self._draw is None)

    def find_linked(self, words: int) -> float:
        """Estimate the share of linked records of so many drawn ``words``."""
        rng = np.random.Generator(np.random.PCG64([0, words]))
        uniform = rng.random((CANDIDATES, words))
        texts = np.searchsorted(self._below, uniform, side="right").astype(np.int32)
        if self._draw is None:
            drawn = _draw(self._laws, texts[:_RECORDS], rng)
        else:
            chosen = texts[: min(_RECORDS, max(_FEWEST, _DRAWN // words))]
            drawn = self._draw(chosen.ravel()).reshape(chosen.shape)
        return float(rank_candidates(self._scores, texts, drawn).hits.mean())


def _draw(laws: WordLaws, words: Int32, rng: np.random.Generator) -> Int32:
    """Draw an output of each word by its law, int32 of the same shape."""
    first, last = laws.offsets[words], laws.offsets[words + 1]
    is_listed = (rng.random(words.shape) >= laws.shares[words]) & (first < last)
    cumulative = np.cumsum(laws.common)
    drawn = np.searchsorted(cumulative, rng.random(words.shape) * cumulative[-1], side="right")
    first, last, uniform = first[is_listed], last[is_listed], rng.random(words.shape)[is_listed]
    ends = np.concatenate([[0.0], np.cumsum(laws.extras)])
    entries = np.searchsorted(ends, ends[first] + uniform * (ends[last] - ends[first]), side="right") - 1
    drawn[is_listed] = laws.ids[np.clip(entries, first, last - 1)]
    return np.asarray(drawn, np.int32)
