"""Laplace mechanism in n dimensions on word vectors.

Fernandes, Dras, McIver 2018, section 5 and Theorem 5.1; 2019, Algorithms 1 and 2 (docs/proofs/laplace.md). A word's
vector ``x`` becomes ``x + R U`` with ``R ~ Gamma(shape n, scale 1/epsilon)`` and ``U`` uniform on the unit sphere; the
word nearest to it is the output. Radii take as many bits as the guarantee needs
(:mod:`wordveil.mechanisms.additive.tails`).

The unknown word is the mean vector. If texts are padded, space gets one more dimension: words lie at height 0, padding
at the mean vector at a public height ``h``. Padding is perturbed like any word, so no length of the output is certain.

With ``search: annoy`` the output is not always the nearest word: still post-processing, but not the published
mechanism. The build measures how often it is the nearest (``search_recall``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from scipy.special import gammaincinv, ndtri

from wordveil.arrays import Float32, Float64, Int64
from wordveil.crypto.keys import ReleaseKeys, Secret
from wordveil.crypto.streams import CONTEXT_BYTES, Contexts, KeyedStream, max_positions
from wordveil.embeddings.embedding import Embedding
from wordveil.geometry.euclidean import diameter, distances, norms, ordered_sum, round_up
from wordveil.geometry.spaces import digest_points
from wordveil.mechanisms.additive.tails import depth, digits_at, euclidean_laplace, find_ends, gamma_at
from wordveil.mechanisms.base import NO_FILES, Arrays, Files, Mechanism, MechanismArtifact, TokenBatch
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import AdditiveNoise, RadialLaw
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings
from wordveil.neighbours.annoy import AnnoyNearest, make_annoy_index
from wordveil.neighbours.annoy import find_faults as find_annoy_faults
from wordveil.neighbours.blocks import BuildContext
from wordveil.neighbours.exact import ExactNearest, scoring_rows
from wordveil.privacy.guarantees import Metric, WordGuarantee

# Tokens whose noise is in memory at once: one block of the search; 768 x 301 float64 is 1.8 MB.
_CHUNK = 768
_MIN_EPSILON = 1e-100

_TREES = "trees.annoy"
# One standard error of a recall of 90% over this many noisy points is 0.9 of a percent.
_RECALL_QUERIES = 1000
_MIN_RECALL = 0.9
# Public, so that every build of the same bundle measures the same recall. No key of a release comes from it.
_RECALL_KEY = Secret(sha256(b"wordveil: noise on public words, to measure the recall of a search").digest())


@dataclass(frozen=True, kw_only=True)
class LaplaceSettings(MechanismSettings):
    """Noise on word vectors, then the nearest word.

    Attributes
    ----------
    epsilon : float
        the loss of a token, per unit of distance between word vectors. It has no default.
    search : "exact" or "annoy"
        how the nearest word is found.
    n_trees : int or None
        number of trees that ``search: annoy`` builds; required there.
    search_k : int or None
        number of points that ``search: annoy`` inspects for a query; required there.
    pad_height : float or None
        the height at which padding lies over the words. None: the greatest that does not enlarge the diameter.
    """

    epsilon: Annotated[float, Gt(_MIN_EPSILON)]
    search: Literal["exact", "annoy"] = "exact"
    n_trees: Annotated[int, Ge(1), Le(10_000)] | None = None
    search_k: Annotated[int, Ge(1), Lt(2**31)] | None = None
    pad_height: Annotated[float, Gt(0)] | None = None

    @classmethod
    def find_faults(cls, written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        return find_annoy_faults(written)

    def recipe(self) -> dict[str, Any]:
        trees = {} if self.search == "annoy" else {"n_trees", "search_k"}
        return {name: value for name, value in super().recipe().items() if name not in trees}


class Laplace(Mechanism[LaplaceSettings]):
    """Laplace mechanism; see the module.

    Array ``index``: float32 ``(size + 2, m + 1)``, points of words, padding, unknown word, each with its scoring
    column, for noise in ``m`` dimensions. File ``trees.annoy``, with ``search: annoy``: trees over the candidates.
    """

    name = "laplace"
    sampler_version = 2
    settings_type = LaplaceSettings
    is_exact = False

    def __init__(
        self,
        size: int,
        epsilon: float,
        index: Float32,
        *,
        padding: bool,
        digits: int,
        nearest: ExactNearest | AnnoyNearest | None = None,
    ) -> None:
        _check_epsilon(epsilon)
        self._size = size
        self._padding = padding
        self._epsilon = epsilon
        self._digits = digits
        self._index = index
        self._candidates = size + padding
        self._dimension = int(index.shape[1] - 1)
        self._nearest = nearest or ExactNearest(index, self._candidates)
        # One uniform a coordinate and one for the radius, two uniforms a block.
        self._blocks = (self._dimension + 2) // 2

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        # So few trees that their answers differ from the exact ones.
        return {
            "": Example(LaplaceSettings(epsilon=3.0), LaplaceSettings(epsilon=20.0)),
            "annoy": Example(
                LaplaceSettings(epsilon=3.0, search="annoy", n_trees=3, search_k=30),
                LaplaceSettings(epsilon=20.0, search="annoy", n_trees=3, search_k=100),
                extra="annoy",
            ),
        }

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[LaplaceSettings]:
        return () if terms.metric == "hyperbolic" else (LaplaceSettings(epsilon=1.0),)

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: LaplaceSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,  # noqa: ARG003
    ) -> MechanismArtifact:
        epsilon = settings.epsilon
        _check_epsilon(epsilon)
        if settings.search == "annoy":
            make_annoy_index(1)  # raises where it is missing, before minutes of work
        mean = (ordered_sum(embedding.vectors.astype(np.float64)) / embedding.size).astype(np.float32)
        work.progress("measuring the embedding's diameter")
        words = diameter(embedding.vectors)
        radius = float(distances(embedding.vectors.astype(np.float64).T, mean.astype(np.float64)[:, None]).max())
        largest = max(words, round_up(radius, 6))
        height = 0.0
        if padding:
            height = float(np.float32(settings.pad_height or _pad_height(largest, radius)))
            largest = max(largest, round_up(math.hypot(radius, height) * (1 + 1e-9), 6))
        deep = depth(1, epsilon, 0.0, largest, _MIN_EPSILON)
        points = _points(embedding.vectors, mean, height, padding=padding)
        work.progress("writing the search index")
        index = scoring_rows(points)
        guarantee = WordGuarantee(
            metric=Metric("euclidean", digest_points(f"{points.shape}", points, "<f4")),
            nominal_epsilon=epsilon,
            epsilon=epsilon,
            diameter=largest,
            delta=deep.delta,
        )
        parameters = {
            "epsilon": epsilon,
            "digits": deep.digits,
            "padding": padding,
            "pad_height": height,
            "search": "exact",
        }
        built = MechanismArtifact(parameters, {"index": index}, guarantee)
        return cls._with_annoy(built, settings, work) if settings.search == "annoy" else built

    @classmethod
    def _with_annoy(cls, built: MechanismArtifact, settings: LaplaceSettings, work: BuildContext) -> MechanismArtifact:
        """Add Annoy's trees to a mechanism instead of the exact search, and measure their recall."""
        index, padding, digits = built.arrays["index"], built.parameters["padding"], built.parameters["digits"]
        size = len(index) - 2
        n_trees, search_k = settings.n_trees, settings.search_k
        assert n_trees is not None
        assert search_k is not None
        work.progress("building Annoy's trees")
        nearest = AnnoyNearest.grow(index[: size + padding], n_trees, search_k)
        work.progress("measuring the recall of the search")
        epsilon = built.guarantee.epsilon
        recall = cls(size, epsilon, index, padding=padding, digits=digits, nearest=nearest).measure_recall()
        chosen = {"search": "annoy", "n_trees": n_trees, "search_k": search_k, "search_recall": recall}
        notes = [] if recall >= _MIN_RECALL else [_recall_note(recall, epsilon, n_trees, search_k)]
        return replace(
            built, parameters={**built.parameters, **chosen}, files={_TREES: nearest.save}, notes=(*built.notes, *notes)
        )

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:
        index, padding, digits, nearest = arrays["index"], parameters["padding"], parameters["digits"], None
        if parameters["search"] == "annoy":
            nearest = AnnoyNearest.open(files[_TREES], index[: size + padding], parameters["search_k"])
        mechanism = cls(size, parameters["epsilon"], index, padding=padding, digits=digits, nearest=nearest)
        mechanism.search = parameters["search"]
        mechanism.search_recall = parameters.get("search_recall", 1.0)
        return mechanism

    @property
    def noise_dimension(self) -> int:
        return self._dimension

    @property
    def max_tokens(self) -> int:
        return max_positions(self._blocks)

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        stream = KeyedStream(keys.noise, self._blocks)
        drawn = np.empty_like(batch.ids)
        for part, context, position in batch.parts(_CHUNK):
            noisy = self._noise(stream, context, position)
            noisy += self._index[batch.ids[part], :-1].T
            drawn[part] = self._nearest.search(noisy)
        return TokenBatch(drawn, batch.offsets, batch.contexts)

    @property
    def radial_law(self) -> RadialLaw:
        return euclidean_laplace

    def noise_at(self, contexts: Contexts, positions: Int64, keys: ReleaseKeys) -> AdditiveNoise:
        return AdditiveNoise.of_vectors(self._noise(KeyedStream(keys.noise, self._blocks), contexts, positions))

    def measure_recall(self) -> float:
        """Measure the share of 1,000 noisy points for which the search finds the nearest word."""
        words = np.arange(_RECALL_QUERIES) * self._size // _RECALL_QUERIES
        stream = KeyedStream(_RECALL_KEY, self._blocks)
        noisy = self._noise(stream, np.zeros((_RECALL_QUERIES, CONTEXT_BYTES), np.uint8), np.arange(_RECALL_QUERIES))
        noisy += self._index[words, :-1].T
        nearest = ExactNearest(self._index, self._candidates).search(noisy)
        return float(np.mean(self._nearest.search(noisy) == nearest))

    def at_epsilon(self, epsilon: float) -> Self:
        # Neither the points nor the search depend on epsilon; only the noise's length does.
        digits = digits_at(self._digits, epsilon / self._epsilon)
        other = type(self)(
            self._size, epsilon, self._index, padding=self._padding, digits=digits, nearest=self._nearest
        )
        other.search = self.search  # its recall was measured at this epsilon and no other
        return other

    # Frozen: golden outputs; raise sampler_version.
    def _noise(self, stream: KeyedStream, context: Contexts, position: Int64) -> Float64:
        """Draw noise vectors, float64 ``(m, count)``."""
        uniforms = stream.uniforms(context, position)
        noise: Float64 = ndtri(uniforms[: self._dimension])
        noise *= self._radii(stream, uniforms[self._dimension], context, position) / norms(noise)
        return noise

    def _radii(self, stream: KeyedStream, uniform: Float64, context: Contexts, position: Int64) -> Float64:
        shape = self._dimension
        radii: Float64 = gammaincinv(shape, uniform)
        for _, token, end in find_ends(stream, uniform[None], context, position, shape, self._digits):
            radii[token] = gamma_at(shape, end)
        return radii / self._epsilon


def _check_epsilon(epsilon: float) -> None:
    if not _MIN_EPSILON <= epsilon < math.inf:
        raise ValueError(
            f"Expected epsilon={epsilon} in [{_MIN_EPSILON}, inf): finite and positive, and no noise beyond float64."
        )


def _recall_note(recall: float, epsilon: float, n_trees: int, search_k: int) -> str:
    return (
        f"mechanism.search = annoy finds the nearest word for {recall:.1%} of noisy points at epsilon {epsilon:g}, "
        f"under {_MIN_RECALL:.0%}: as private as the exact search, but the text loses more meaning. Raise "
        f"mechanism.search_k (now {search_k}), then mechanism.n_trees (now {n_trees}), or set mechanism.search: exact"
    )


def _pad_height(largest: float, radius: float) -> float:
    """Compute the greatest height at which padding does not enlarge the diameter.

    The higher padding is, the likelier it stays padding. Rounded down to three digits, so that the last bits of the
    diameter do not move it.
    """
    height = math.sqrt(max(largest**2 - radius**2, 0.0))
    if height == 0.0:
        return largest or 1.0
    unit = 10.0 ** (math.floor(math.log10(height)) - 2)
    return float(f"{math.floor(height / unit) * unit:.3g}")


def _points(vectors: Float32, mean: Float32, height: float, *, padding: bool) -> Float32:
    """Compute the points of words, padding, unknown word. Without padding its row is never used."""
    points = np.concatenate([vectors, mean[None, :], mean[None, :]])
    if not padding:
        return points
    heights = np.zeros((len(points), 1), np.float32)
    heights[len(vectors)] = height
    return np.concatenate([points, heights], axis=1)
