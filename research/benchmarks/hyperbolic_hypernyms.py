"""How often a replacement is a hypernym of the word it replaces, by mechanism and epsilon. Part of
research/benchmarks/hyperbolic.py.

Words are those that both the hyperbolic and the demo embedding have. Figures of the exponential mechanism are exact,
from all distances; the additive ones' are of draws. The pairs hold every hypernym of each sense of a word, up to the
root, and are taken as they are: to follow them once more from word to word would mix senses, and make a third of the
vocabulary hypernyms of each word.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyperbolic_speed import lorentz_rows
from laplace_exact import ROOT
from wordveil.crypto.keys import ReleaseKeys
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.spaces import SPACES, Space
from wordveil.mechanisms.additive.hyperbolic import HyperbolicFDD, HyperbolicLaplace
from wordveil.mechanisms.additive.laplace import Laplace, LaplaceSettings
from wordveil.mechanisms.additive.tails import MAX_DIGITS
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.neighbours.blocks import BuildContext

FloatArray = NDArray[np.float64]
WORDS, DRAWS, NEIGHBOURS = 1_000, 50, 256
PAIRS = (ROOT / "lib/wordveil/data/hypernyms/pairs.tsv", ROOT.parent / "shared/demo/hypernym_pairs.tsv")
EXPONENTIAL = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
FDD = (0.25, 1.0, 4.0, 8.0, 16.0, 32.0, 64.0)
ABOVE = (0.1, 1.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Epsilons of ``hyperbolic-laplace``, counted from ``n - 1``."""
LAPLACE = (5.0, 7.5, 10.0, 12.5, 15.0, 20.0, 30.0)


def pairs() -> list[tuple[str, str]]:
    """Words and hypernyms, from the package or the folder beside the project."""
    file = next((place for place in PAIRS if place.exists()), None)
    if file is None:
        raise SystemExit(f"No pairs of words and hypernyms at {' or '.join(map(str, PAIRS))}.")
    lines = [
        line.split("\t") for line in Path(file).read_text("utf-8").splitlines() if line and not line.startswith("#")
    ]
    return [(fields[0], fields[1]) for fields in lines]


def hypernyms_of(embedding: Embedding, words: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Words that have hypernyms, evenly spread over the vocabulary, and which words are: int64 ``(words,)``, bool
    ``(words, size)``.
    """
    place = {name: number for number, name in enumerate(embedding.words.to_pylist())}
    above: dict[int, list[int]] = {}
    for word, hypernym in pairs():
        if word != hypernym and word in place and hypernym in place:
            above.setdefault(place[word], []).append(place[hypernym])
    having = sorted(above)
    chosen = [having[number * len(having) // words] for number in range(words)] if words < len(having) else having
    found = np.zeros((len(chosen), embedding.size), bool)
    for row, word in enumerate(chosen):
        found[row, above[word]] = True
    return np.array(chosen), found


def drawn(mechanism: Mechanism, chosen: NDArray[np.int64], size: int, keys: ReleaseKeys) -> FloatArray:
    """Shares of each output for each chosen word, ``(len(chosen), size)``."""
    ids = np.repeat(chosen, DRAWS).astype(np.int32)
    outputs = mechanism.draw(TokenBatch(ids, np.array([0, len(ids)]), np.zeros((1, 12), np.uint8)), keys).ids
    shares = np.zeros((len(chosen), size))
    np.add.at(shares, (np.repeat(np.arange(len(chosen)), DRAWS), outputs), 1 / DRAWS)
    return shares


def apart(space: Space, points: FloatArray, chosen: NDArray[np.int64]) -> FloatArray:
    """Distances of the chosen words from all."""
    return np.stack([space.distances(points[word], points) for word in chosen])


def law_of(scores: FloatArray, epsilon: float) -> FloatArray:
    """The exponential mechanism's law from its scores, at half of epsilon."""
    weights = np.exp(-epsilon / 2 * scores)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def measure(ball: Embedding, flat: Embedding, keys: ReleaseKeys, words: int = WORDS) -> dict[str, Any]:
    """Rows of mechanism, epsilon, true epsilon, share that stays, share of hypernyms among what changes. Both
    embeddings have the same words.
    """
    size, n = ball.size, ball.dimension
    chosen, is_above = hypernyms_of(ball, words)
    rows: list[dict[str, Any]] = []

    def add(name: str, epsilon: float, true: float, law: FloatArray) -> None:
        stays = float(law[np.arange(len(chosen)), chosen].mean())
        share = float((law * is_above).sum() / len(chosen) / (1 - stays)) if stays < 1 else None
        rows.append({"mechanism": name, "epsilon": epsilon, "true": true, "stays": stays, "hypernyms": share})

    points = lorentz_rows(ball.vectors.astype(np.float64))
    for law, epsilons in ((HyperbolicLaplace, [n - 1 + more for more in ABOVE]), (HyperbolicFDD, list(FDD))):
        for epsilon in epsilons:
            add(
                law.name,
                epsilon,
                law.true_epsilon(epsilon, n),
                drawn(law(size, epsilon, points, digits=MAX_DIGITS), chosen, size, keys),
            )
    for name, embedding in (("hyperbolic", ball), ("euclidean", flat)):
        space = SPACES[name]
        scores = apart(space, space.points(embedding.vectors), chosen)
        near = np.partition(scores, NEIGHBOURS, axis=1)[:, NEIGHBOURS, None]
        for label, used in (
            (f"exponential {name}", scores),
            (f"exponential {name}, {NEIGHBOURS} near", np.minimum(scores, near)),
        ):
            for epsilon in EXPONENTIAL:
                add(label, epsilon, epsilon, law_of(used, epsilon))
    built = Laplace.build(flat, LaplaceSettings(epsilon=1.0), padding=False, work=BuildContext())
    base = Laplace.load(flat.size, built.parameters, built.arrays)
    for epsilon in LAPLACE:
        add("laplace", epsilon, epsilon, drawn(base.at_epsilon(epsilon), chosen, size, keys))
    add("random", 0.0, 0.0, np.full((len(chosen), size), 1 / size))
    return {
        "words": size,
        "measured": len(chosen),
        "hypernyms_of_a_word": float(is_above.sum(axis=1).mean()),
        "rows": rows,
    }
