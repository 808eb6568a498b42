"""Encoder of texts by a model of the package sentence-transformers, and the nearest of the public centres.

Each text is read alone, on one thread. In a batch, texts are padded to the longest one and sums are added in another
order: one record could change the last digits of another one's vector, and thus its symbol. Vectors become whole
directions, so that the search for the nearest centre is exact (:mod:`wordveil.mechanisms.passages.encoder`).

The model's own last digits depend on processor and software, so a text between two centres may have another symbol
elsewhere. docs/proofs/passages.md shows what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from wordveil.arrays import Float32, Int32, Int64
from wordveil.errors import BundleError
from wordveil.mechanisms.passages.encoder import find_nearest
from wordveil.neighbours.clusters import whole_directions
from wordveil.scores.methods import load_sentence_model

_SETTING, _OTHERWISE = "mechanism.encoder", "vectors, passages or both"
# Public texts whose points tell another model: by its weights, its words, its cases, or how it reads numbers.
_SENTENCES = (
    "The meeting was moved to Thursday because the room is being painted.",
    "Heavy rain flooded two streets near the old harbour!",
    "She returned the blue jacket, which was too small, and got 49.90 back.",
    "how do i reset my password",
)
# The last one shows where a model stops reading.
_PROBES = (*_SENTENCES, " ".join(" ".join([sentence] * 40) for sentence in _SENTENCES))
# Other processors change a coordinate by a thousandth of this, which cutting it to a whole number may make 1.
_TOLERANCE = 1.0


@dataclass(frozen=True)
class ModelEncoder:
    """Encoder by a sentence model.

    ``name``: ``sentence-transformers:MODEL``. ``centres``: float32 ``(symbols, n)``, whole directions.
    """

    reads_text: ClassVar[bool] = True
    name: str
    centres: Float32
    model: Any = field(repr=False)

    @classmethod
    def load(cls, name: str) -> Self:
        """Load a model, without centres.

        Raises :class:`wordveil.errors.PlatformError` if the package or the model is missing.
        """
        model = load_sentence_model(_SETTING, name, _OTHERWISE, device="cpu")
        return cls(name, np.empty((0, 0), np.float32), model)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]], name: str) -> Self:
        """Load the model of a bundle. Raises :class:`BundleError` if it is another one here than in the build."""
        encoder = replace(cls.load(name), centres=arrays["centres"])
        points, built = encoder.locate(pa.array(_PROBES)), arrays["probes"]
        if points.shape != built.shape or not (np.abs(points - built) <= _TOLERANCE).all():
            raise BundleError(
                f"{_SETTING} = {name}: this machine has another model, or another version of its packages, than the "
                "machine that built the bundle. Install the same ones here, or run `wordveil build` with these in "
                "another store."
            )
        return encoder

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays that a bundle keeps: centres, and the points by which :meth:`of` recognises the model."""
        return {"centres": self.centres, "probes": self.locate(pa.array(_PROBES))}

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters that a bundle keeps."""
        return {"model": self.name}

    def locate(self, texts: pa.StringArray) -> Float32:
        """Return the point of each text, at least one: float32 ``(texts, n)``, whole directions."""
        with threadpool_limits(limits=1):
            vectors = self.model.encode(texts.to_pylist(), batch_size=1, show_progress_bar=False, convert_to_numpy=True)
        points = np.empty(vectors.shape, np.float32)
        whole_directions(np.ascontiguousarray(vectors, np.float32), points)
        return points

    def encode(self, ids: Int32, offsets: Int64, texts: pa.StringArray) -> Int32:  # noqa: ARG002 - it reads the text
        """Return the nearest centre of each text (:class:`wordveil.mechanisms.base.TextEncoder`).

        A text without a word, known or not, gets the number of centres, which stands for padding.
        """
        symbols = np.full(len(offsets) - 1, len(self.centres), np.int32)
        rows = np.flatnonzero(np.diff(offsets))
        if len(rows):
            symbols[rows] = find_nearest(self.locate(texts.take(pa.array(rows))), self.centres)[0]
        return symbols
