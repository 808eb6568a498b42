"""Training of a configuration's generator, and the sequences made from its texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from wordveil.assembly.remote import fetch
from wordveil.config.generators import GeneratorSection, TextsSection
from wordveil.crypto.private_files import create_directory, find_exposure
from wordveil.embeddings import embedding as embeddings
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import GeneratorError, InputError
from wordveil.generators.training.corpus import Corpus, Piece, find_corpus, write_corpus
from wordveil.generators.training.settings import require_packages
from wordveil.generators.weights import digest_words
from wordveil.text.codec import Codec
from wordveil.text.offsets import count_kept

if TYPE_CHECKING:
    from wordveil.generators.training.train import Trained

# The end of a sentence: its sign, closing quotes or brackets, and space; or an empty line. RE2 cannot look behind, so a
# separator is put after the sign.
_SENTENCE_END = "([.!?\u2026][\"'\u00bb\u201d\u2019)\\]]*)\\s+|\\n\\s*\\n\\s*"


def encode_texts(texts: pa.StringArray, codec: Codec, cut: str, unknown: int) -> Piece:
    """Encode ``texts``, a string array without nulls, into sequences by ``cut``: ``sentences`` or ``windows``.

    ``unknown`` is the id of unknown words. Sequences without any other word are left out.
    """
    digests = [hashlib.blake2b(text.encode(), digest_size=8).digest() for text in texts.to_pylist()]
    hashes = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)
    if cut == "sentences":
        lines = pc.split_pattern(pc.replace_substring_regex(texts, _SENTENCE_END, "\\1\x1e"), "\x1e")
        hashes = np.repeat(hashes, np.asarray(pc.list_value_length(lines)))
        texts = lines.flatten()
    encoded = codec.encode(texts)
    ids, offsets = encoded.ids, encoded.offsets
    kept = count_kept(ids != unknown, offsets) > 0
    lengths = np.diff(offsets)
    bounds = np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64)
    return Piece(ids[np.repeat(kept, lengths)], bounds, hashes[kept])


_ROWS = 4096


def train_generator(
    section: GeneratorSection,
    observe: Callable[[Any, int], None] = lambda _row, _total: None,
    progress: Callable[[str], None] = lambda _: None,
) -> Trained:
    """Prepare the texts of a configuration and train its generator, or resume an interrupted training.

    The weights are returned, and not written; the directory of checkpoints is created. ``observe`` gets each row of
    figures and the number of steps of all epochs, ``progress`` a line about each step that begins.

    Raises :class:`wordveil.errors.PlatformError` if JAX, Flax or Optax is not installed, and
    :class:`wordveil.errors.EmbeddingError`, :class:`InputError` or :class:`GeneratorError` if the embedding or the
    texts cannot be read, or training cannot resume.
    """
    require_packages()
    from wordveil.generators.training.train import TrainingTask, train

    progress("reading the embedding")
    setting = "generator.embedding"
    embedding = embeddings.load(fetch(setting, section.embedding), section.embedding_format, progress, setting)
    shape = section.find_shape(embedding.size, embedding.dimension)
    words = digest_words(embedding.words)
    corpus = prepare_corpus(section, Vocabulary(embedding.words), words, progress)
    task = TrainingTask(shape, embedding.vectors, words, corpus, section.corpus, section.settings)
    progress("compiling")
    return train(task, section.schedule, section.directory, observe)


def prepare_corpus(
    section: GeneratorSection, vocabulary: Vocabulary, words: str, progress: Callable[[str], None] = lambda _: None
) -> Corpus:
    """Turn texts into sequences in the directory of checkpoints, or find those for the ``words`` of that digest.

    Raises :class:`InputError`, and :class:`GeneratorError` if others can read the directory of a private corpus.
    """
    create_directory(section.directory, private=True, exist_ok=True)
    is_private = section.corpus == "private"
    if is_private and (exposure := find_exposure(section.directory)):
        raise GeneratorError(f"generator.checkpoints = {section.directory}: the directory {exposure}")
    texts, policy = section.texts, section.text.policy
    progress("reading the texts")
    try:
        files = embeddings.digest_files(Path(texts.path))
    except OSError as error:
        raise InputError(f"generator.texts.path = {texts.path}: cannot be read ({error.strerror}).") from None
    source = {
        "files": files,
        **texts.model_dump(exclude={"path"}),
        "policy": policy.fingerprint,
        "length": section.shape.length,
        "words": words,
    }
    if (corpus := find_corpus(section.directory, source)) is not None:
        return corpus
    codec = Codec(policy, vocabulary)
    pieces = (encode_texts(batch, codec, texts.cut, vocabulary.unknown) for batch in read_texts(texts))
    length, share = section.shape.length, texts.validation
    return write_corpus(section.directory, pieces, length, share, source, private=is_private)


def read_texts(texts: TextsSection) -> Iterator[pa.StringArray]:
    """Yield the texts of a table, some thousand at a time and in its order.

    Raises :class:`InputError` for a table that cannot be read, and for a column that is missing or has no texts.
    """
    where = f"generator.texts.path = {texts.path}"
    try:
        table = ds.dataset(texts.path, format=texts.format)
        if texts.column not in table.schema.names:
            columns = ", ".join(table.schema.names)
            raise InputError(f"generator.texts.column = {texts.column}: no such column. {where} has: {columns}.")
        kind = table.schema.field(texts.column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise InputError(f"generator.texts.column = {texts.column}: is {kind}, and texts are needed.")
        for batch in table.to_batches(columns=[texts.column], batch_size=_ROWS):
            yield batch.column(0).drop_null().cast(pa.string())
    except (pa.ArrowException, OSError):
        # Arrow's own message may quote a text.
        raise InputError(f"{where}: cannot be read as {texts.format}. Check texts.format.") from None
