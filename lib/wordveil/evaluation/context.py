"""Recovery of hidden words from their outputs and from the words around them.

Tong, Chen, Yuan, Liu, Zhang, Yu, Zhang ("On the vulnerability of text sanitization", NAACL 2025) distinguish two
attackers with the mechanism: one takes each output on its own, the other reads the whole text.

**Without context** the best attacker is Bayes's, who names the word ``x`` with the largest ``p(x) P(y|x)``: exact if
the mechanism has laws.

**With context** the text is a hidden Markov model. Hidden words follow each other by a bigram model of public text
(:class:`PublicLanguage`), and each is seen through the mechanism's law. Words that the policy copies are seen as they
are. The attacker takes the likeliest sequence (Viterbi 1967), or for each position the likeliest word given the whole
text, by sums over all sequences (forward and backward; Baum, Petrie, Soules, Weiss 1970). The second recovers the most
words on average if the model is right.

All attackers have the same prior, the public frequencies of words, so the difference is due to context alone. It is a
lower bound: a larger language model may recover more. A model of another kind of text can also mislead: then less is
recovered with context than without, and the larger figure counts.

**Candidates.** For each output only the words with the largest ``p(x) P(y|x)`` are considered; a word that only its
neighbours would have suggested is lost. Words outside the vocabulary are not candidates: their positions are guessed
wrong and not counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from wordveil.arrays import Bool, Float64, Int32
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.evaluation import context_kernels
from wordveil.evaluation.encoders import find_frequencies
from wordveil.evaluation.redrawn import Ragged, Redrawn
from wordveil.measures.recovery import guess_outputs
from wordveil.mechanisms.inputs import DISCOUNT, Bigrams, rank_frequencies
from wordveil.mechanisms.laws import WordLaws
from wordveil.scores.score import Group, Measurement, Score, find_ratio_interval
from wordveil.text.slots import START
from wordveil.text.stop_words import ENGLISH, load_stop_words


@dataclass(frozen=True)
class PublicLanguage:
    """Model of a language for attackers: frequencies of words, and of pairs of words.

    The probability of ``b`` after ``a`` (absolute discounting; Ney, Essen and Kneser, "On structuring probabilistic
    dependences in stochastic language modelling", Computer Speech and Language 8, 1994) is

        p(b | a) = max(c(a, b) - D, 0) / C(a) + g(a) p(b),     g(a) = 1 - sum over b of max(c(a, b) - D, 0) / C(a),

    with ``c(a, b)`` the count of the pair, ``C(a)`` that of ``a``, and ``p(b)`` the share of ``b``. ``D`` is ``n1 / (n1
    + 2 n2)`` with ``n1`` pairs that occur once and ``n2`` twice, as in the paper, and
    :data:`wordveil.mechanisms.inputs.DISCOUNT` if the model leaves such pairs out.

    ``frequencies``: float64 ``(size,)``, the share of each word, above 0; adds up to 1. ``costs``: for words and pairs,
    by ids of words. A word outside the vocabulary follows by its back-off, whatever its share, and words follow it by
    their shares.
    """

    frequencies: Float64
    costs: context_kernels.LanguageCosts

    @classmethod
    def of(cls, bigrams: Bigrams, words: pa.StringArray, frequencies: Float64 | None = None) -> PublicLanguage:
        """Make from public text.

        ``bigrams``: counts; words outside the vocabulary are left out, with their pairs. ``words``: string array
        ``(size,)``, the vocabulary, usually with the most frequent words first. ``frequencies``: float64 ``(size,)``,
        public shares of words, above 0. By default the mean of those by counts of ``bigrams`` and those by ranks of
        words, since the bigrams may come from another kind of text than the embedding.
        """
        size = len(words)
        if frequencies is None:
            frequencies = (find_frequencies(words, bigrams) + rank_frequencies(size)) / 2
        numbers = WordIndex(bigrams.words).numbers(words)
        known_ids = np.flatnonzero(numbers >= 0)
        counts = np.zeros(size + 2)
        counts[known_ids], counts[size] = bigrams.counts[numbers[known_ids]], bigrams.counts[0]
        id_of = np.full(len(bigrams.words), -1, np.int32)
        id_of[numbers[known_ids]], id_of[START] = known_ids, size
        before = np.repeat(id_of, np.diff(bigrams.first))
        after = np.where(bigrams.followers == START, np.int32(-1), id_of[bigrams.followers])
        used = np.flatnonzero((before >= 0) & (after >= 0))
        used = used[np.lexsort((after[used], before[used]))]
        before, after, pairs = before[used], after[used], bigrams.pair_counts[used].astype(np.float64)
        totals = np.maximum(counts, np.bincount(before, pairs, size + 2))
        once, twice = (int(np.count_nonzero(pairs == times)) for times in (1, 2))
        discount = once / (once + 2 * twice) if once and twice else DISCOUNT
        listed = np.maximum(pairs - discount, 0.0) / totals[before]
        remaining = np.clip(1.0 - np.bincount(before, listed, size + 2), 2.0**-50, 1.0).astype(np.float64)
        costs = context_kernels.LanguageCosts(
            first=np.searchsorted(before, np.arange(size + 3)).astype(np.int64),
            followers=after.astype(np.int32),
            costs=_costs_of(np.asarray(listed + remaining[before] * frequencies[after])),
            words=np.append(_costs_of(frequencies), np.zeros(2, np.int32)),
            beyond=_costs_of(remaining),
        )
        return cls(frequencies, costs)

    @property
    def size(self) -> int:
        return len(self.frequencies)


def _costs_of(chances: Float64) -> Int32:
    return np.asarray(np.rint(-np.log2(chances) * context_kernels.STEPS), np.int32)


TASK = "words"
NEAREST_WORD, MAXIMUM_POSTERIOR = "nearest-word", "maximum-posterior"
"""Attackers who take each output on its own."""
CANDIDATES = 32
"""Number of words considered for each output."""


class Decoding(StrEnum):
    """Way in which the attacker reads a text."""

    VITERBI = "viterbi"
    """Likeliest sequence of words."""
    MARGINAL = "forward-backward"
    """Likeliest word at each position."""


_DECODERS = {Decoding.VITERBI: context_kernels.decode_likeliest, Decoding.MARGINAL: context_kernels.decode_marginals}


class ContextAttacker:
    """Attacker that guesses hidden words from whole texts, by the laws of all words; see the module."""

    def __init__(self, laws: WordLaws, language: PublicLanguage, candidates: int = CANDIDATES) -> None:
        if candidates < 1:
            raise ValueError(f"candidates = {candidates}: expected 1 or more.")
        shape = len(laws.shares), len(laws.common)
        listed = sparse.csr_array((laws.extras, laws.ids, laws.offsets), shape=shape).tocsc()
        starts, words = listed.indptr.astype(np.int64), listed.indices.astype(np.int32)
        self._laws = context_kernels.ListedLaws(starts, words, listed.data, laws.common, laws.shares)
        self._language = language
        self._width = min(candidates, language.size)
        likely = np.argsort(-language.frequencies * laws.shares, kind="stable")
        self._leaders = likely[: self._width].astype(np.int32)

    def guess(self, sequence: Ragged, is_hidden: Bool, decoding: Decoding = Decoding.MARGINAL) -> Int32:
        """Guess each hidden word: int32 ``(hidden words,)``.

        ``sequence``: all words of the texts: outputs, and the ids of copied words, ``size + 1`` for unknown ones.
        ``is_hidden``: bool ``(tokens,)``, the outputs among them.
        """
        outputs, output_rows = np.unique(sequence.ids[is_hidden], return_inverse=True)
        copied, others = np.unique(sequence.ids[~is_hidden], return_inverse=True)
        row_of = np.empty(len(sequence.ids), np.int32)
        row_of[is_hidden], row_of[~is_hidden] = output_rows, len(outputs) + others
        table = self._list(outputs.astype(np.int32), copied.astype(np.int32))
        decode = _DECODERS[decoding]
        return decode(row_of, sequence.offsets, table, self._language.costs, self._language.size)[is_hidden]

    def _list(self, outputs: Int32, copied: Int32) -> context_kernels.WordCandidates:
        """List candidates: a row for each output, then one for each copied word."""
        words = np.full((len(outputs), self._width), context_kernels.NOBODY, np.int32)
        chances = np.zeros(words.shape)
        context_kernels.list_candidates(outputs, self._laws, self._language.frequencies, self._leaders, words, chances)
        # Rising ids, with NOBODY last.
        order = np.argsort(np.where(words == context_kernels.NOBODY, np.iinfo(np.int32).max, words), axis=1)
        words, chances = np.take_along_axis(words, order, axis=1), np.take_along_axis(chances, order, axis=1)
        costs = np.rint(-np.log2(np.where(chances > 0, chances, 1.0)) * context_kernels.STEPS).astype(np.int64)
        # An output that no word can have counts as a word outside the vocabulary.
        words[(words == context_kernels.NOBODY).all(axis=1), 0] = self._language.size + 1
        known_words = np.full((len(copied), self._width), context_kernels.NOBODY, np.int32)
        known_words[:, 0] = copied
        words = np.concatenate([words, known_words])
        return context_kernels.WordCandidates(
            (words != context_kernels.NOBODY).sum(axis=1),
            words,
            np.concatenate([costs, np.zeros(known_words.shape, np.int64)]),
        )


def guess_words(redrawn: Redrawn, language: PublicLanguage) -> tuple[dict[str, Int32], float | None]:
    """Guess the drawn words by every attacker, int32 ``(tokens,)`` each, by the attacker's name.

    Also returns the exact share of the language's words that the best attacker without context recovers, None if laws
    are estimated. Attackers have the policy and never guess a word that it does not hide. Attackers with context are
    included if the order of words shows. Raises :class:`ValueError` if the mechanism has no laws.
    """
    if redrawn.laws is None:
        raise ValueError(f"Expected a mechanism that draws one output for each word, got {redrawn.mechanism.name}.")
    laws = redrawn.laws.of_words
    prior = redrawn.hidden_share * language.frequencies
    language = replace(language, frequencies=prior / prior.sum())
    best, joint = guess_outputs(laws, language.frequencies)
    most_frequent = int(np.argmax(prior))
    guesses = {
        NEAREST_WORD: np.where(redrawn.drawn < redrawn.size, redrawn.drawn, most_frequent).astype(np.int32),
        MAXIMUM_POSTERIOR: best[redrawn.drawn],
    }
    if redrawn.shows_order:
        attacker = ContextAttacker(laws, language)
        guesses |= {way: attacker.guess(redrawn.sequence, redrawn.is_hidden, way) for way in Decoding}
    return guesses, float(joint.sum()) if redrawn.laws.is_exact else None


def measure_word_recovery(redrawn: Redrawn, language: PublicLanguage, subject: str, seed: int = 0) -> list[Score]:
    """Measure the share of recovered hidden words, without context and with it, on the same words.

    ``redrawn``: texts and their draws (:func:`wordveil.evaluation.redrawn.redraw`). ``language``: from any public text,
    or from texts of the same kind, which makes a stronger attacker. ``seed``: for the bootstrap of texts. Returns for
    each attacker the recovered share of the hidden words of the vocabulary: of all of them, of stop-words and of
    others; the gain by context; and the exact share without context for words of the language. Empty if no word of the
    vocabulary is hidden. Raises :class:`ValueError` if the mechanism has no laws.
    """
    is_known = redrawn.hidden.ids < redrawn.size
    if not is_known.any():
        return []
    guesses, exact = guess_words(redrawn, language)
    is_stop = np.zeros(redrawn.size + 2, np.bool_)
    stop_words = pa.array(load_stop_words(ENGLISH), pa.string())
    is_stop[: redrawn.size] = pc.is_in(redrawn.words, stop_words).to_numpy(zero_copy_only=False)
    stops = is_stop[redrawn.hidden.ids]
    parts = {"recovered": is_known, "recovered-content": is_known & ~stops, "recovered-stop-words": is_known & stops}
    measurement_of = {name: Measurement(subject, TASK, str(name), Group.ATTACK) for name in guesses}
    hits = {name: (guessed == redrawn.hidden.ids).astype(np.float64) for name, guessed in guesses.items()}
    most_frequent = np.argmax(language.frequencies)
    scores = []
    for name, figure in itertools.product(guesses, parts):
        part = parts[figure]
        if not part.any():
            continue
        recovered, interval = _average(redrawn, hits[name], part, seed)
        chance = float((redrawn.hidden.ids[part] == most_frequent).mean())
        definition = f"Share of {_PARTS[figure]} that are guessed right; the attacker {_READERS[name]}."
        score = measurement_of[name].make_score(
            figure, recovered, interval, int(part.sum()), definition, chance=chance, higher_is_better=False
        )
        scores.append(score)
    if Decoding.MARGINAL in guesses:
        gain, interval = _average(redrawn, hits[Decoding.MARGINAL] - hits[MAXIMUM_POSTERIOR], is_known, seed)
        definition = (
            "Share of hidden words of the vocabulary that are recovered with context, minus the share that is "
            "recovered without it: forward-backward against maximum-posterior, on the same words."
        )
        score = measurement_of[Decoding.MARGINAL].make_score(
            "gain-by-context", gain, interval, int(is_known.sum()), definition, chance=0.0, higher_is_better=False
        )
        scores.append(score)
    if exact is not None:
        definition = (
            "Probability that a word drawn by its public frequency is recovered by the best attacker without context, "
            "from the mechanism's exact laws."
        )
        chance = float(language.frequencies.max())
        score = measurement_of[MAXIMUM_POSTERIOR].make_score(
            "recovered-exact", exact, None, language.size, definition, chance=chance, higher_is_better=False
        )
        scores.append(score)
    return scores


_READERS: Mapping[str, str] = {
    NEAREST_WORD: "takes each output for the word itself",
    MAXIMUM_POSTERIOR: "takes for each output on its own the word that most probably led to it",
    Decoding.VITERBI: "takes the likeliest text, by the mechanism's laws and a public bigram model",
    Decoding.MARGINAL: "takes for each position the likeliest word given the whole text and a public bigram model",
}
_PARTS: Mapping[str, str] = {
    "recovered": "hidden words of the vocabulary",
    "recovered-content": "hidden words of the vocabulary that are no stop-words",
    "recovered-stop-words": "hidden stop-words of the vocabulary",
}


def _average(redrawn: Redrawn, values: Float64, part: Bool, seed: int) -> tuple[float, tuple[float, float]]:
    """Average ``values`` over the hidden words of ``part``; also returns the interval, by resampling texts."""
    hidden = redrawn.hidden
    text = np.repeat(np.arange(len(hidden)), hidden.lengths)[part]
    sums = np.bincount(text, values[part], len(hidden)).astype(np.float64)
    counts = np.bincount(text, minlength=len(hidden)).astype(np.int64)
    return float(values[part].mean()), find_ratio_interval(sums[counts > 0], counts[counts > 0], seed)
