"""Terms and topics of sanitised texts beside those of their originals, as `wordveil analytics` finds them in a release.

Topics are those of latent Dirichlet allocation (Blei, Ng, Jordan 2003), here by scikit-learn and in memory, so that no
word of an original is written to a scratch directory.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from wordveil.evaluation.packages import load_package
from wordveil.evaluation.utility.terms import compare_terms, make_term_scores, make_topic_score, match_topics
from wordveil.evaluation.utility.words import cut_words
from wordveil.scores.score import Score

ORIGINAL = "original"
VOCABULARY, MIN_DOCUMENTS, SHOWN = 10_000, 2, 10
"""How many of the most frequent terms topics use, in how many texts each occurs at least, and how many are shown."""
_ROUNDS = 20


def find_topics(texts: Sequence[str], topics: int, seed: int, stop_words: Sequence[str] = ()) -> list[list[str]]:
    """Find the terms with the largest weights of each topic; the same for the same texts and seed.

    Empty if no term is in :data:`MIN_DOCUMENTS` texts.

    ``topics``: their number, at least 1; fewer if fewer texts have terms. ``stop_words``: left out, in lower case.
    Raises :class:`PlatformError` if scikit-learn is not installed.
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

    ``originals``, ``released``: the texts. ``subject``: as in :class:`wordveil.scores.score.Score`. ``seed``: of the
    topics. The original's topics are also found with the next seed: the overlap of these two, with the subject
    ``original``, is about the most that a release can reach. ``topics``: how many; 0 compares only terms.
    ``stop_words``: words that no topic has, in lower case.

    Returns
    -------
    list of Score
        ``top-overlap``, ``rank-correlation`` and ``total-variation`` of terms, and ``topic-overlap`` twice, of the
        release and of the original.

    Raises
    ------
    PlatformError
        where scikit-learn is not installed.
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
