"""Public inputs of a mechanism, read from the files that a configuration names besides its embedding.

A file is read and checked by itself first, and then fitted to the words of the embedding. A fault of a file raises
:class:`wordveil.errors.PublicFileError`, of an embedding :class:`wordveil.errors.EmbeddingError`, of an n-gram model
:class:`wordveil.errors.NgramError`, and of a generator :class:`wordveil.errors.GeneratorError`. All have exit code 4
and name the setting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wordveil.arrays import Float64, Int32
from wordveil.artifacts import ngram_model
from wordveil.artifacts.bundle import KEEP_ONLY, name_setting
from wordveil.assembly import word_tables
from wordveil.assembly.passages import digest_passages, fit_passages, read_passages
from wordveil.assembly.word_tables import CASE, SHIPPED_SENSITIVE, FittedWords, WordTable, read_word_table
from wordveil.config.mechanisms import FREQUENCIES
from wordveil.config.paths import STOP_WORDS
from wordveil.embeddings import embedding as embeddings
from wordveil.embeddings.embedding import Embedding
from wordveil.embeddings.training.hypernyms import SHIPPED_PAIRS
from wordveil.embeddings.vocabulary import WordIndex
from wordveil.errors import EmbeddingError, GeneratorError, NgramError, PublicFileError
from wordveil.generators.weights import GeneratorWeights, digest_words, load_weights
from wordveil.mechanisms.inputs import ORDINARY, SENSITIVE, WORDNET, Pairs, PublicInputs
from wordveil.text.slots import NgramModel
from wordveil.text.stop_words import load_stop_words

Progress = Callable[[str], None]


@dataclass(frozen=True)
class PublicFiles:
    """Contents of public files: by setting, the source and the content in the form of its kind."""

    sources: Mapping[str, str]
    contents: Mapping[str, Any]

    def fit(self, words: pa.StringArray, language: str = "en") -> FittedInputs:
        """Bring the contents into the order of an embedding's words, which are distinct and of ``language``.

        Raises :class:`PublicFileError`, :class:`EmbeddingError` or :class:`GeneratorError` if the words differ too
        much.
        """
        fitted: dict[str, Any] = {}
        notes: list[str] = []
        for name, content in self.contents.items():
            kind = _KINDS[name]
            target_words = FittedWords(words, name, self.sources[name], notes, language)
            fitted[kind.input] = kind.fit(content, target_words)
        return FittedInputs(PublicInputs(**fitted), tuple(notes))


@dataclass(frozen=True)
class FittedInputs:
    """Inputs of a mechanism, in the order of the embedding's words."""

    inputs: PublicInputs
    notes: tuple[str, ...]
    """Remarks on how the files fit the embedding, as sentences."""


def read_files(sources: Mapping[str, str], progress: Progress = lambda _: None) -> PublicFiles:
    """Read and check public files: their paths or names by setting (:attr:`MechanismSection.public_files`).

    Raises the error of the file's kind, with setting, file and line, if it is missing or has a fault.
    """
    contents: dict[str, Any] = {}
    for name, source in sources.items():
        progress(f"reading {name} from {source}")
        contents[name] = _KINDS[name].read(source, f"mechanism.{name}", progress)
    return PublicFiles(sources, contents)


def digest_files(sources: Mapping[str, str], *, missing_allowed: bool = False) -> dict[str, str]:
    """Identify public files by setting: the SHA-256 of a file or of an embedding's files, or an n-gram model's digest.

    ``missing_allowed``: leave out missing files. Raises the error of the file's kind if it cannot be read.
    """
    return {
        name: _KINDS[name].digest(source, f"mechanism.{name}")
        for name, source in sources.items()
        if not missing_allowed or _KINDS[name].exists(source)
    }


def find_frequencies(source: str | None, words: pa.StringArray) -> Float64 | None:
    """Find the frequencies of words in a file of counts, float64 ``(words,)``, or return None.

    None also if the file is not on this machine, and for lists of a whole language (``wordfreq:``). Raises
    :class:`PublicFileError` for a file with a fault.
    """
    if source is None or word_tables.is_wordfreq(source) or not _KINDS[FREQUENCIES].exists(source):
        return None
    return read_files({FREQUENCIES: source}).fit(words).inputs.frequencies


def confine_embedding(embedding: Embedding, source: str) -> Embedding:
    """Select the words of an embedding that the list of ``text.keep_only`` has, in the embedding's order, with a note.

    Raises :class:`PublicFileError` if the list has a fault, or fewer than two of the words.
    """
    table = read_word_table(source, name_setting(KEEP_ONLY), ("word",))
    table.require_distinct(1)
    listed = WordIndex(embedding.words).numbers(table.columns[0])
    known = np.unique(listed[listed >= 0])
    if len(known) < 2:
        problem = f"it has {len(known)} of the embedding's {embedding.size:,} words, and at least 2 are needed."
        raise table.error(problem, f"Name another list, or another embedding. {CASE}")
    name, missing = Path(source).name, len(listed) - len(known)
    note = f"{name_setting(KEEP_ONLY)}: outputs are confined to {len(known):,} words of {name}"
    return embedding.select(known, f"{note}; {missing:,} others are not in the embedding." if missing else f"{note}.")


def _fit_frequencies(table: WordTable, to: FittedWords) -> Float64:
    """Compute shares of counts, 0.5 added to each (Krichevsky, Trofimov 1981): the same float64 on any machine."""
    counts, ids = table.whole_numbers(1), to.find(table.columns[0])
    known = int((ids >= 0).sum())
    if 2 * known < len(to):
        raise table.error(
            f"it has {known:,} of the embedding's {len(to):,} words ({known / len(to):.1%}), and half of them are "
            "needed.",
            f"Take counts of a corpus in the embedding's language. {CASE}",
        )
    to.note_unknown(ids)
    to.note(
        len(to) - known,
        f"of {len(to):,} words are not in {to.source}: they count as half an occurrence, as 0.5 is added.",
    )
    halves = np.ones(len(to), np.int64)
    halves[ids[ids >= 0]] += 2 * counts[ids >= 0]
    return halves / float(sum(halves.tolist()))


def _fit_pairs(table: WordTable, to: FittedWords) -> Pairs:
    similarities, words, others = table.numbers(2), to.find(table.columns[0]), to.find(table.columns[1])
    unknown = (words < 0) | (others < 0)
    itself = ~unknown & (words == others)
    used = ~(unknown | itself)
    if not used.any():
        raise table.error("has no pair of two words of the embedding.", f"Name another file. {CASE}")
    to.note(
        int(unknown.sum()), f"of {len(words):,} pairs of {to.source} have a word that is not in the embedding: ignored."
    )
    to.note(int(itself.sum()), f"of {len(words):,} pairs of {to.source} are of a word with itself: ignored.")
    return Pairs(words[used], others[used], similarities[used])


def _fit_classes(table: WordTable, to: FittedWords) -> Int32:
    """Assign classes, in the order of their first words in the embedding. Unlisted words are one more class."""
    ids = to.find(table.columns[0])
    known = ids >= 0
    if not known.any():
        raise table.error("has no word of the embedding.", f"Name another file. {CASE}")
    labels = np.full(len(to), -1, np.int64)
    labels[ids[known]] = np.asarray(table.columns[1].dictionary_encode().indices)[known]
    if not to.source.startswith(STOP_WORDS):
        to.note_unknown(ids)
        missing = len(to) - int(known.sum())
        to.note(missing, f"of {len(to):,} words are not in {to.source}: together they are a class of their own.")
    encoded = pa.array(labels).dictionary_encode()
    classes = np.asarray(encoded.indices).astype(np.int32)
    single = int((np.bincount(classes) == 1).sum())
    to.note(single, f"of {len(encoded.dictionary):,} classes have a single word: it has no other word of its class.")
    return classes


def _fit_similarity(other: Embedding, to: FittedWords) -> Embedding:
    """Return the embedding as it is: the mechanism handles words that it does not have."""
    if not (to.find(other.words) >= 0).any():
        raise EmbeddingError(
            f"mechanism.{to.name} = {to.source}: has no word of the embedding. Name another one. {CASE}"
        )
    return other


def _read_counts(source: str, setting: str, _: Progress) -> WordTable:
    if word_tables.is_wordfreq(source):
        return word_tables.read_wordfreq(source, setting)
    table = read_word_table(source, setting, ("word", "count"))
    table.whole_numbers(1)
    table.require_distinct(1)
    return table


def _read_pairs(source: str, setting: str, _: Progress) -> WordTable:
    if source == ngram_model.DEMO:
        return _read_hypernyms(setting)
    table = read_word_table(source, setting, ("word", "similar word", "similarity"))
    table.numbers(2)
    table.require_distinct(2)
    return table


def _read_hypernyms(setting: str) -> WordTable:
    """Read the package's pairs of a word and its hypernyms: the fewer words are below a hypernym, the more similar."""
    table = read_word_table(str(SHIPPED_PAIRS), setting, ("word", "hypernym"))
    counts = np.unique(np.asarray(table.columns[1]), return_inverse=True, return_counts=True)
    similarities = pa.array(1.0 / counts[2][counts[1]]).cast(pa.string())
    return WordTable(setting, ngram_model.DEMO, (*table.columns, similarities))


def _read_classes(source: str, setting: str, _: Progress) -> WordTable:
    if source.startswith(STOP_WORDS):
        return _list_stop_words(source, setting)
    table = read_word_table(source, setting, ("word", "class"))
    table.require_distinct(1)
    return table


def _list_stop_words(source: str, setting: str) -> WordTable:
    words = load_stop_words(None, source.removeprefix(STOP_WORDS))
    if not words:
        problem = "there is no such list here. For English write stop-words:en; others need wordveil[languages]."
        raise PublicFileError(f"{setting} = {source}: {problem}")
    return WordTable(setting, source, (pa.array(words, pa.string()), pa.repeat("stop-word", len(words))))


def _digest_classes(source: str, setting: str) -> str:
    if source.startswith(STOP_WORDS):
        lines = "\n".join(_list_stop_words(source, setting).columns[0].to_pylist())
        return hashlib.sha256(lines.encode()).hexdigest()
    return digest_table(source, setting)


def digest_table(source: str, setting: str) -> str:
    """Identify a file by its content: a SHA-256, hexadecimal. Raises :class:`PublicFileError`."""
    path = word_tables.require_file(source, setting)
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise PublicFileError(f"{setting} = {source}: cannot be read ({error.strerror}). Name another file.") from None


def _read_model(source: str, setting: str, _: Progress) -> NgramModel:
    try:
        return ngram_model.open_named(source)
    except NgramError as error:
        raise NgramError(f"{setting} = {source}: {error}") from None


def _read_generator(source: str, setting: str, _: Progress) -> GeneratorWeights:
    try:
        return load_weights(Path(source))
    except GeneratorError as error:
        raise GeneratorError(f"{setting} = {error}") from None


def _fit_generator(weights: GeneratorWeights, to: FittedWords) -> GeneratorWeights:
    """Return the weights as they are: a generator has a fixed list of words."""
    if weights.words_digest != digest_words(to.words) or weights.shape.size != len(to):
        raise GeneratorError(
            f"mechanism.{to.name} = {to.source}: its {weights.shape.size:,} words are not the {len(to):,} words of "
            "mechanism.embedding, in the same order. Name the embedding that it was trained with, or train it again "
            "with this one."
        )
    return weights


@dataclass(frozen=True)
class _Kind:
    """Kind of public file: the field of :class:`PublicInputs`, and functions that read, fit and identify it."""

    input: str
    read: Callable[[str, str, Progress], Any]
    fit: Callable[[Any, FittedWords], Any]
    digest: Callable[[str, str], str] = digest_table
    exists: Callable[[str], bool] = lambda source: Path(source).exists()


_KINDS = {
    FREQUENCIES: _Kind(
        "frequencies",
        _read_counts,
        _fit_frequencies,
        lambda source, setting: (word_tables.digest_wordfreq if word_tables.is_wordfreq(source) else digest_table)(
            source, setting
        ),
        lambda source: word_tables.has_wordfreq(source) if word_tables.is_wordfreq(source) else Path(source).exists(),
    ),
    "similarity": _Kind(
        "similarity",
        lambda source, setting, progress: embeddings.load(source, progress=progress, setting=setting),
        _fit_similarity,
        embeddings.digest_source,
        embeddings.embedding_exists,
    ),
    "pairs": _Kind(
        "pairs",
        _read_pairs,
        _fit_pairs,
        lambda source, setting: digest_table(str(SHIPPED_PAIRS) if source == ngram_model.DEMO else source, setting),
        lambda source: source == ngram_model.DEMO or Path(source).exists(),
    ),
    "classes": _Kind(
        "classes",
        _read_classes,
        _fit_classes,
        _digest_classes,
        lambda source: source.startswith(STOP_WORDS) or Path(source).exists(),
    ),
    "ngrams": _Kind(
        "bigrams",
        _read_model,
        lambda model, _: ngram_model.bigrams_of(model),
        lambda source, setting: _read_model(source, setting, lambda _: None).digest,
        lambda source: source == ngram_model.DEMO or Path(source).exists(),
    ),
    "passages": _Kind(
        "passages",
        lambda source, setting, _: read_passages(source, setting),
        fit_passages,
        digest_passages,
        lambda source: source == WORDNET or Path(source).exists(),
    ),
    "model": _Kind("generator", _read_generator, _fit_generator),
    "merge": _Kind(
        "groups",
        lambda source, setting, _: word_tables.read_groups(source, setting),
        word_tables.fit_groups,
        lambda source, setting: digest_table(SHIPPED_SENSITIVE if source == SENSITIVE else source, setting),
        lambda source: source == SENSITIVE or Path(source).exists(),
    ),
    "written": _Kind(
        "writable",
        lambda source, setting, _: word_tables.read_writable(source, setting),
        word_tables.fit_writable,
        lambda source, setting: word_tables.digest_ordinary() if source == ORDINARY else digest_table(source, setting),
        lambda source: source == ORDINARY or Path(source).exists(),
    ),
}
SETTINGS = tuple(_KINDS)
"""Settings that may name public files."""
