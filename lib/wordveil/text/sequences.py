"""Sequences of word ids from texts, on which a generator is trained."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordveil.generators.training.corpus import Piece
from wordveil.text.codec import Codec
from wordveil.text.offsets import count_kept

# The end of a sentence: its sign, closing quotes or brackets, and space; or an empty line. RE2 cannot look behind, so a
# separator is put after the sign.
_SENTENCE_END = "([.!?\u2026][\"'\u00bb\u201d\u2019)\\]]*)\\s+|\\n\\s*\\n\\s*"


def encode_texts(texts: pa.StringArray, codec: Codec, cut: str, unknown: int) -> Piece:
    """Encode ``texts``, a string array without nulls, into sequences by ``cut``: ``sentences`` or ``windows``.

    ``unknown`` is the id of unknown words. Sequences without any other word are left out.
    """
    hashes = np.array([_hash(text) for text in texts.to_pylist()], np.uint64)
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


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
