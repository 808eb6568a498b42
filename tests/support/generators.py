"""Small generators with weights of a made kind, for tests of inference."""

from __future__ import annotations

import numpy as np

from wordveil.generators.shape import GeneratorShape
from wordveil.generators.weights import GeneratorWeights

SMALL = GeneratorShape(size=150, dimension=10, cells=24, latent=14, length=7)


def make_weights(shape: GeneratorShape = SMALL, seed: int = 1, sharpness: float = 2.0) -> GeneratorWeights:
    """Make weights in steps of 1/256; ``sharpness``: about the standard deviation of logits."""
    random = np.random.default_rng(seed)
    arrays = {}
    for name, sizes in shape.arrays().items():
        whole = random.integers(-256, 257, sizes) / 256
        size = 0.3 if len(sizes) == 1 else 2.5 / np.sqrt(sizes[0])
        if name == "output":
            size = sharpness * 4 / np.sqrt(sizes[0])
        arrays[name] = (whole * (1.0 if name == "embedding" else round(size * 256) / 256)).astype(np.float32)
    return GeneratorWeights(shape, "", "public", arrays)


def make_sequences(shape: GeneratorShape = SMALL, count: int = 12, seed: int = 2) -> np.ndarray:
    """Sequences of all lengths from 0 on, with unknown words, and padding between words."""
    random = np.random.default_rng(seed)
    sequences = random.integers(0, shape.size + 2, (count, shape.length)).astype(np.int32)
    lengths = np.arange(count) % (shape.length + 1)
    random.shuffle(lengths)
    sequences[np.arange(shape.length) >= lengths[:, None]] = shape.padding
    sequences[lengths > 2, 1] = shape.padding
    return sequences
