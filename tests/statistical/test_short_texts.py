"""Every pair of short texts: the record pipeline's loss, computed, stays under the bound that it states.

The vocabulary has three words on a line, so padding makes it a plane. All texts of up to three tokens go through the
real codec under the `strict` profile with ``n_max`` 2; the tokens are words, an unknown word, mere punctuation and
nothing. A token's output probabilities are integrals of the true density ``epsilon^2 / (2 pi) exp(-epsilon r)`` over
the Voronoi cells of the points in the bundle: along a ray from the input a cell is an interval, the radius has the
Gamma law, and rays are summed over the circle. From them follows the law of the text that is written, padding dropped.

The real pipeline, over many records of one text, follows that law and not the law of a third more epsilon. A policy
that drops unknown words without padding has infinite loss by the same computation.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from support.intervals import p_value
from support.toys import bundle_points, laplace_bundle, record_batch, record_sanitiser, sanitise, toy_embedding
from wordveil.artifacts.bundle import Bundle
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy, with_profile

FloatArray = NDArray[np.float64]
Symbols = tuple[int, ...]

WORDS = ("ant", "bee", "cow")
LINE = [-1.0, 0.3, 1.5]
PAD, UNKNOWN = 3, 4
EPSILON, N_MAX = 1.5, 2
TOKENS = ("ant", "Bee", "cow", "zebra", "?!", "")
TEXTS = sorted({" ".join(parts) for count in range(4) for parts in itertools.product(TOKENS, repeat=count)})
RAYS = 40_000

SEQUENCE = with_profile("strict", n_max=N_MAX)
BAG = with_profile("strict", n_max=N_MAX, output="bag")
SAMPLED = TextPolicy(length="sample", n_max=N_MAX)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@cache
def make(store: Path, *, padding: bool) -> Bundle:
    return laplace_bundle(store, toy_embedding(WORDS, LINE), EPSILON, padding=padding)


# Laws of one token.


def plane_law(points: FloatArray, candidates: int, epsilon: float) -> FloatArray:
    """P(output | input) for points ``(count, 2)``: ``(count, candidates)``."""
    angle = (np.arange(RAYS) + 0.5) * (2 * np.pi / RAYS)
    ray = np.stack([np.cos(angle), np.sin(angle)])
    law = np.empty((len(points), candidates))
    for row, point in enumerate(points):
        for output in range(candidates):
            start, stop = interval(point, ray, points[:candidates], output)
            mass = stats.gamma.cdf(stop, 2, scale=1 / epsilon) - stats.gamma.cdf(start, 2, scale=1 / epsilon)
            law[row, output] = np.where(stop > start, mass, 0.0).mean()
    return law


def interval(point: FloatArray, ray: FloatArray, candidates: FloatArray, output: int) -> tuple[FloatArray, FloatArray]:
    """Where each ray from ``point`` runs through the cell of ``output``: from and to which radius."""
    start, stop = np.zeros(ray.shape[1]), np.full(ray.shape[1], np.inf)
    for other in np.delete(candidates, output, axis=0):
        # |z - output|^2 <= |z - other|^2 at z = point + r ray, that is slope * r <= room.
        away = other - candidates[output]
        room = (other @ other - candidates[output] @ candidates[output]) / 2 - point @ away
        slope = away @ ray
        with np.errstate(divide="ignore"):
            bound = room / slope
        stop = np.where(slope > 0, np.minimum(stop, bound), stop)
        start = np.where(slope < 0, np.maximum(start, bound), start)
    return start, stop


def line_law(points: FloatArray, candidates: int, epsilon: float) -> FloatArray:
    """The same on a line: the Laplace law between the mid-points."""
    order = np.argsort(points[:candidates, 0])
    inner = points[order, 0]
    edges = np.concatenate([[-np.inf], (inner[1:] + inner[:-1]) / 2, [np.inf]])
    law = np.empty((len(points), candidates))
    law[:, order] = np.diff(stats.laplace.cdf(edges, points, 1 / epsilon), axis=1)
    return law


@cache
def token_law(store: Path, epsilon: float = EPSILON, *, padding: bool) -> FloatArray:
    points = bundle_points(make(store, padding=padding))
    return plane_law(points, 4, epsilon) if padding else line_law(points, 3, epsilon)


# Laws of one text. A law is a vector over `outputs`, all texts of up to N_MAX words.


OUTPUTS: list[Symbols] = [words for count in range(N_MAX + 1) for words in itertools.product(range(3), repeat=count)]


@cache
def written(drawn: Symbols) -> int:
    """The text that drawn symbols give, padding dropped."""
    return OUTPUTS.index(tuple(symbol for symbol in drawn if symbol != PAD))


def sequence_law(ids: Symbols, law: FloatArray) -> FloatArray:
    total = np.zeros(len(OUTPUTS))
    for drawn in itertools.product(range(law.shape[1]), repeat=len(ids)):
        total[written(drawn)] += np.prod([law[symbol, output] for symbol, output in zip(ids, drawn, strict=True)])
    return total


def bag_law(ids: Symbols, law: FloatArray) -> FloatArray:
    """The mean over all orders: the shuffle is uniform, and drawing before or after it is the same."""
    return np.mean([sequence_law(order, law) for order in itertools.permutations(ids)], axis=0)


def sampled_law(ids: Symbols, law: FloatArray) -> FloatArray:
    picks = list(itertools.product(ids or (UNKNOWN,), repeat=N_MAX))
    return np.mean([sequence_law(pick, law) for pick in picks], axis=0)


LAWS = {"sequence": (SEQUENCE, sequence_law), "bag": (BAG, bag_law), "sampled": (SAMPLED, sampled_law)}


# Losses and distances.


def canonical(policy: TextPolicy, bundle: Bundle, texts: list[str]) -> list[Symbols]:
    """The ids that the mechanism sees, by the real codec."""
    encoded = Codec(policy, bundle.vocabulary).encode(pa.array(texts, pa.string()))
    assert not (encoded.refused != None).any()  # noqa: E711 - elementwise
    bounds = zip(encoded.offsets[:-1], encoded.offsets[1:], strict=True)
    return [tuple(encoded.ids[start:stop].tolist()) for start, stop in bounds]


def loss_table(laws: FloatArray) -> FloatArray:
    """``loss[a, b]``: the largest log ratio of law ``a`` to law ``b`` over texts."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(laws)[:, None, :] - np.log(laws)[None, :, :]
    return np.where(laws[:, None, :] > 0, ratios, -np.inf).max(axis=2)


def distances(bundle: Bundle) -> FloatArray:
    points = bundle_points(bundle)
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def sequence_distance(left: Symbols, right: Symbols, d: FloatArray) -> float:
    return float(d[left, right].sum())


def bag_distance(left: Symbols, right: Symbols, d: FloatArray) -> float:
    """N times the Earth Mover's distance with masses 1/N: the cheapest matching."""
    return min(sequence_distance(order, right, d) for order in itertools.permutations(left))


def sampled_distance(left: Symbols, right: Symbols, d: FloatArray) -> float:
    """``N_MAX`` times the bottleneck distance. On a line it matches quantiles; 12 parts divide up to four words."""
    place = np.append(LINE, [np.nan, np.mean(LINE)])
    quantiles = [np.repeat(np.sort(place[list(ids or (UNKNOWN,))]), 12 // max(len(ids), 1)) for ids in (left, right)]
    return N_MAX * float(np.abs(quantiles[0] - quantiles[1]).max())


DISTANCES = {"sequence": sequence_distance, "bag": bag_distance, "sampled": sampled_distance}


def stated_pure(bundle: Bundle, policy: TextPolicy) -> float | None:
    table = sanitise(record_sanitiser(bundle, policy), record_batch(["ant bee"]))
    return table.column("privacy")[0].as_py()["epsilon_pure"]


# The tests.


@pytest.mark.parametrize("padding", [False, True])
def test_token_law_is_a_law_and_private(padding: bool, store: Path) -> None:
    bundle = make(store, padding=padding)
    law = token_law(store, padding=padding)
    used = [row for row in range(5) if padding or row != PAD]
    assert np.allclose(law.sum(axis=1), 1, atol=1e-9)
    losses = loss_table(law[used])
    allowed = EPSILON * distances(bundle)[np.ix_(used, used)]
    assert (losses <= allowed + 1e-6).all()
    assert (losses > allowed / 2)[allowed > 0].any()


@pytest.mark.parametrize("form", list(LAWS))
def test_loss_of_every_pair_is_bounded(form: str, store: Path) -> None:
    policy, text_law = LAWS[form]
    bundle = make(store, padding=policy.pads)
    ids = sorted(set(canonical(policy, bundle, TEXTS)))
    if form == "sequence":
        words = (0, 1, 2, UNKNOWN)
        assert {*ids} == {*itertools.product(words, repeat=2), *((word, PAD) for word in words), (PAD, PAD)}
    law = token_law(store, padding=policy.pads)
    losses = loss_table(np.stack([text_law(symbols, law) for symbols in ids]))
    pure = stated_pure(bundle, policy)
    assert pure == pytest.approx(N_MAX * EPSILON * bundle.guarantee.diameter)
    assert pure >= N_MAX * EPSILON * distances(bundle).max()
    assert losses.max() <= pure
    assert losses.max() > pure / 4, "the bound would say nothing about this pipeline"
    d = distances(bundle)
    allowed = np.array([[EPSILON * DISTANCES[form](left, right, d) for right in ids] for left in ids])
    assert (losses <= allowed + 1e-6).all()


def output_counts(bundle: Bundle, policy: TextPolicy, text: str, records: int) -> NDArray[np.int64]:
    table = sanitise(record_sanitiser(bundle, policy), record_batch([text] * records))
    names = {" ".join(WORDS[word] for word in words): row for row, words in enumerate(OUTPUTS)}
    drawn = [names[value] for value in table.column("text").to_pylist()]
    return np.bincount(drawn, minlength=len(OUTPUTS))


@pytest.mark.parametrize("text", ["", "zebra ant", "cow Bee ?! ant"])
@pytest.mark.parametrize("form", list(LAWS))
def test_pipeline_follows_the_law(form: str, text: str, store: Path) -> None:
    policy, text_law = LAWS[form]
    bundle = make(store, padding=policy.pads)
    ids = canonical(policy, bundle, [text])[0]
    counts = output_counts(bundle, policy, text, 40_000)
    assert p_value(counts, text_law(ids, token_law(store, padding=policy.pads))) > 1e-4
    assert p_value(counts, text_law(ids, token_law(store, EPSILON * 4 / 3, padding=policy.pads))) < 1e-6


@pytest.mark.parametrize("form", list(LAWS))
def test_refused_text_follows_the_law_of_the_empty_text(form: str, store: Path) -> None:
    """With ``refused: empty`` a text that cannot be cut into words is released like the empty one, so nothing tells
    it.
    """
    policy, text_law = LAWS[form]
    policy = replace(policy, refused="empty")
    bundle = make(store, padding=policy.pads)
    assert policy.exposes == ()
    law = text_law((PAD,) * N_MAX if policy.pads else (), token_law(store, padding=policy.pads))
    assert p_value(output_counts(bundle, policy, "\u6f22\u5b57\u6f22\u5b57 ant", 20_000), law) > 1e-4


def test_dropping_unknown_words_unpadded_has_infinite_loss(store: Path) -> None:
    bundle = make(store, padding=False)
    policy = TextPolicy(unknown="drop")
    ids = canonical(policy, bundle, ["ant zebra", "ant bee"])
    assert [len(symbols) for symbols in ids] == [1, 2]
    law = token_law(store, padding=False)
    assert loss_table(np.stack([sequence_law(symbols, law) for symbols in ids])).max() == np.inf
    assert stated_pure(bundle, policy) is None
