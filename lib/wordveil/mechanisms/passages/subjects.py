"""Subjects: public passages clustered by what they are about, and what each cluster means.

A text's point has two parts. *Vectors*: the sum of word vectors weighted by ``a / (a + p)``, with the passages' mean
and common directions taken out (SIF: Arora, Liang, Ma 2017). *Passages*: latent semantic analysis of the passages
themselves (Deerwester et al. 1990), with such weights in place of a list of stop-words, and without the passages' mean.
Both are linear in a text's bag of words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from wordveil.arrays import Bool, Float32, Float64, Int32, Int64
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.base import Topics
from wordveil.mechanisms.inputs import PublicPassages
from wordveil.mechanisms.passages.encoder import PARTS, SumEncoder, find_nearest
from wordveil.mechanisms.passages.model import ModelEncoder
from wordveil.neighbours.blocks import BuildContext, start_threads
from wordveil.neighbours.clusters import build_partition, sum_clusters, whole_directions
from wordveil.scores.methods import find_model

KEYWORDS = 10
"""Number of words that tell what a subject is about."""
# These constants were chosen on 20 newsgroups and Snips. Their accuracies at a loss of 8, with 64 subjects, are given
# below in this order. The other corpora of research/results/passages.json had no part in the choice.
# Frequency at which a word of the vectors counts half. Vectors alone, of the field: .387 and .629 at Arora's 1e-3, .410
# and .665 at 1e-4, .415 and .578 at 1e-5.
_HALF = 1e-4
# Dimensions for each direction that all passages share, left out as by Mu and Viswanath 2018. WordNet's, 200 subjects,
# frequency 3e-5: .287 and .560 with 1 left out of 100, .298 and .563 with 5.
_PER_COMMON = 20
# Directions of the latent semantic analysis: .566 and .879 with 100, .573 and .890 with 60, at a frequency of 1e-3. The
# fewest passages of a word that enters it.
_DIRECTIONS, _FEWEST = 60, 2
_FEWEST_SHARED = 3
# Frequency at which a word counts half in the analysis, which weighs by rarity as well: .573 and .890 at 1e-3, .584 and
# .896 at 4e-4.
_HALF_ANALYSED = 4e-4
# Power of its length in the analysis that a word is divided by. At 0 words of many passages are far longer than others,
# at 1 rare words, which are mostly noise, are as long: .554, .584, .581 and .870, .869, .826 at 0, 1/2, 1.
_EVENED = 0.5
_LARGEST = 2**15 - 1
_TOGETHER = 256  # texts that a model reads between two reports of progress


@dataclass(frozen=True)
class Subjects:
    """Encoder of texts, and the meaning of its symbols.

    ``sizes``: int64 ``(symbols,)``, passages of each. ``lacking``: subjects with no passage that may be written.
    """

    encoder: SumEncoder | ModelEncoder
    topics: Topics
    sizes: Int64
    lacking: int

    @property
    def spread(self) -> tuple[float, float]:
        """Largest share of the passages in one subject, and the effective number of subjects (exp of the entropy)."""
        shares = self.sizes[self.sizes > 0] / self.sizes.sum()
        return float(shares.max()), float(np.exp(-(shares * np.log(shares)).sum()))


def find_subjects(
    embedding: Embedding,
    frequencies: Float64,
    passages: PublicPassages,
    clusters: int,
    encoder: str,
    *,
    keywords: bool,
    work: BuildContext,
) -> Subjects:
    """Cluster public passages, and build the encoder that finds the cluster of any text.

    ``frequencies``: float64 ``(size,)``, public. ``encoder``: its name. ``keywords``: write each subject's most telling
    words instead of a passage. Raises :class:`BundleError` if there are too few passages, and
    :class:`wordveil.errors.PlatformError` if the encoder is a model that is missing.
    """
    counts = _count_words(passages, embedding.size)
    weights = _HALF / (_HALF + frequencies)
    if (found := passages.read.get((encoder, keywords))) is None:
        if find_model(encoder):
            offered = passages.texts.slice(0, 0) if keywords else passages.texts
            found = _read_by_model(ModelEncoder.load(encoder), passages.whole, offered, work)
        else:
            work.progress("measuring what the words of passages are about")
            found = _read_by_sums(encoder, embedding.vectors, frequencies, counts, passages)
        passages.read[encoder, keywords] = found
    points = found.points
    known_rows = np.flatnonzero((points != 0).any(axis=1))
    if len(known_rows) < 2 * clusters:
        raise BundleError(
            f"mechanism.clusters = {clusters}: there are {len(known_rows):,} passages with known words, and at least "
            f"two for each cluster are needed. Set at most {len(known_rows) // 2}, or name more passages."
        )
    work.progress("clustering passages by subject")
    labels, centres = _cluster(points, known_rows, clusters, work)
    sizes = np.bincount(labels[known_rows], minlength=clusters)
    telling = _find_keywords(counts, labels, clusters, weights, embedding.words)
    texts, lacking = (telling, 0) if keywords else _choose_passages(found.offered, centres, passages)
    shares = (sizes + 0.5) / (sizes + 0.5).sum()
    topics = Topics(_distinguish(texts), telling, shares)
    return Subjects(replace(found.encoder, centres=centres), topics, sizes, lacking)


@dataclass(frozen=True)
class _ReadPassages:
    """Passages as an encoder reads them, whose centres are not known.

    ``points``: float32 ``(passages, n)``, zeros for those that are not read. ``offered``: float32 ``(texts, n)``, of
    those that may be written.
    """

    encoder: SumEncoder | ModelEncoder
    points: Float32
    offered: Float32


def _read_by_sums(
    encoder: str, embedded: Float32, frequencies: Float64, counts: sparse.csr_matrix, passages: PublicPassages
) -> _ReadPassages:
    made = {
        "vectors": lambda: _weigh_vectors(embedded, _HALF / (_HALF + frequencies), counts),
        "passages": lambda: _analyse(counts, _HALF_ANALYSED / (_HALF_ANALYSED + frequencies)),
    }
    with start_threads(1):  # sums of more threads are rounded in another order
        columns = [made[part]() for part in PARTS[encoder]]
    vectors = np.hstack([_quantise(part) for part in columns])
    if "vectors" not in PARTS[encoder]:
        # No direction of the analysis has such a word, and a text of these alone is about nothing that is known.
        vectors[~_find_shared(counts)] = 0
    sums = SumEncoder(vectors, np.empty((0, vectors.shape[1]), np.float32), tuple(part.shape[1] for part in columns))
    points, _ = sums.locate(passages.ids, passages.offsets)
    return _ReadPassages(sums, points, sums.locate(passages.text_ids, passages.text_offsets)[0])


def _read_by_model(
    encoder: ModelEncoder, passages: pa.StringArray, offered: pa.StringArray, work: BuildContext
) -> _ReadPassages:
    """Read each text once: most passages are among those that may be written."""
    work.progress("reading passages with the sentence model")
    texts = pa.concat_arrays([passages, offered]).dictionary_encode()
    points, count = [], len(texts.dictionary)
    for start in range(0, count, _TOGETHER):
        points.append(encoder.locate(texts.dictionary.slice(start, _TOGETHER)))
        work.steps(min(start + _TOGETHER, count), count)
    places, total = np.asarray(texts.indices), len(passages)
    joined = np.concatenate(points)
    return _ReadPassages(encoder, joined[places[:total]], joined[places[total:]])


def _count_words(passages: PublicPassages, size: int) -> sparse.csr_matrix:
    """Count the words of passages: ``(passages, size)``."""
    values = np.ones(len(passages.ids))
    # A copy: duplicates are added up in place.
    table = sparse.csr_matrix((values, passages.ids.copy(), passages.offsets.copy()), (len(passages), size))
    table.sum_duplicates()
    return table


def _weigh_vectors(vectors: Float32, weights: Float64, counts: sparse.csr_matrix) -> Float64:
    """Weigh word vectors, and take out the passages' mean and common directions: ``(size, n)``."""
    weighed, means = _centre(weights[:, None] * vectors.astype(np.float64), counts)
    width = vectors.shape[1]
    common = np.linalg.eigh(means.T @ means)[1][:, width - width // _PER_COMMON :]
    return np.asarray(weighed - (weighed @ common) @ common.T)


def _centre(weighed: Float64, counts: sparse.csr_matrix) -> tuple[Float64, Float64]:
    """Take the mean of the passages out of the vectors of words; return these, and what is left of each passage."""
    means = np.asarray(counts @ weighed) / np.maximum(np.asarray(counts.sum(axis=1)).reshape(-1, 1), 1)
    mean = means.mean(axis=0)
    return weighed - mean, means - mean


def _find_shared(counts: sparse.csr_matrix) -> Bool:
    """Find the words that enough passages share to be analysed: bool ``(size,)``."""
    return np.asarray((counts > 0).sum(axis=0)).ravel() >= _FEWEST


def _analyse(counts: sparse.csr_matrix, weights: Float64) -> Float64:
    """Compute each word's place in the directions of a latent semantic analysis of passages: ``(size, n)``.

    Raises :class:`BundleError` if the passages have too few words in common.
    """
    total, size = counts.shape
    found = np.asarray((counts > 0).sum(axis=0)).ravel()
    shared = np.flatnonzero(_find_shared(counts))
    if min(total, len(shared)) < _FEWEST_SHARED:
        raise BundleError(
            f"mechanism.encoder: {total:,} passages have {len(shared):,} words in common, too few to learn from. Name "
            "more passages, or set encoder: vectors."
        )
    rarity = (np.log((1 + total) / (1 + found[shared])) + 1) * weights[shared]
    scaled = counts[:, shared]
    scaled.data = 1 + np.log(scaled.data)
    scaled = sparse.csr_matrix(scaled @ sparse.diags_array(rarity))
    lengths = np.sqrt(np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel())
    scaled = sparse.csr_matrix(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ scaled)
    smaller = min(scaled.shape)
    directions = svds(scaled, min(_DIRECTIONS, smaller - 1), v0=np.ones(smaller))[2].T
    spread = np.linalg.norm(directions, axis=1) ** _EVENED
    evened = np.zeros((size, directions.shape[1]))
    evened[shared] = directions * np.divide(rarity, spread, out=np.zeros(len(shared)), where=spread > 0)[:, None]
    return _centre(evened, counts)[0]


def _quantise(part: Float64) -> NDArray[np.int16]:
    """Bring the vectors of words to 16-bit whole numbers of one scale."""
    largest = float(np.abs(part).max()) or 1.0
    return np.rint(part * (_LARGEST / largest)).astype(np.int16)


def _cluster(points: Float32, rows: Int64, clusters: int, work: BuildContext) -> tuple[Int32, Float32]:
    """Cluster the points of ``rows``: labels of all points, -1 for others, and whole centres."""
    chosen = points[rows]
    weights = np.ones(len(rows), np.int64)
    quiet = replace(work, progress=lambda _: None)  # it speaks of words
    hierarchy = build_partition(chosen, weights, [clusters, 1], 1, quiet)
    inner = np.empty(len(rows), np.int32)
    inner[hierarchy.order] = np.repeat(np.arange(clusters, dtype=np.int32), np.diff(hierarchy.bounds[0]))
    centres = np.empty((clusters, points.shape[1]), np.float32)
    whole_directions(sum_clusters(chosen, inner, clusters), centres)
    labels = np.full(len(points), -1, np.int32)
    # The cluster of a passage is that of any other text with its words.
    labels[rows] = find_nearest(chosen, centres)[0]
    return labels, centres


def _choose_passages(points: Float32, centres: Float32, passages: PublicPassages) -> tuple[pa.StringArray, int]:
    """Choose for each centre its nearest text, of its own subject if there is one; each text once.

    ``points``: float32 ``(texts, n)``, of the texts that may be written. Also returns the number of subjects that have
    none.
    """
    clusters = len(centres)
    if len(passages.texts) < clusters:
        raise BundleError(
            f"mechanism.clusters = {clusters}: {len(passages.texts):,} passages may be written, which name nobody and "
            "no number, and each cluster needs one. Name more passages, lower it, or set mechanism.output: keywords."
        )
    labels, nearness = find_nearest(points, centres)
    has_own = np.isin(np.arange(clusters), labels)
    chosen, is_free = np.empty(clusters, np.int64), np.ones(len(points), np.bool_)
    for cluster in np.argsort(~has_own, kind="stable").tolist():
        allowed = is_free & (labels == cluster) if has_own[cluster] else is_free
        scores = nearness if has_own[cluster] else points @ centres[cluster]
        chosen[cluster] = int(np.argmax(np.where(allowed, scores, -np.inf)))
        is_free[chosen[cluster]] = False
    return passages.texts.take(pa.array(chosen)), int((~has_own).sum())


def _find_keywords(
    counts: sparse.csr_matrix, labels: Int32, clusters: int, weights: Float64, words: pa.StringArray
) -> pa.StringArray:
    """Find the most telling words of each cluster: those that are there far more often than elsewhere.

    ``weights``: float64 ``(size,)``, small for words that public text has often.
    """
    rows = np.flatnonzero(labels >= 0)
    found = (counts[rows] > 0).astype(np.float64)
    member = sparse.csr_matrix((np.ones(len(rows)), (labels[rows], np.arange(len(rows)))), (clusters, len(rows)))
    inside = (member @ found).tocsr()
    share = np.asarray(found.sum(axis=0)).ravel() / max(len(rows), 1)
    sizes = np.asarray(member.sum(axis=1)).ravel()
    telling = []
    for cluster in range(clusters):
        row = inside[[cluster]]
        ids, often = row.indices, row.data
        scores = weights[ids] * often * np.log((often / max(sizes[cluster], 1)) / share[ids])
        best = np.lexsort((ids, -scores))[:KEYWORDS]
        telling.append(" ".join(words.take(pa.array(ids[best])).to_pylist()))
    return pa.array(telling, pa.string())


def _distinguish(texts: pa.StringArray) -> pa.StringArray:
    """Return the texts with the number of an equal or empty one before it: symbols need names of their own."""
    seen: set[str] = set()
    named = []
    for number, text in enumerate(texts.to_pylist()):
        named.append(f"{number} {text}".strip() if text in seen or not text else text)
        seen.add(named[-1])
    return pa.array(named, pa.string())
