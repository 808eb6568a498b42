"""Preview of a configuration on a corpus and on words: counts, shares and speeds, computed from arrays.

All draws are with a throwaway key, so that they reveal nothing about any release. Figures of a sample of the corpus are
functions of private text, hence internal; those of words of the vocabulary are public.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from threadpoolctl import threadpool_limits

from wordveil.arrays import Float64, Int32, Int64
from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import usage_error
from wordveil.measures.other_languages import count_other_languages
from wordveil.measures.text_lengths import Suggestion, suggest_length
from wordveil.measures.token_draws import as_records, choose_records, draw_texts, fit_texts, write_tokens
from wordveil.mechanisms.base import Mechanism
from wordveil.mechanisms.inputs import rank_frequencies
from wordveil.mechanisms.keep_rate import KeepRate, measure_keep_rate
from wordveil.records.codec import ColumnsCodec
from wordveil.records.columns import ONE_TEXT, TextColumns
from wordveil.records.schema import REASON_COLUMN, TEXT_REASONS, TOO_MANY_TOKENS, split_reasons
from wordveil.scores.counts import Bin, count_bins
from wordveil.text.choices import DrawnUnit, Length, OtherLanguage, Refused, UnknownWords
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramModel
from wordveil.text.stop_words import load_stop_words


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of a count over the records: at least half have at most ``median``, and 95% at most ``p95``."""

    min: int
    median: int
    p95: int
    max: int


@dataclass(frozen=True)
class ColumnSample:
    """Sample of one of several text columns, with the meaning of :class:`Sample`'s fields for that column."""

    name: str
    lengths: Quantiles
    cut: int | None
    suggested: Suggestion | None


@dataclass(frozen=True)
class Sample:
    """Effect of the job on the records that were read. Counts only.

    ``released``: records that would get a sanitised text. ``quarantined``: the others, by reason. ``emptied``: those
    released as the empty text (``refused: empty``), by reason. The fields below are of released records; those that
    need a record are None without one. ``words``, ``unknown``: words before the policy, and those outside the
    vocabulary. ``lengths``: tokens to be replaced, before texts are cut or filled. ``histogram``: number of records by
    length. ``distinct``: distinct words, each drawn once; None under ``repeat: each``. ``cut``, ``padded``: records
    longer and shorter than ``n_max``, in any of several columns; None if the policy does not pad. ``suggested``:
    another ``n_max``; None if the policy has none, or there are several text columns. ``tokens``: tokens that the job
    would charge. ``keep_rate``: share of known words to be replaced that stay themselves, in ``keep_draws`` draws; None
    without such words; of texts that are drawn whole, those that keep their subject. ``by_cluster``: one word is
    written for each cluster, and ``keep_rate`` is the share of words that stay in theirs. ``columns``: lengths by
    column, if there are several. ``unit``: what is drawn. ``draws``: tokens that are drawn for each released record,
    before texts are cut or filled; not in JSON. ``other_languages``: number of released records that look like another
    language (:func:`wordveil.measures.other_languages.count_other_languages`), by its code; empty if the policy
    identifies languages itself.

    ``tokens_per_second`` (drawing alone) and ``seconds`` (cutting all records into words, and drawing ``tokens``) are
    of one core of this machine, by processor time, so that a busy machine does not count.
    """

    records: int
    released: int
    quarantined: dict[str, int]
    emptied: dict[str, int]
    words: int
    unknown: int
    lengths: Quantiles | None
    histogram: tuple[Bin, ...]
    distinct: Quantiles | None
    cut: int | None
    padded: int | None
    suggested: Suggestion | None
    tokens: int
    keep_rate: float | None
    keep_draws: int
    tokens_per_second: float
    seconds: float
    columns: tuple[ColumnSample, ...] = ()
    unit: str = DrawnUnit.WORD
    draws: tuple[int, ...] = ()
    by_cluster: bool = False
    other_languages: Mapping[str, int] = field(default_factory=dict)

    @property
    def unknown_rate(self) -> float | None:
        return self.unknown / self.words if self.words else None

    def core_hours(self, records: int) -> float | None:
        """Compute the hours of one core for ``records`` records like these; None if none was read."""
        return self.seconds / self.records * records / 3600 if self.records else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values = {**asdict(self), "unknown_rate": self.unknown_rate}
        del values["draws"]
        return values


# Bounds that keep a preview to seconds: tokens of the sample that are drawn, draws of one word, and seconds of drawing.
SAMPLE_TOKENS = 20_000
WORD_DRAWS = 2_000
DRAW_SECONDS = 10.0
_CHUNK = 2_000
# Without public text of the field: frequent English nouns of many fields. Other vocabularies have everyday words after
# those that every text has.
_NOUNS = (
    *("hospital", "money", "doctor", "computer", "train", "school", "lawyer", "kitchen", "weather", "camera"),
    *("engine", "ticket", "garden", "hotel", "football", "letter"),
)
_FREQUENT = slice(200, 2_000)
_DEFAULT_WORDS = 5
_SHOWN = 4
PADDING = "(padding)"
# Texts for the compiled scanner, for Arrow, and for a refusal. The first call of each compiles it.
_WARM_UP = pa.array(["A text with 2 lines, for example.", "\u0915\u0948\u0938\u0947 \u0939\u094b", "\u6771\u4eac"])
UNKNOWN_BECOMES: Mapping[UnknownWords, str] = {
    UnknownWords.MASK: "is drawn as the unknown word: what comes out says nothing about it",
    UnknownWords.DROP: "is left out",
    UnknownWords.KEEP: "stays as it is, without protection",
    UnknownWords.QUARANTINE: "refuses its record",
}
"""Treatment of a word that the vocabulary lacks, in words."""


@dataclass(frozen=True)
class WordPreview:
    """Outputs of a word at an epsilon, by ``draws`` draws.

    ``stays``: share of draws that are the word itself, or if one word is written for each cluster
    (:func:`writes_representatives`) that of its cluster. ``replacements``: the likeliest other words with their shares,
    falling, each drawn more than once. ``different``: number of distinct words drawn, the word itself included.
    """

    word: str
    epsilon: float
    draws: int
    stays: float
    replacements: tuple[tuple[str, float], ...]
    different: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        likeliest = [{"word": word, "probability": share} for word, share in self.replacements]
        return {**self.__dict__, "replacements": likeliest}


@dataclass(frozen=True)
class ClusterPreview:
    """Words that are indistinguishable from a word.

    ``members``: those words, itself included, in the vocabulary's order. ``written``: the likeliest outputs of the word
    alone with their exact probabilities, falling.
    """

    word: str
    members: tuple[str, ...]
    written: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        written = [{"word": word, "probability": share} for word, share in self.written]
        return {"word": self.word, "members": [*self.members], "written": written}


@dataclass(frozen=True)
class UnknownWord:
    """Word that the vocabulary lacks. ``rule``: the policy's, ``text.unknown``; ``becomes``: its meaning."""

    word: str
    rule: str
    becomes: str


@dataclass(frozen=True)
class _Encoded:
    """Records of a sample as ids.

    ``ids``: int32 ``(tokens,)``. ``columns``: int64 ``(released, columns)``, tokens in each. ``draws``: int64
    ``(released,)``, their sum or, if repeated words are drawn once, the distinct words. ``seconds``: time taken.
    """

    records: int
    reasons: Counter[str]
    ids: Int32
    columns: Int64
    draws: Int64
    words: int
    unknown: int
    other_languages: Counter[str]
    seconds: float

    @property
    def lengths(self) -> Int64:
        """Number of tokens of each record: int64 ``(released,)``."""
        lengths: Int64 = self.columns.sum(axis=1)
        return lengths


def inspect(
    batches: Iterable[pa.RecordBatch],
    policy: TextPolicy,
    bundle: Bundle,
    model: NgramModel | None = None,
    columns: TextColumns = ONE_TEXT,
) -> Sample:
    """Simulate the job on records with the columns ``__text`` (or :attr:`TextColumns.inputs`) and ``__reason``."""
    with threadpool_limits(limits=1):  # as in a worker
        encoded = _encode(batches, policy, bundle, model, columns)
        if bundle.mechanism.reads_context:
            chosen, drawn, speed = _draw_texts(encoded, policy, bundle, columns)
        else:
            chosen = choose_evenly(encoded.ids, SAMPLE_TOKENS)
            drawn, speed = _draw_sample(bundle.mechanism, chosen, bundle.vocabulary)
    by_cluster = policy.draws_words and writes_representatives(bundle)
    keep_rate = _measure_kept(bundle, chosen[: len(drawn)], drawn, by_cluster=by_cluster)
    rate = keep_rate.rate if policy.draws_words else _find_kept_share(bundle, chosen)
    released = len(encoded.lengths)
    tokens = released * policy.n_max if policy.n_max else int(encoded.draws.sum())
    emptied = {
        reason: n for reason, n in encoded.reasons.items() if policy.refused == "empty" and reason in TEXT_REASONS
    }
    pads = policy.pads and policy.draws_words
    lengths = _measure_quantiles(encoded.lengths)
    widths = np.array([column_policy.n_max or 0 for column_policy in columns.split_policy(policy)])
    several = len(columns.names) > 1
    return Sample(
        records=encoded.records,
        released=released,
        quarantined={reason: n for reason, n in encoded.reasons.items() if reason not in emptied},
        emptied=emptied,
        words=encoded.words,
        unknown=encoded.unknown,
        lengths=lengths,
        histogram=count_bins(encoded.lengths),
        distinct=_measure_quantiles(encoded.draws) if policy.draws_once else None,
        cut=int((encoded.columns > widths).any(axis=1).sum()) if pads else None,
        padded=int((encoded.columns < widths).any(axis=1).sum()) if pads else None,
        suggested=suggest_length(encoded.lengths, lengths.p95, bundle.mechanism.max_tokens)
        if lengths and policy.n_max and policy.draws_words and not several
        else None,
        tokens=tokens,
        keep_rate=rate,
        keep_draws=keep_rate.words,
        tokens_per_second=speed,
        seconds=encoded.seconds + tokens / speed,
        columns=tuple(_column_samples(encoded, policy, bundle, columns)) if several else (),
        unit=policy.unit,
        draws=tuple(encoded.draws.tolist()),
        by_cluster=by_cluster,
        other_languages=dict(encoded.other_languages),
    )


def writes_representatives(bundle: Bundle) -> bool:
    """Return whether one word is written for each cluster, so that other words of the cluster never stay themselves."""
    symbols = bundle.mechanism.symbols
    return symbols is not None and symbols.has_representatives


def _measure_kept(bundle: Bundle, ids: Int32, drawn: Int32, *, by_cluster: bool) -> KeepRate:
    """Measure the share of words that stay themselves, or in their cluster. Parameters as :func:`measure_keep_rate`."""
    size, symbols = bundle.vocabulary.size, bundle.mechanism.symbols
    if not by_cluster or symbols is None:
        return measure_keep_rate(ids, drawn, size)
    words = ids < size
    return measure_keep_rate(symbols.read[ids[words]], symbols.written[drawn[words]], symbols.law.size)


def _find_kept_share(bundle: Bundle, symbols: Int32) -> float | None:
    """Compute the share of texts with these symbols that keep their subject, by the law; None without any."""
    subjects = symbols[symbols < bundle.vocabulary.size]
    stays = bundle.mechanism.stay_probabilities(subjects) if len(subjects) else None
    return None if stays is None else float(stays.mean())


def _column_samples(
    encoded: _Encoded, policy: TextPolicy, bundle: Bundle, columns: TextColumns
) -> Iterator[ColumnSample]:
    for name, column_policy, lengths in zip(
        columns.names, columns.split_policy(policy), encoded.columns.T, strict=True
    ):
        if (measured := _measure_quantiles(lengths)) is not None:
            pads = policy.pads and policy.draws_words
            cut = int((lengths > (column_policy.n_max or 0)).sum()) if pads else None
            is_fitted = policy.n_max and policy.draws_words
            suggested = suggest_length(lengths, measured.p95, bundle.mechanism.max_tokens) if is_fitted else None
            yield ColumnSample(name, measured, cut, suggested)


def _encode(
    batches: Iterable[pa.RecordBatch],
    policy: TextPolicy,
    bundle: Bundle,
    model: NgramModel | None,
    columns: TextColumns,
) -> _Encoded:
    # Cut and padded words would hide the lengths; a record refused for its text is counted before it becomes empty.
    open_policy = replace(policy, refused=Refused.QUARANTINE)
    if policy.draws_words:
        open_policy = replace(open_policy, length=Length.AS_IS, n_max=None)
    codec = ColumnsCodec(columns, open_policy, bundle, model)
    codec.encode([_WARM_UP] * len(columns.names))
    limit = None if policy.n_max else bundle.mechanism.max_tokens
    records, seconds, words, unknown = 0, 0.0, 0, 0
    reasons: Counter[str] = Counter()
    others: Counter[str] = Counter()
    ids, draws = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    lengths = [np.empty((0, len(columns.names)), np.int64)]
    for batch in batches:
        reason, named = split_reasons(np.array(batch.column(REASON_COLUMN).to_pylist(), object))
        texts = [pc.fill_null(batch.column(name), "") for name in columns.inputs]
        started = time.process_time()
        encoded = codec.encode(texts, codec.find_other(texts, named))
        seconds += time.process_time() - started
        fine = reason == None  # noqa: E711 - elementwise
        reason[fine] = encoded.refused[fine]
        if limit is not None:
            reason[(reason == None) & (np.diff(encoded.offsets) > limit)] = TOO_MANY_TOKENS  # noqa: E711 - elementwise
        sound = reason == None  # noqa: E711 - elementwise
        emptied = (
            np.isin(reason.astype(str), TEXT_REASONS) if policy.refused == "empty" else np.zeros(len(reason), bool)
        )
        records += batch.num_rows
        reasons.update(reason[~sound].tolist())
        joined = encoded.layout.join([column.ids for column in encoded.columns])
        ids.append(joined[np.repeat(sound, np.diff(encoded.offsets))])
        by_column = np.stack([column.read_lengths for column in encoded.columns], axis=1)
        lengths.append(np.where(sound[:, None], by_column, 0)[sound | emptied])
        draws.append(np.where(sound, np.diff(encoded.drawn_offsets), 0)[sound | emptied])
        words += int(encoded.words[sound | emptied].sum())
        unknown += int(encoded.unknown[sound | emptied].sum())
        if policy.other_language == OtherLanguage.RELEASE:
            joined_texts = pc.binary_join_element_wise(*texts, "\n").filter(pa.array(sound, pa.bool_()))
            others += count_other_languages(joined_texts, policy.language) or Counter()
    arrays = (np.concatenate(ids), np.concatenate(lengths), np.concatenate(draws))
    return _Encoded(records, reasons, *arrays, words, unknown, others, seconds)


def _measure_quantiles(lengths: Int64) -> Quantiles | None:
    if not len(lengths):
        return None
    return Quantiles(*(int(value) for value in np.quantile(lengths, (0, 0.5, 0.95, 1), method="inverted_cdf")))


def choose_evenly(ids: Int32, count: int) -> Int32:
    """Choose at most ``count`` of the ids, mixed so that any prefix is evenly spread, too."""
    indices = np.unique(np.linspace(0, max(len(ids) - 1, 0), min(count, len(ids))).astype(np.int64))
    stride = 61  # any number works: all remainders are taken
    mixed: Int32 = ids[np.concatenate([indices[start::stride] for start in range(stride)])]
    return mixed


def _draw_sample(mechanism: Mechanism[Any], ids: Int32, vocabulary: Vocabulary) -> tuple[Int32, float]:
    """Draw the first of ``ids``, as many as the time allows. Return the outputs, and tokens per second."""
    keys = make_throwaway_keys()
    timed = np.resize(ids if len(ids) else np.int32(vocabulary.unknown), max(len(ids), _CHUNK)).astype(np.int32)
    write_tokens(mechanism, timed[:10], b"warm-up", keys)  # the first call compiles the loops
    drawn, seconds, done = [], 0.0, 0
    while done < len(timed) and seconds < DRAW_SECONDS:
        started = time.process_time()
        drawn.append(write_tokens(mechanism, timed[done : done + _CHUNK], b"%d" % done, keys))
        seconds += time.process_time() - started
        done += len(drawn[-1])
    return np.concatenate(drawn)[: len(ids)], done / seconds


def _draw_texts(
    encoded: _Encoded, policy: TextPolicy, bundle: Bundle, columns: TextColumns
) -> tuple[Int32, Int32, float]:
    """Draw some texts as a run does. Return their tokens, the outputs of the first of them, and tokens per second."""
    widths = np.array([column_policy.n_max or 0 for column_policy in columns.split_policy(policy)])
    mean = int(widths.sum()) or max(len(encoded.ids) // max(len(encoded.columns), 1), 1)
    ids, counts = choose_records(encoded.ids, encoded.columns, max(SAMPLE_TOKENS // mean, 1))
    if not counts.any() and not widths.any():  # nothing to draw: the speed is that of a text of unknown words
        unknown = np.full(_CHUNK, bundle.vocabulary.unknown, np.int32)
        return ids, ids, draw_texts(bundle.mechanism, unknown, np.array([0, _CHUNK]), DRAW_SECONDS)[1]
    if not len(counts):
        counts = np.zeros((1, len(widths)), np.int64)
    fitted, offsets = fit_texts(ids, counts, widths, bundle.vocabulary.pad)
    return fitted, *draw_texts(bundle.mechanism, fitted, offsets, DRAW_SECONDS)


def default_words(vocabulary: Vocabulary, frequencies: Float64 | None = None, language: str = "en") -> list[str]:
    """Choose a few words of the vocabulary as examples, with four letters or more.

    ``frequencies``: float64 ``(size,)``, the share of each word in public text of the user's field. Then the words are
    the most telling ones of that text, which add most to its relative entropy to a text with the vocabulary's order;
    stop-words of ``language`` are left out. Without it they are frequent nouns, or everyday words if the vocabulary
    begins with its frequent ones, as embedding files do.
    """
    words = vocabulary.array.to_pylist()
    if frequencies is not None:
        stop_words = {*load_stop_words(None, language)}
        telling = np.argsort(-frequencies * np.log(frequencies / rank_frequencies(len(words))), kind="stable")
        ranked = (words[index] for index in telling.tolist())
        chosen = (word for word in ranked if _is_plain(word) and word not in stop_words)
        return [*islice(chosen, _DEFAULT_WORDS)]
    known = {*words}
    nouns = [noun for noun in _NOUNS if noun in known]
    if len(nouns) >= _DEFAULT_WORDS:
        return nouns[:_DEFAULT_WORDS]
    front = words[_FREQUENT] or words
    plain = [word for word in front if _is_plain(word)] or front
    step = max(len(plain) // _DEFAULT_WORDS, 1)
    return plain[step // 2 :: step][:_DEFAULT_WORDS]


def _is_plain(word: str) -> bool:
    return word.isalpha() and len(word) >= 4


def sort_words(words: Sequence[str], policy: TextPolicy, vocabulary: Vocabulary) -> tuple[list[str], list[UnknownWord]]:
    """Sort distinct words into known ones, and others with their treatment. Raises :class:`ConfigError` without any."""
    stripped = [word.strip() for word in words]
    plain = [*dict.fromkeys(word if policy.case == "exact" else word.lower() for word in stripped if word)]
    if not plain:
        raise usage_error("--words", "", "name at least one word.")
    ids = vocabulary.lookup(pa.array(plain, pa.string())).tolist()
    known_words = [word for word, symbol in zip(plain, ids, strict=True) if symbol != vocabulary.unknown]
    rule = policy.unknown
    return known_words, [
        UnknownWord(word, str(rule), UNKNOWN_BECOMES[rule]) for word in plain if word not in known_words
    ]


def preview_words(
    bundle: Bundle,
    words: Sequence[str],
    epsilon: float,
    draws: int = WORD_DRAWS,
    progress: Callable[[str], None] = lambda _: None,
) -> list[WordPreview]:
    """Show outputs of ``words`` of the vocabulary at ``epsilon``, that of the bundle, at half of it, and at twice.

    A mechanism that cannot change its epsilon is shown only at its own.
    """
    keys = make_throwaway_keys()
    changed = [(value, bundle.mechanism.at_epsilon(value)) for value in (epsilon / 2, 2 * epsilon)]
    mechanisms = [(epsilon, bundle.mechanism), *((value, made) for value, made in changed if made is not None)]
    ids = bundle.vocabulary.lookup(pa.array(words, pa.string()))
    by_cluster, previews = writes_representatives(bundle), []
    with threadpool_limits(limits=1):
        for word, index in zip(words, ids.tolist(), strict=True):
            progress(f"drawing {word}")
            for value, mechanism in sorted(mechanisms, key=lambda pair: pair[0]):
                drawn = write_tokens(mechanism, np.full(draws, index, np.int32), word.encode(), keys)
                kept = _measure_kept(bundle, np.full(draws, index, np.int32), drawn, by_cluster=by_cluster)
                previews.append(_word_preview(word, index, value, drawn, bundle.vocabulary, kept))
    return previews


def preview_clusters(bundle: Bundle, words: Sequence[str]) -> list[ClusterPreview]:
    """List the words from which ``words`` of the vocabulary are indistinguishable; empty without clusters."""
    mechanism, vocabulary = bundle.mechanism, bundle.vocabulary
    previews = []
    for word, index in zip(words, vocabulary.lookup(pa.array(words, pa.string())).tolist(), strict=True):
        if (alike := mechanism.drawn_alike(index)) is None:
            return []
        law = mechanism.probabilities(index)
        if law is None:
            return []
        likeliest = np.argsort(-law[: vocabulary.size], kind="stable")[:_SHOWN].astype(np.int32)
        # One at a time: some mechanisms choose the written word by the words around it.
        alone = as_records(likeliest, np.arange(len(likeliest) + 1), [b"x"] * len(likeliest), make_throwaway_keys())
        written = vocabulary.array.take(pa.array(mechanism.render(alone).ids)).to_pylist()
        members = vocabulary.array.take(pa.array(alike)).to_pylist()
        shares = law[likeliest].tolist()
        previews.append(ClusterPreview(word, tuple(members), tuple(zip(written, shares, strict=True))))
    return previews


def _word_preview(
    word: str, index: int, epsilon: float, drawn: Int32, vocabulary: Vocabulary, kept: KeepRate
) -> WordPreview:
    values, counts = np.unique(drawn, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    others = [(int(values[i]), int(counts[i])) for i in order if values[i] != index and counts[i] > 1][:_SHOWN]
    names = [PADDING if value == vocabulary.pad else vocabulary.array[value].as_py() for value, _ in others]
    return WordPreview(
        word=word,
        epsilon=epsilon,
        draws=len(drawn),
        stays=kept.kept / kept.words,
        replacements=tuple((name, count / len(drawn)) for name, (_, count) in zip(names, others, strict=True)),
        different=len(values),
    )
