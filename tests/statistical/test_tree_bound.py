"""Nested clusters keep the losses that are recorded of them, by Python's whole numbers.

Random small vocabularies are built as a user builds them. :mod:`exact_trees` reads the finished arrays, and the loss of
every pair of symbols is compared with what the bundle says. Broken builds show that the certificate and this reading
find what they look for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.exact_tables import MARGIN, losses, symbols
from support.exact_trees import place_law, written_law
from support.toys import build, random_embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.tree.levels import Mixture, certify_levels, round_loss, solve_levels
from wordveil.mechanisms.tree.table import TreeTable

HYPERNYM = {"output": "hypernym", "pairs": "demo"}
CASES: list[dict[str, Any]] = [
    {"size": 40, "epsilon": 3.0, "sizes": (4,)},
    {"size": 43, "epsilon": 3.0, "sizes": (4,)},
    {"size": 41, "epsilon": 6.85, "sizes": (1,)},
    {"size": 3, "epsilon": 6.0, "sizes": (1, 2), "losses": (0.0, 1.0)},
    {"size": 7, "epsilon": 6.0, "sizes": (1, 2), "losses": (0.0, 2.0)},
    {"size": 64, "epsilon": 5.0, "sizes": (2, 8, 32), "losses": (0.0, 1.0, 3.0)},
    {"size": 61, "epsilon": 5.0, "sizes": (1, 4, 17), "losses": (0.0, 0.5, 3.5)},
    {"size": 67, "epsilon": 0.01, "sizes": (3, 9), "losses": (0.0, 0.002)},
    {"size": 47, "epsilon": 1e-9, "sizes": (5,)},
    {"size": 47, "epsilon": 40.0, "sizes": (5,)},
    {"size": 47, "epsilon": 700.0, "sizes": (2, 9), "losses": (0.0, 30.0)},
    {"size": 53, "epsilon": 4.0, "sizes": (2, 8), "losses": (0.0, 0.0)},
    {"size": 53, "epsilon": 4.0, "sizes": (2, 8), "losses": (0.0, 4.0)},
    {"size": 59, "epsilon": 4.0, "sizes": (2, 5, 15), "losses": (0.0, 2.0, 2.0), "output": "member"},
    {"size": 90, "epsilon": 3.0, "clusters": (7,), "least": 3},
    {"size": 90, "epsilon": 5.0, "clusters": (13, 4), "least": 2, "losses": (0.0, 2.0), "weight": 1.0},
    {"size": 90, "epsilon": 5.0, "clusters": (30, 12, 3), "least": 1, "losses": (0.0, 0.0, 2.0), "weight": 0.0},
    {"size": 41, "epsilon": 6.85, "clusters": (41,), "least": 1},
    {"size": 90, "epsilon": 3.0, "clusters": (12,), "least": 3, **HYPERNYM},
    {"size": 90, "epsilon": 5.0, "clusters": (13, 4), "least": 2, "losses": (0.0, 2.0), **HYPERNYM},
]


def built(case: dict[str, Any], *, padding: bool) -> MechanismArtifact:
    settings = {name: value for name, value in case.items() if name != "size"}
    return build(random_embedding(case["size"], 4), settings, padding=padding, mechanism="tree")


def meeting_levels(artifact: MechanismArtifact, size: int) -> np.ndarray:
    """The level of the lowest common cluster of each two words, by the bounds that the bundle keeps."""
    rows, bounds = artifact.arrays["rows"][:size], artifact.arrays["bounds"].tolist()
    counts = artifact.parameters["counts"]
    level = np.full((size, size), len(counts) - 1)
    lowest = np.array(bounds[: counts[0] + 1])
    first = 0
    spans = []
    for count in counts[:-1]:
        spans.append(np.array(bounds[first : first + count + 1]))
        first += count + 1
    for number, edges in reversed([*enumerate(spans)]):
        cluster = np.searchsorted(edges, lowest[rows], side="right")
        level[cluster[:, None] == cluster] = number
    return level


def losses_of(artifact: MechanismArtifact, size: int, *, padding: bool) -> np.ndarray:
    """The exact loss of every two symbols."""
    return losses([place_law(artifact.arrays, symbol) for symbol in symbols(size, padding=padding)])[0]


def findings(artifact: MechanismArtifact, found: np.ndarray, size: int) -> list[str]:
    """What of the recorded losses these break."""
    levels = meeting_levels(artifact, size)
    broken = []
    for level, allowed in enumerate(artifact.parameters["level_losses"]):
        worst = found[:size, :size][levels == level].max(initial=0)
        if worst > allowed + (MARGIN if allowed else 0):
            broken.append(f"level {level}: {worst} over {allowed}")
    if found.max() > artifact.guarantee.epsilon + MARGIN:
        broken.append(f"{found.max()} over epsilon = {artifact.guarantee.epsilon}")
    return broken


def breaks(artifact: MechanismArtifact, size: int, *, padding: bool) -> list[str]:
    return findings(artifact, losses_of(artifact, size, padding=padding), size)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_losses_of_all_pairs_are_within_the_recorded_and_near(case, padding):
    artifact, size = built(case, padding=padding), case["size"]
    found, recorded = losses_of(artifact, size, padding=padding), artifact.parameters["level_losses"]
    assert findings(artifact, found, size) == []
    wished = [*(case.get("losses") or (0.0,)), case["epsilon"]]
    assert all(loss <= wish for loss, wish in zip(recorded, wished, strict=True))
    assert artifact.guarantee.epsilon <= case["epsilon"] == artifact.guarantee.nominal_epsilon
    if case["epsilon"] < 40:
        assert artifact.guarantee.epsilon >= case["epsilon"] * (1 - 1e-6)
    # The largest and the smallest of the sizes that differ by one need not meet.
    share = 0.97 if len(artifact.arrays["thresholds"]) > 3 else 1 - 1e-6
    assert found.max() >= artifact.guarantee.epsilon * share
    levels = meeting_levels(artifact, size)
    for level, loss in enumerate(recorded):
        assert found[:size, :size][levels == level].max() >= loss * share - 1e-12
    assert not found[:size, :size][levels == 0].any(), "words of a lowest cluster have the same law"


EVEN = {"size": 64, "epsilon": 5.0, "sizes": (2, 8, 32), "losses": (0.0, 1.0, 3.0), "output": "member"}


def test_clusters_of_any_size_give_randomised_response():
    artifact = built({"size": 90, "epsilon": 3.0, "clusters": (7,), "least": 3}, padding=False)
    sizes = np.diff(artifact.arrays["bounds"])
    assert sizes.min() >= 3
    assert sizes.max() > sizes.min() + 3
    for word in range(90):
        law = np.array(place_law(artifact.arrays, word), np.float64) / 2.0**128
        own = artifact.arrays["rows"][word]
        assert law[own] == pytest.approx(math.exp(3) / (math.exp(3) + 6), rel=1e-9)
        assert np.delete(law, own) == pytest.approx(np.full(6, 1 / (math.exp(3) + 6)), rel=1e-9)


def test_a_member_is_drawn_by_public_frequency():
    artifact = built({"size": 90, "epsilon": 3.0, "clusters": (7,), "least": 5, "output": "member"}, padding=True)
    law = np.array(written_law(artifact.arrays, 91), np.float64) / 2.0**192
    frequencies = 1 / np.arange(1, 91)
    rows = artifact.arrays["rows"][:90]
    for cluster in range(7):
        inside = rows == cluster
        share = law[:90][inside] / law[:90][inside].sum()
        assert share == pytest.approx(frequencies[inside] / frequencies[inside].sum(), rel=1e-9)


def test_padding_stays_as_often_as_epsilon_allows():
    case = {"size": 43, "epsilon": 3.0, "sizes": (4,)}
    artifact = built(case, padding=True)
    laws = {symbol: np.array(place_law(artifact.arrays, symbol), np.float64) / 2.0**128 for symbol in (0, 43, 44)}
    stays, comes = laws[43][43], laws[0][43]
    assert laws[44][43] == comes
    assert math.log(stays / comes) == pytest.approx(3.0, abs=1e-9)
    # The other side: a word that is drawn for its own cluster's, against padding.
    likeliest = max(max(place_law(artifact.arrays, word)[:43]) for word in range(43)) / 2.0**128
    assert math.log(likeliest / min(laws[43][:43])) == pytest.approx(3.0, abs=1e-6)
    with pytest.raises(BundleError, match=r"mechanism.pad_share = 0.99: .* at most (\S+)\. ") as told:
        built({**case, "pad_share": 0.99}, padding=True)
    largest = float(str(told.value).split("at most ")[1].split(". ")[0])
    assert largest == pytest.approx(stays, rel=1e-5)
    assert breaks(built({**case, "pad_share": largest}, padding=True), 43, padding=True) == []
    half = built({**case, "pad_share": largest / 2}, padding=True)
    assert place_law(half.arrays, 43)[43] / 2.0**128 == pytest.approx(largest / 2, rel=1e-9)


# Broken builds.


def broken_table(artifact: MechanismArtifact, **changes: np.ndarray) -> MechanismArtifact:
    return replace(artifact, arrays={**artifact.arrays, **changes})


def certified(artifact: MechanismArtifact) -> list[float]:
    return [round_loss(loss) for loss in TreeTable.of(artifact.arrays).certify().levels]


UNEVEN = {"size": 43, "epsilon": 3.0, "sizes": (4,)}
DEEP = {"size": 61, "epsilon": 5.0, "sizes": (1, 4, 17), "losses": (0.0, 0.5, 3.5)}


def test_sizes_that_differ_and_are_priced_as_equal_are_caught():
    artifact = built(UNEVEN, padding=False)
    shapes = {TreeTable.of(artifact.arrays).mixture(row).sizes for row in range(artifact.parameters["counts"][0])}
    assert shapes == {(3, 43), (4, 43)}
    (numbers,) = solve_levels([(4, 43)], [0.0, 3.0], padding=False).words
    largest_first = max(numbers.numbers) == numbers.numbers[0]
    thresholds = artifact.arrays["thresholds"].copy()
    thresholds[:2] = numbers.numbers[0 if largest_first else 1]
    broken = broken_table(artifact, thresholds=thresholds)
    assert certified(broken)[1] > 3 + 0.1
    assert breaks(broken, 43, padding=False) != []
    assert certified(artifact) == artifact.parameters["level_losses"]


def test_levels_that_fall_are_refused_and_swapped_caught():
    with pytest.raises(ValueError, match="must rise"):
        solve_levels([(2, 6, 20)], [0.0, 3.0, 2.0], padding=False)
    artifact = built(EVEN, padding=False)
    first, *others = (artifact.arrays["ranges"][:-2, place].copy() for place in range(4))
    swapped = artifact.arrays["ranges"].copy()
    swapped[:-2] = np.stack([others[0], first, *others[1:]], axis=1)
    broken = broken_table(artifact, ranges=swapped)
    assert breaks(broken, 64, padding=False) != []
    worse = zip(certified(broken), artifact.parameters["level_losses"], strict=True)
    assert any(loss > recorded + 1e-3 for loss, recorded in worse)


@pytest.mark.parametrize("padding", [False, True])
@pytest.mark.parametrize("shape", [UNEVEN, DEEP], ids=["uneven", "deep"])
def test_the_certificate_covers_whatever_the_thresholds_are(shape, padding):
    """Bits of thresholds are changed at random: the certificate says what the broken arrays lose, or refuses them."""
    certified = 0
    artifact = built(shape, padding=padding)
    for seed in range(15):
        rng = np.random.default_rng(seed)
        thresholds = artifact.arrays["thresholds"].copy()
        index = tuple(int(rng.integers(length)) for length in thresholds.shape)
        thresholds[index] ^= np.uint64(2 ** int(rng.integers(45, 64)))
        broken = broken_table(artifact, thresholds=thresholds)
        try:
            told = TreeTable.of(broken.arrays).certify()
        except ValueError:
            continue
        exact = losses_of(broken, shape["size"], padding=padding)
        assert exact.max() <= float(told.largest) + MARGIN, seed
        certified += 1
    assert certified > 0


ANY = {"size": 90, "epsilon": 3.0, "clusters": (7,), "least": 3}


@pytest.mark.parametrize("row", [2, 7, 8], ids=["word", "padding", "unknown"])
def test_ranges_that_are_no_hierarchy_are_refused(row):
    """A cluster is missing from the draw outside, or a range is moved."""
    artifact = built(ANY, padding=True)
    ranges = artifact.arrays["ranges"].copy()
    ranges[row, ranges[row, :, 1] == 7, 1] = 6
    broken = broken_table(artifact, ranges=ranges)
    assert breaks(broken, 90, padding=True) != []
    with pytest.raises(ValueError, match="not nested clusters"):
        certified(broken)
    artifact = built(UNEVEN, padding=False)
    ranges = artifact.arrays["ranges"].copy()
    ranges[row % 7, ranges[row % 7, :, 1] < 43, 0] += 1
    with pytest.raises(ValueError, match="not nested clusters"):
        certified(broken_table(artifact, ranges=ranges))


def test_the_numbers_of_another_size_are_seen():
    artifact = built(UNEVEN, padding=False)
    kinds = artifact.arrays["kinds"].copy()
    kinds[:-2] = np.bincount(kinds[:-2]).argmax()
    broken = broken_table(artifact, kinds=kinds)
    assert breaks(broken, 43, padding=False) != []
    assert certified(broken)[1] > 3 + 0.1


def test_padding_of_two_words_that_differs_is_seen():
    sizes = (4, 40)
    words = [Mixture(sizes, (2**63, 2**63 - pad), pad) for pad in (10, 20)]
    told = certify_levels(words, [Mixture((40,), (2**64 - 10,), 10)])
    assert float(told.levels[0]) == pytest.approx(math.log(2))
