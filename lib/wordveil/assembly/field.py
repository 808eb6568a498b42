"""Public texts of the user's field, which a configuration may name: how the vectors fit them, and their words."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from wordveil.arrays import Float64
from wordveil.assembly.bundles import find_embedding
from wordveil.assembly.inputs import find_frequencies
from wordveil.assembly.passages import read_passages
from wordveil.assembly.remote import fetch
from wordveil.config.load import Config
from wordveil.config.mechanisms import MechanismSection
from wordveil.embeddings.embedding import Embedding
from wordveil.measures.field_fit import FieldFit, count_texts, measure_field_fit
from wordveil.text.stop_words import load_stop_words

_SETTING = "mechanism.texts"


def find_field_fit(config: Config, embedding: Embedding | None = None) -> FieldFit | None:
    """Measure how well the vectors fit the public texts.

    ``embedding``: that of the configuration, which is otherwise read. Returns None if no texts are named, if they have
    too few frequent words, and for hyperbolic vectors. Raises :class:`wordveil.errors.PublicFileError` for a file that
    is missing or has a fault.
    """
    texts = _read_texts(config.mechanism)
    if texts is None or (embedding := embedding or find_embedding(config)) is None:
        return None
    return measure_field_fit(texts, embedding, load_stop_words(None, config.policy.language))


def find_field_frequencies(section: MechanismSection, words: pa.StringArray) -> Float64 | None:
    """Find how frequent words are in the public texts, or else by ``mechanism.frequencies``: float64 ``(words,)``.

    The frequencies add up to 1. Returns None if neither is named. Raises as :func:`find_field_fit`.
    """
    texts = _read_texts(section)
    if texts is None:
        return find_frequencies(section.frequencies, words)
    counts = count_texts(texts, words) + 0.5
    return np.asarray(counts / counts.sum(), np.float64)


def _read_texts(section: MechanismSection) -> pa.StringArray | None:
    return None if section.texts is None else read_passages(fetch(_SETTING, section.texts), _SETTING)
