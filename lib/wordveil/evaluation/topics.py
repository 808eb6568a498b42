"""Terms and topics of sanitised texts beside those of their originals, as `wordveil analytics` finds them in a release.

Terms are compared by their counts. Topics are lists of terms, and those of a release are matched with those of the
original so that they share as many terms as possible (Kuhn 1955, the Hungarian method, by SciPy). They are those of
latent Dirichlet allocation (Blei, Ng, Jordan 2003), here by scikit-learn and in memory, so that no word of an original
is written to a scratch directory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from wordveil.arrays import Int64
from wordveil.evaluation.classifiers import cut_words, load_package
from wordveil.scores.score import Measurement, Score

TERMS, TOPICS = "terms", "topics"
COUNTS, LDA = "counts", "lda"
TOP, RANKED = 100, 10_000
"""Numbers of terms that the overlap and the rank correlation cover."""


@dataclass(frozen=True)
class TermAgreement:
    """Agreement of the terms of two texts.

    ``overlap``: Jaccard's index of the most frequent terms: terms in both lists over terms in either; None without
    terms. ``rank_correlation``: Spearman's correlation of the counts of the original's most frequent terms; None if the
    counts of either are all equal. ``variation``: total variation distance of the two distributions of terms: half the
    sum of the differences of shares, from 0 if equal to 1 if disjoint; None if either has no term. ``ranked``,
    ``terms``: numbers of terms that the rank correlation covers, and that occur in either text.
    """

    overlap: float | None
    rank_correlation: float | None
    variation: float | None
    ranked: int
    terms: int


def correlate_ranks(original: Int64, released: Int64) -> float | None:
    """Compute Spearman's correlation of two counts of the same terms, int64 ``(terms,)``; None if one is constant."""
    if len(original) < 2 or np.ptp(original) == 0 or np.ptp(released) == 0:
        return None
    from scipy import stats  # takes longer to load than the rest of a command

    return float(stats.spearmanr(original, released).statistic)


def compare_terms(
    original: Sequence[str], released: Sequence[str], top: int = TOP, ranked: int = RANKED
) -> TermAgreement:
    """Compare the terms of texts in memory; the alphabet decides between equally frequent ones."""
    words = [cut_words(texts).words for texts in (original, released)]
    terms = pc.unique(pa.concat_arrays(words))
    terms = terms.take(pc.sort_indices(terms))
    before, after = (
        np.bincount(pc.index_in(part, terms).to_numpy().astype(np.int64), minlength=len(terms)) for part in words
    )
    orders = [np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)] for counts in (before, after)]
    own, theirs = ({*order[:top].tolist()} for order in orders)
    overlap = len(own & theirs) / len(own | theirs) if own or theirs else None
    variation = None
    if before.any() and after.any():
        variation = float(np.abs(before / before.sum() - after / after.sum()).sum() / 2)
    most = orders[0][:ranked]
    return TermAgreement(overlap, correlate_ranks(before[most], after[most]), variation, len(most), len(terms))


def make_term_scores(agreement: TermAgreement, subject: str) -> list[Score]:
    """Make the figures of a release's terms, which are exact."""
    measurement = Measurement(subject, TERMS, COUNTS)
    return [
        measurement.make_score(
            "top-overlap",
            agreement.overlap,
            None,
            agreement.terms,
            "Jaccard's index of the most frequent terms of the release and of the original.",
        ),
        measurement.make_score(
            "rank-correlation",
            agreement.rank_correlation,
            None,
            agreement.ranked,
            "Spearman's correlation of how often the original's most frequent terms occur in the release and in the "
            "original.",
            chance=0.0,
        ),
        measurement.make_score(
            "total-variation",
            agreement.variation,
            None,
            agreement.terms,
            "Half the sum of the differences of the terms' shares: 0 where all are as frequent as in the original, 1 "
            "where no term is left.",
            higher_is_better=False,
        ),
    ]


@dataclass(frozen=True)
class TopicMatch:
    """Numbers of each topic of the original and of the release's topic that matches it, with their overlaps.

    An overlap is the share of the original topic's terms in the other one.
    """

    pairs: tuple[tuple[int, int], ...]
    overlaps: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        return float(np.mean(self.overlaps)) if self.overlaps else None


def match_topics(original: Sequence[Sequence[str]], released: Sequence[Sequence[str]]) -> TopicMatch:
    """Match topics so that the sum of their overlaps is the largest possible.

    ``original``, ``released``: the terms of each topic, none empty. If the release has fewer topics, a topic without a
    partner has the overlap 0, and its number is paired with -1.
    """
    if not len(original):
        return TopicMatch((), ())
    overlaps = np.array([[len(set(topic) & set(other)) / len(set(topic)) for other in released] for topic in original])
    rows, columns = linear_sum_assignment(overlaps.reshape(len(original), len(released)), maximize=True)
    partner = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    pairs = tuple((number, partner.get(number, -1)) for number in range(len(original)))
    return TopicMatch(pairs, tuple(float(overlaps[topic, other]) if other >= 0 else 0.0 for topic, other in pairs))


def make_topic_score(match: TopicMatch, subject: str, note: str = "") -> Score:
    """Make the figure of a release's topics."""
    definition = (
        "The mean share of a topic's terms with the highest weights in the original that the matching topic of the "
        "release has; topics by latent Dirichlet allocation (Blei, Ng, Jordan 2003), matched by the Hungarian method."
    )
    return Measurement(subject, TOPICS, LDA).make_score(
        "topic-overlap", match.mean, None, len(match.pairs), definition, note=note
    )


ORIGINAL = "original"
VOCABULARY, MIN_DOCUMENTS, SHOWN = 10_000, 2, 10
"""Number of terms that topics use, least number of texts with each, and number of terms shown."""
_ROUNDS = 20


def find_topics(texts: Sequence[str], topics: int, seed: int, stop_words: Sequence[str] = ()) -> list[list[str]]:
    """Find the terms with the largest weights of each topic; deterministic for given texts and seed.

    ``topics``: their number, at least 1; fewer if fewer texts have terms. ``stop_words``: left out, in lower case.
    Empty if no term is in :data:`MIN_DOCUMENTS` texts. Raises :class:`PlatformError` if scikit-learn is not installed.
    """
    decomposition = load_package("sklearn.decomposition")
    terms, counts = _count_terms(texts, stop_words)
    counts = counts[counts.sum(axis=1) > 0]
    if not counts.shape[0]:
        return []
    model = decomposition.LatentDirichletAllocation(
        min(topics, counts.shape[0]), max_iter=_ROUNDS, random_state=seed
    ).fit(counts)
    best = np.argsort(-model.components_, axis=1, kind="stable")[:, :SHOWN]
    return [terms.take(pa.array(row)).to_pylist() for row in best]


def _count_terms(texts: Sequence[str], stop_words: Sequence[str]) -> tuple[pa.StringArray, csr_array]:
    """Count terms, the most frequent first, in each text: ``(texts, terms)``."""
    words = cut_words(texts)
    is_term = pc.invert(pc.is_in(words.words, pa.array(stop_words, pa.string()))).to_numpy(zero_copy_only=False)
    coded = words.words.filter(pa.array(is_term)).dictionary_encode()
    cells = (words.text_of[is_term], coded.indices.to_numpy().astype(np.int64))
    counts = csr_array((np.ones(len(coded)), cells), shape=(len(words), len(coded.dictionary)))
    counts.sum_duplicates()
    documents = np.bincount(counts.indices, minlength=counts.shape[1])
    order = np.lexsort((pc.rank(coded.dictionary).to_numpy(), -np.asarray(counts.sum(axis=0)).ravel()))
    chosen = order[documents[order] >= MIN_DOCUMENTS][:VOCABULARY]
    return coded.dictionary.take(pa.array(chosen)), counts[:, chosen]


def measure_terms(
    originals: Sequence[str],
    released: Sequence[str],
    subject: str,
    seed: int,
    topics: int = 5,
    stop_words: Sequence[str] = (),
) -> list[Score]:
    """Compare the terms and topics of sanitised texts with those of their originals.

    ``seed``: for the topics. The original's topics are also found with the next seed: the overlap of these two, with
    the subject ``original``, is about the most that a release can reach. ``topics``: their number; 0 compares only
    terms. ``stop_words``: words that no topic has, in lower case. Returns ``top-overlap``, ``rank-correlation`` and
    ``total-variation`` of terms, and ``topic-overlap`` twice, of the release and of the original. Raises
    :class:`PlatformError` if scikit-learn is not installed.
    """
    scores = make_term_scores(compare_terms(originals, released), subject)
    if not topics:
        return scores
    first, again, other = (
        find_topics(texts, topics, topic_seed, stop_words)
        for texts, topic_seed in ((originals, seed), (originals, seed + 1), (released, seed))
    )
    most = make_topic_score(match_topics(first, again), ORIGINAL, "Topics of the original under two seeds.")
    return [*scores, make_topic_score(match_topics(first, other), subject), most]
