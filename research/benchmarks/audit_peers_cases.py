"""What audit_peers.py tests: the claims of other packages, each with a public vocabulary on which it can be tested.

Vocabularies are 200 words of the demo embedding, or points that are made so that a claim can be refuted, or so that
the draws have power where it is true: in few dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from common import load_embedding
from wordveil.mechanisms.additive.laplace import LaplaceSettings
from wordveil.mechanisms.settings import MechanismSettings
from wordveil.mechanisms.tables.exponential import ExponentialSettings
from wordveil_research.peers.audit import Case, PeerCase
from wordveil_research.peers.processes import DIFFRACTOR, MLDP_TEXT, PYPANTERA, Peer


@dataclass(frozen=True)
class OwnCase(Case):
    """A claim of this project: ``mechanism`` with ``settings``, which are ``said`` for people."""

    mechanism: str
    settings: MechanismSettings
    said: str


PANTERA = replace(PYPANTERA, script="pypantera_draws.py")
# Rows of zeros are no words for this project, so made points lie around this one.
_CENTRE = 10.0
_BETA = 0.001
Vocabulary = tuple[tuple[str, ...], NDArray[np.float32]]
Bound = Callable[[str, str], float]
EUCLIDEAN = "loss of at most epsilon times the Euclidean distance"
UNKNOWN = ("zzzyx", "qqqwv")
"""Strings that no vocabulary here has."""


def name_points(points: NDArray[np.float64]) -> Vocabulary:
    """Name points ``w0``, ``w1`` and so on."""
    return tuple(f"w{row}" for row in range(len(points))), (points + _CENTRE).astype(np.float32)


def make_plane() -> Vocabulary:
    """120 points of a plane, four times as wide as high. FAISS's index of 100 cells needs 100 points or more."""
    return name_points(np.random.default_rng(25).standard_normal((120, 2)) * [1.0, 0.25])


def make_line() -> Vocabulary:
    """21 points 0.1 apart on a line, and a hundredth of that beside it."""
    places = np.arange(-10, 11)
    return name_points(np.stack([places * 0.1, np.where(places % 2, 0.001, -0.001)], axis=1))


def make_row(count: int) -> Vocabulary:
    """Make points one after the other, so that a greedy walk from the first one visits them in this order."""
    return name_points(np.stack([np.arange(count), np.zeros(count)], axis=1))


def make_triangle() -> Vocabulary:
    """Three points; the third is a little further from the first one than the second is."""
    return name_points(np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.8662]]))


def make_spread() -> Vocabulary:
    """Four points on a line: two close ones, and two far ones on one side."""
    return name_points(np.array([[0.0, 0.0], [0.2, 0.0], [-1.0, 0.0], [-2.0, 0.0]]))


def make_rim(near: int, far: int, gamma: float, step: float) -> Vocabulary:
    """Two points ``step`` apart, ``near`` ones within ``gamma`` of both, and ``far`` ones within it of the first alone.

    All others are as far as that allows, so that the first two are the likeliest outputs.
    """
    inside = gamma - 2 * step - np.arange(near) * step / (4 * max(near, 1))
    outside = -(gamma - step / 2 - np.arange(far) * step / (4 * far))
    places = np.concatenate([[0.0, step], inside, outside])
    return name_points(np.stack([places, np.zeros(len(places))], axis=1))


@cache
def take_demo() -> Vocabulary:
    """Take the first 200 words of the demo embedding, 100 dimensions."""
    embedding = load_embedding("demo")
    return tuple(embedding.words.to_pylist()[:200]), embedding.vectors[:200]


def bound_euclidean(vocabulary: Vocabulary, epsilon: float) -> Bound:
    """Epsilon times the Euclidean distance between two words, in nats."""
    return bound_mahalanobis(vocabulary, epsilon, np.eye(vocabulary[1].shape[1]))


def bound_mahalanobis(vocabulary: Vocabulary, epsilon: float, matrix: NDArray[np.float64]) -> Bound:
    """Epsilon times the distance ``sqrt(z' inverse(matrix) z)`` between two words, in nats."""
    places = dict(zip(vocabulary[0], vocabulary[1].astype(np.float64), strict=True))
    inverse = np.linalg.inv(matrix)

    def bound(first: str, second: str) -> float:
        gap = places[first] - places[second]
        return epsilon * math.sqrt(gap @ inverse @ gap)

    return bound


def bound_row(epsilon: float, furthest: float, first: str, second: str) -> float:
    """Epsilon times the number of places between two words of :func:`make_row`, or ``furthest`` where it is less."""
    return epsilon * min(abs(int(first[1:]) - int(second[1:])), furthest)


def bound_constant(value: float, first: str, second: str) -> float:  # noqa: ARG001 - the same for all words
    """Bound the same loss for all words, in nats."""
    return value


def find_near(vocabulary: Vocabulary, count: int) -> tuple[tuple[str, str], ...]:
    """Find the words furthest from the mean, each with its nearest neighbour."""
    words, points = vocabulary
    out = np.argsort(-np.linalg.norm(points - points.mean(axis=0), axis=1))[:count]
    gaps = np.linalg.norm(points[out, None].astype(np.float64) - points, axis=2)
    gaps[np.arange(count), out] = np.inf
    return tuple((words[one], words[other]) for one, other in zip(out, gaps.argmin(axis=1), strict=True))


def find_apart(vocabulary: Vocabulary, distance: float, count: int) -> tuple[tuple[str, str], ...]:
    """Find the first words, each with the one whose distance is nearest to ``distance``."""
    words, points = vocabulary
    gaps = np.linalg.norm(points[:count, None].astype(np.float64) - points, axis=2)
    return tuple((words[one], words[other]) for one, other in enumerate(np.abs(gaps - distance).argmin(axis=1)))


def list_cases() -> list[PeerCase]:
    """List all cases, in the order of the page."""
    return [*list_mldp_text(), *list_diffractor(), *list_pypantera()]


def list_own_cases() -> list[OwnCase]:
    """Mechanisms of this project on the same words, with its own claims."""
    plane, rim = make_plane(), make_rim(0, 28, find_rounded_gamma(2.0, 30), 0.02)
    laplace = LaplaceSettings(epsilon=2.0)
    gamma = find_rounded_gamma(2.0, 30)
    whole = ExponentialSettings(epsilon=2.0, gamma=gamma)
    lists = ExponentialSettings(epsilon=2.0, gamma=3.0, neighbours=4)
    claim = "loss of at most epsilon times the Euclidean distance"
    capped = "loss of at most epsilon times the smaller of the Euclidean distance and gamma"
    euclidean = bound_euclidean(plane, 2.0)
    return [
        OwnCase(
            *("wordveil-laplace-plane", *plane, find_apart(plane, 0.75, 2), euclidean, claim, 40_000),
            *("laplace", laplace, "none"),
        ),
        OwnCase(
            *("wordveil-exponential-rim", *rim, (("w0", "w1"),), bound_euclidean(rim, 2.0), capped, 1_000_000),
            *("exponential", whole, f"gamma={gamma}"),
        ),
        OwnCase(
            *("wordveil-exponential-lists", *plane, (*find_apart(plane, 0.75, 2), *find_near(plane, 3))),
            *(euclidean, capped, 200_000, "exponential", lists, "gamma=3.0, neighbours=4"),
        ),
    ]


def list_mldp_text() -> Iterator[PeerCase]:
    """mldp-text 0.1.2."""
    plane, demo = make_plane(), take_demo()
    case = partial(_make, MLDP_TEXT)
    laplace = f"{EUCLIDEAN} (Feyisetan et al. 2020, which its README names for this mechanism)"
    name = "multivariate_calibrated"
    yield case(name, "plane", 2.0, plane, find_apart(plane, 0.75, 2), laplace)
    yield case(name, "demo", 1.0, demo, find_near(demo, 2), laplace, draws=500)
    unknown = "none is stated for words outside the vocabulary; tested is a loss of 5 nats"
    yield case(name, "unknown", 2.0, plane, (UNKNOWN,), unknown, draws=2_000, bound=partial(bound_constant, 5.0))
    matrix = np.cov(plane[1], rowvar=False) / np.var(plane[1])
    regular = 0.2 * matrix + 0.8 * np.eye(2)
    mahalanobis = (
        "loss of at most epsilon times the regularised Mahalanobis distance, of the matrix that it computes "
        "(Xu et al. 2020, which its README names)"
    )
    bound = bound_mahalanobis(plane, 2.0, regular)
    yield case("mahalanobis", "plane", 2.0, plane, find_apart(plane, 0.75, 2), mahalanobis, bound=bound)
    vickrey = f"{EUCLIDEAN} (Xu et al. 2021, which its README names)"
    spread = make_spread()
    exact = {"use_faiss": False}
    yield case("vickrey", "spread", 0.5, spread, (("w0", "w1"),), vickrey, options=exact, draws=2_000)
    yield case("vickrey", "plane", 2.0, plane, find_near(plane, 3), vickrey, draws=2_000)
    tem = f"{EUCLIDEAN} (Carvalho et al. 2023, which its README names)"
    rim = make_rim(0, 28, find_rounded_gamma(2.0, 30), 0.02)
    yield case("tem", "rim", 2.0, rim, (("w0", "w1"),), tem, draws=2_000)
    rim = make_rim(23, 75, find_rounded_gamma(2.0, 100), 0.02)
    far = rim[0][25:]
    yield case(
        *("tem", "rim-own-words", 2.0, rim, (("w0", "w1"),), tem),
        draws=100_000,
        event=far,
        options={"own_words": True},
    )
    gumbel = f"{EUCLIDEAN} (Xu et al. 2021b, FLAIRS, which its README names)"
    triangle = make_triangle()
    sides = {"max_inter_dist": 1.0003, "min_inter_dist": 1.0}
    yield case(
        *("truncated_gumbel", "triangle", 7.3, triangle, (("w2", "w0"),), gumbel),
        draws=30_000,
        event=("w2",),
        options={**sides, **exact},
    )
    for kind in ({}, exact):
        yield case(
            *("truncated_gumbel", f"plane-{'exact' if kind else 'faiss'}", 2.0, plane, find_near(plane, 3), gumbel),
            draws=2_000,
            options={**find_sides(plane), **kind},
        )


def list_diffractor() -> Iterator[PeerCase]:
    """dp-diffractor 0.2.1."""
    row = make_row(200)
    case = partial(_make, DIFFRACTOR)
    line = "loss of at most epsilon times the number of places between two words of the line (1-Diffractor, 2024)"
    pairs = (("w100", "w101"), ("w0", "w1"), ("w50", "w52"), ("w0", "w199"))
    near = partial(bound_row, 1.0, math.inf)
    yield case("geometric", "row", 1.0, row, pairs[:3], line, bound=near, draws=40_000)
    restarted = {"restarted": True}
    yield case("geometric", "restarted", 1.0, row, pairs[:1], line, bound=near, draws=400, options=restarted)
    kept = {"replace_stopwords": False, "kept_words": ["w0"]}
    yield case("geometric", "stop-words", 1.0, row, pairs[1:2], line, bound=near, draws=2_000, options=kept)
    unknown = "none is stated for words outside the line; tested is a loss of 5 nats"
    yield case("geometric", "unknown", 1.0, row, (UNKNOWN,), unknown, draws=2_000, bound=partial(bound_constant, 5.0))
    tem = "loss of at most epsilon times the number of places, and of at most epsilon times gamma (1-Diffractor, 2024)"
    yield case(
        "TEM", "row", 1.0, row, (*pairs[:3], ("w20", "w23")), tem, bound=partial(bound_row, 1.0, 5.0), draws=20_000
    )


def list_pypantera() -> Iterator[PeerCase]:
    """pypantera 1.0.2."""
    plane, line = make_plane(), make_line()
    case = partial(_make, PANTERA)
    apart = find_apart(plane, 0.75, 2)
    yield case("CMP", "plane", 2.0, plane, apart, f"{EUCLIDEAN} (Feyisetan et al. 2020, which it cites)")
    unknown = "unknown words are alike; tested is a loss of 0.2 nats"
    yield case("CMP", "unknown", 2.0, plane, (UNKNOWN,), unknown, bound=partial(bound_constant, 0.2))
    matrix = np.cov(line[1].T, ddof=0) / np.mean(np.var(line[1], axis=0))
    mahalanobis = "loss of at most epsilon times the Mahalanobis distance, of the matrix that it computes"
    for name, options in (("Mahalanobis", {"lam": 1.0}), ("VickreyMhl", {"lam": 1.0, "t": 0.75})):
        claim = f"{mahalanobis} ({'Xu et al. 2020' if name == 'Mahalanobis' else 'Xu et al. 2021'}, which it cites)"
        bound = bound_mahalanobis(line, 2.0, matrix)
        yield case(name, "line", 2.0, line, (("w10", "w12"),), claim, bound=bound, draws=5_000, options=options)
    vickrey = f"{EUCLIDEAN} (Xu et al. 2021, which it cites)"
    yield case("VickreyCMP", "plane", 2.0, plane, apart, vickrey, options={"t": 0.75})
    custext = "loss of at most epsilon between any two words (its README: epsilon-differential privacy)"
    # This script gives it vectors in float64. In its float32 NumPy refuses the probabilities of some words.
    yield _make(
        *(PYPANTERA, "CusText", "plane", 1.0, plane, find_near(plane, 2), custext),
        bound=partial(bound_constant, 1.0),
        draws=1_500,
        options={"k": 10, "distance": "euclidean"},
    )
    yield case("SanText", "plane", 2.0, plane, apart, f"{EUCLIDEAN} (Yue et al. 2021, which it cites)")
    rim = make_rim(0, 28, 2 / 2.0 * math.log((1 - _BETA) * 29 / _BETA), 0.02)
    yield case(
        *("TEM", "rim", 2.0, rim, (("w0", "w1"),), f"{EUCLIDEAN} (Carvalho et al. 2023, which it cites)"),
        draws=60_000,
        event=rim[0][2:],
        options={"beta": _BETA},
    )


def find_rounded_gamma(epsilon: float, words: int) -> float:
    """mldp-text's gamma."""
    return round(2 / epsilon * math.log((1 - _BETA) * words / _BETA), 1)


def find_sides(vocabulary: Vocabulary) -> dict[str, float]:
    """Find the least and the largest distance between two words, as mldp-text's ``truncated_gumbel`` takes them."""
    points = vocabulary[1].astype(np.float64)
    gaps = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(len(points), 1)]
    return {"min_inter_dist": float(gaps.min()), "max_inter_dist": float(gaps.max())}


def _make(
    peer: Peer,
    mechanism: str,
    kind: str,
    epsilon: float,
    vocabulary: Vocabulary,
    pairs: tuple[tuple[str, str], ...],
    claim: str,
    *,
    draws: int = 3_000,
    bound: Bound | None = None,
    **settings: object,
) -> PeerCase:
    name = f"{peer.name}-{mechanism}-{kind}"
    bound = bound or bound_euclidean(vocabulary, epsilon)
    return PeerCase(name, *vocabulary, pairs, bound, claim, draws, peer, mechanism, epsilon, **settings)
