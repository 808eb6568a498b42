"""A near word by Annoy's trees (extra ``annoy``): faster than the exact search, and not always the nearest.

The trees are built from the public points and see only the noisy point, so their answer is post-processing. All workers
of a machine share them in one memory-mapped file. Annoy takes one query a call: the only loop over tokens in Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from wordveil.arrays import Float32, Float64, Int32
from wordveil.errors import PlatformError
from wordveil.neighbours.exact import ExactNearest

_SEED = 1
# Annoy adds squares in float32, which ends at 2^128. Points have lengths up to 1e9 and add nothing at this scale.
_FAR = 2.0**60


def make_annoy_index(dimension: int) -> Any:
    """Make an empty Euclidean index of Annoy. Raises :class:`PlatformError` if Annoy is not installed."""
    try:
        from annoy import AnnoyIndex
    except ImportError:
        raise PlatformError(
            "mechanism.search = annoy: Annoy is not installed. Install it with: pip install 'wordveil[annoy]' "
            "(it compiles, which needs g++ and Python's headers), or set mechanism.search: exact."
        ) from None
    return AnnoyIndex(dimension, "euclidean")


def grow_trees(points: Float32, n_trees: int) -> Any:
    """Build Annoy's trees over the rows of ``points``. Raises :class:`PlatformError` if Annoy is not installed.

    One thread and a fixed seed make equal trees for equal points on one machine.
    """
    trees = make_annoy_index(points.shape[1])
    trees.set_seed(_SEED)
    for number, row in enumerate(points):
        trees.add_item(number, row)
    trees.build(n_trees, n_jobs=1)
    return trees


def find_faults(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Find settings of the search that contradict each other, as (name, problem)."""
    search = settings.get("search", "exact")
    for name, example in (("n_trees", "100"), ("search_k", "5000")):
        given = settings.get(name) is not None
        if search == "annoy" and not given:
            problem = "is required with search: annoy and has no default. `wordveil docs figures` has measured ones."
            yield name, f"{problem} E.g. {name}: {example}."
        if search == "exact" and given:
            yield name, "is only for search: annoy. Remove it, or set mechanism.search: annoy."


class AnnoyNearest:
    """Near neighbours among the points of ``rows``, by trees over them.

    ``rows``: float32 ``(count, n + 1)`` from :func:`wordveil.neighbours.exact.scoring_rows`; ``search_k``: about how
    many points Annoy inspects for a query.
    """

    def __init__(self, trees: Any, rows: Float32, search_k: int) -> None:
        self._trees = trees
        self._rows = rows
        self._search_k = search_k
        self._exact: ExactNearest | None = None

    @classmethod
    def grow(cls, rows: Float32, n_trees: int, search_k: int) -> Self:
        """Build the trees of :func:`grow_trees`."""
        return cls(grow_trees(rows[:, :-1], n_trees), rows, search_k)

    @classmethod
    def open(cls, file: Path, rows: Float32, search_k: int) -> Self:
        """Map the trees that :meth:`save` wrote into memory."""
        trees = make_annoy_index(rows.shape[1] - 1)
        trees.load(str(file), prefault=False)
        return cls(trees, rows, search_k)

    def save(self, file: Path) -> None:
        """Write the trees to a file, and use them from there."""
        self._trees.save(str(file))

    def search(self, queries: Float64) -> Int32:
        """Find ids of near points, int32 ``(count,)``, for float64 queries ``(n, count)``, coordinates first.

        Queries beyond float32 are searched exactly. Raises :class:`ValueError` if a query is not finite or too long for
        float64 squares.
        """
        nearest = np.full(queries.shape[1], -1, np.int32)
        near = np.flatnonzero(np.abs(queries).max(axis=0, initial=0.0) < _FAR / np.sqrt(len(queries)))
        for number, query in zip(near.tolist(), np.ascontiguousarray(queries.T[near]), strict=True):
            nearest[number] = next(iter(self._trees.get_nns_by_vector(query, 1, self._search_k)), -1)
        missed = np.flatnonzero(nearest < 0)
        if len(missed):
            self._exact = self._exact or ExactNearest(self._rows, len(self._rows))
            nearest[missed] = self._exact.search(queries[:, missed])
        return nearest
