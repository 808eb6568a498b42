"""Protocol of a mechanism: ragged batches of token ids in, ragged batches out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from wordveil.arrays import Float64, Int32, Int64
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import Contexts
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import AdditiveNoise, DrawnSymbols, Evidence, ExactLoss, RadialLaw, ShownEpsilon, WordLaws
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.guarantees import Metric, WordGuarantee

PRIVATE_WEIGHTS = "private_weights"
"""Parameter that identifies weights trained on the private corpus (:attr:`Mechanism.private_weights`). A bundle that
has it is confidential.
"""
Arrays = Mapping[str, NDArray[Any]]
Files = Mapping[str, Path]
NO_FILES: Files = MappingProxyType({})


@dataclass(frozen=True)
class TokenBatch:
    """Records as ragged token ids.

    Attributes
    ----------
    ids
        int32 ``(tokens,)``; words ``0 .. size - 1``, then ``size`` for padding and ``size + 1`` for the unknown word.
    offsets
        int64 ``(records + 1,)``, rising from 0 to ``tokens``.
    contexts
        uint8 ``(records, 12)``, one a record (:func:`wordveil.crypto.streams.derive_contexts`).
    """

    ids: Int32
    offsets: Int64
    contexts: Contexts

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def parts(self, max_tokens: int) -> Iterator[tuple[slice, Contexts, Int64]]:
        """Split into runs of at most ``max_tokens`` tokens: slice, each token's context and position in its record."""
        record = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        position = np.arange(len(self.ids)) - self.offsets[record]
        for start in range(0, len(self.ids), max_tokens):
            tokens = slice(start, start + max_tokens)
            yield tokens, self.contexts[record[tokens]], position[tokens]


def pure_guarantee(embedding: Embedding, epsilon: float, loss: float, *, padding: bool) -> WordGuarantee:
    """Guarantee at most ``loss`` nats between any two symbols, at distance 1 in the discrete metric."""
    digest = sha256(f"{embedding.size} {padding}".encode() + embedding.digest.encode()).hexdigest()
    return WordGuarantee(Metric("discrete", digest), nominal_epsilon=epsilon, epsilon=loss, diameter=1.0)


class TextEncoder(Protocol):
    """Function from a whole text to the one symbol that is drawn for it."""

    reads_text: ClassVar[bool]
    """Whether it reads the characters of a text, not only its known words."""

    def encode(self, ids: Int32, offsets: Int64, texts: pa.StringArray) -> Int32:
        """Return each text's symbol, int32 ``(texts,)``; padding for a text without a word that it reads.

        ``ids``: int32 ``(tokens,)``, word ids; those outside the vocabulary are unknown words. ``offsets``: int64
        ``(texts + 1,)``. ``texts``: string array ``(texts,)``, as they stand.
        """


@dataclass(frozen=True)
class Topics:
    """Public meaning of symbols that stand for whole texts.

    ``passages``: string array ``(symbols,)``, distinct, on one line each: what is written for each symbol.
    ``keywords``: string array ``(symbols,)``, each one's most telling words, with spaces between. ``shares``: float64
    ``(symbols,)``, the share of public texts of each, positive, sum 1.
    """

    passages: pa.StringArray
    keywords: pa.StringArray
    shares: Float64

    def rank(self) -> list[tuple[int, float, str, str]]:
        """List each symbol with its share, passage and keywords, the most frequent in public texts first."""
        columns = (self.shares.tolist(), self.passages.to_pylist(), self.keywords.to_pylist())
        rows = zip(range(len(self.shares)), *columns, strict=True)
        return sorted(rows, key=lambda row: -row[1])


@dataclass(frozen=True)
class MechanismArtifact:
    """A mechanism as it enters a bundle.

    Attributes
    ----------
    parameters : dict
        plain values that, with the arrays, decide the distribution of outputs.
    arrays : dict
        arrays by name, which workers map into memory.
    guarantee : WordGuarantee
        the certified constants.
    notes : tuple of str
        remarks for users, as sentences.
    files : dict
        other files that workers read in place, by name: each a function that writes it to the path it is given.
    topics : Topics or None
        what its symbols stand for, if they are no words of the embedding (:attr:`Mechanism.encoder`).
    """

    parameters: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    guarantee: WordGuarantee
    notes: tuple[str, ...] = ()
    files: dict[str, Callable[[Path], None]] = field(default_factory=dict)
    topics: Topics | None = None

    def write_files(self, directory: Path) -> dict[str, Path]:
        """Write the other files into a directory. Return the path of each, by name."""
        for name, write_to in self.files.items():
            write_to(directory / name)
        return {name: directory / name for name in self.files}


Settings = TypeVar("Settings", bound=MechanismSettings)


class Mechanism(ABC, Generic[Settings]):
    """Metric differentially private replacement of words.

    A word mechanism keeps the offsets of its batch; a generator may return others. The output of a record depends on
    its ids, its context and the keys alone: not on the batch it came in.
    """

    name: ClassVar[str]
    """As it is in the configuration, the bundle and the ``privacy`` column."""
    sampler_version: ClassVar[int]
    """Increment it when the same parameters, arrays, context and key would draw something else; in the fingerprint."""
    certificate_version: ClassVar[int] = 1
    """Increment it when the certifying code is corrected: no bundle keeps a faulty certificate; in the fingerprint."""
    settings_type: ClassVar[type[MechanismSettings]]
    """The class of its settings, from which its section of the configuration is made."""
    supports_padding: ClassVar[bool] = True
    """Whether it has a point for padding, so that ``text.length: pad`` is possible."""
    padding_advice: ClassVar[str] = (
        "this mechanism has no point for padding. Set text.length: sample, which hides the length too, or as_is; "
        "or take another mechanism."
    )
    """Reason why it has no point for padding, and the remedy."""
    is_pure: ClassVar[bool] = False
    """Whether epsilon is the loss between any two words at most, and no distance multiplies it."""
    priced: ClassVar[str] = ""
    """Unit whose loss epsilon bounds, if neither a pair of words nor a distance."""
    is_exact: ClassVar[bool] = True
    """Whether its probabilities are exact, so that its guarantee has no delta."""

    reads_context: ClassVar[bool] = False
    """Whether the draw at one position depends on words at others. Then a record's loss is no sum over positions
    (:attr:`wordveil.privacy.events.Composition.TEXT`), and words cannot be drawn apart from their text.
    """

    draws_texts: ClassVar[bool] = False
    """Whether a symbol stands for a whole text, which :attr:`encoder` finds, and is written as a public passage."""

    has_symbols: ClassVar[bool] = False
    """True if draws are numbered symbols with a public law (:attr:`symbols`), from which counts can be estimated."""

    stays_fast: ClassVar[bool] = False
    """Whether :meth:`stays_at` takes hardly more time for all words than for a few."""

    responses: int | None = None
    """Number of symbols if the draw is randomised response over them: the input's own with one probability, each other
    with another (Warner 1965). It is known of draws whose shuffled tables have a tighter bound for that.
    """
    private_weights: str = ""
    """Identifier of weights trained on the private corpus, 64 hexadecimal digits that reveal nothing of them; or ""."""
    search: str = "exact"
    """Kind of search for the nearest word."""
    search_recall: float = 1.0
    """Share of noisy points for which the search finds the truly nearest word, as measured by the build."""

    @classmethod
    @abstractmethod
    def build(
        cls,
        embedding: Embedding,
        settings: Settings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,
    ) -> MechanismArtifact:
        """Build from a public embedding.

        Parameters
        ----------
        embedding : Embedding
            words and vectors, float32 ``(size, dimension)``.
        settings : Settings
            of :attr:`settings_type`.
        padding : bool
            whether texts are padded, so that padding needs a point.
        work : BuildContext
            reports progress, and finds and caches lists of neighbours.
        inputs : PublicInputs
            other public data, for the mechanisms that use some.

        Returns
        -------
        MechanismArtifact
            what enters the bundle.

        Raises
        ------
        ValueError
            if epsilon is out of range.
        BundleError
            if the mechanism cannot be built from this embedding, or cannot pad.
        """

    @classmethod
    def require_padding(cls, *, padding: bool) -> None:
        """Raise :class:`BundleError` if texts are padded and the mechanism has no point for padding."""
        if padding and not cls.supports_padding:
            raise BundleError(f"text.length = pad: {cls.padding_advice}")

    @classmethod
    @abstractmethod
    def examples(cls) -> Mapping[str, Example]:
        """List settings for the contract tests of every mechanism, by name of the case; "" has the golden outputs."""

    @classmethod
    def min_epsilon(cls, dimension: int) -> float:  # noqa: ARG003 - for those that have one
        """Return the epsilon below which no such mechanism exists in ``dimension`` dimensions."""
        return 0.0

    @classmethod
    def comparable_settings(cls, terms: ComparisonTerms) -> Sequence[Settings]:  # noqa: ARG003 - a default
        """List the settings under which `wordveil plan --compare` shows it beside a mechanism with these terms.

        ``terms`` have all three values. The comparison starts at these epsilons and then chooses others. Empty if the
        mechanisms are not comparable, such as those of different spaces.
        """
        return ()

    @classmethod
    @abstractmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:
        """Load what :meth:`build` returned, over ``size`` words. ``files``: paths by name."""

    @property
    def noise_dimension(self) -> int | None:
        """Dimension ``n`` of the Gamma(n, 1 / epsilon) noise added to a word's point in Euclidean space, or None."""
        return None

    @property
    def symbols(self) -> DrawnSymbols | None:
        """Symbols that are drawn and their law, if :attr:`has_symbols`, or None."""
        return None

    @property
    def encoder(self) -> TextEncoder | None:
        """Encoder of whole texts, if symbols stand for texts (:attr:`draws_texts`), or None."""
        return None

    def check_installed(self) -> None:
        """Raise :class:`PlatformError` or :class:`BundleError` if drawing needs what this machine lacks."""

    def make_blind(self) -> MechanismArtifact | None:
        """Make a twin that draws every symbol alike, if symbols stand for texts, or None.

        Outputs of texts that a policy cuts alike then have one law: all else that distinguishes them is structure.
        """
        return None

    @property
    @abstractmethod
    def max_tokens(self) -> int:
        """Largest number of tokens of a record. Beyond it noise would repeat."""

    def check_lengths(self, lengths: Sequence[int]) -> None:
        """Raise :class:`BundleError` if texts of these lengths in tokens, one for each text column, cannot be drawn."""

    @abstractmethod
    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        """Replace every token. Input ids may be any symbol; output ids are words, or padding if it is a symbol."""

    def render(self, batch: TokenBatch) -> TokenBatch:
        """Choose the words to write for the ids that :meth:`draw` drew, in any order, from these and public data alone.

        Offsets and contexts stay. Most mechanisms write what they drew.
        """
        return batch

    def noise_at(
        self,
        contexts: Contexts,  # noqa: ARG002 - for those that add noise
        positions: Int64,  # noqa: ARG002
        keys: ReleaseKeys,  # noqa: ARG002
    ) -> AdditiveNoise | None:
        """Compute the noise that :meth:`draw` adds to a word's point, by the same code. Return None if it adds none.

        ``contexts``: uint8 ``(count, 12)``; ``positions``: int64 ``(count,)``, of each token in its record. Raises
        :class:`wordveil.crypto.streams.CounterOverflowError` for a position beyond any record.
        """
        return None

    @property
    def radial_law(self) -> RadialLaw | None:
        """Law of :meth:`noise_at`'s radius, computed independently of the sampler; or None without such noise."""
        return None

    def exact_loss(self) -> ExactLoss | None:
        """Return the largest loss of a token, if the mechanism computes it other than from its probabilities.

        If it returns None, audits compute it from :meth:`word_laws` or :meth:`probabilities`
        (:func:`wordveil.measures.losses.find_supremum`), or else test draws.
        """
        return None

    def shown_epsilon(self, evidence: Evidence) -> ShownEpsilon | None:
        """Measure epsilon from draws or probabilities, not from parameters. Return None if that is impossible.

        Audits compare it with the configured epsilon, for mechanisms without noise whose radii would show it. By
        default the loss of a pure mechanism is its epsilon.
        """
        if evidence.loss is None or not self.is_pure:
            return None
        return ShownEpsilon(evidence.loss, evidence.loss, "the probabilities of the table")

    def probabilities(self, symbol: int) -> Float64 | None:  # noqa: ARG002 - if known
        """Compute each output's probability for an input symbol: float64 ``(outputs,)``, exact except for rounding.

        Outputs are words, then padding if texts are padded. Return None if probabilities must be estimated from draws.
        """
        return None

    def word_laws(self) -> WordLaws | None:
        """Compute the laws of all words, exact except for rounding. Return None if unavailable or too large."""
        return None

    def drawn_alike(self, word: int) -> Int32 | None:  # noqa: ARG002 - if known
        """List the ids of words with the law of ``word``, itself included, rising. Return None if each has its own."""
        return None

    def stay_probabilities(self, words: Int32) -> Float64 | None:  # noqa: ARG002 - if known
        """Compute the probability that each of ``words``, int32 ``(count,)``, stays itself: float64 ``(count,)``.

        Return None if it must be estimated from draws.
        """
        return None

    def stays_at(self, epsilons: Sequence[float], words: Int32) -> Float64 | None:
        """Compute the probabilities that ``words``, int32 ``(count,)``, stay at other epsilons, for previews.

        Returns float64 ``(epsilons, count)``, a row of NaN if there is no such mechanism; or None like
        :meth:`measure_at`.
        """
        return self.measure_at(epsilons, len(words), lambda changed: changed.stay_probabilities(words))

    def measure_at(
        self, epsilons: Sequence[float], count: int, measure: Callable[[Self], Float64 | None]
    ) -> Float64 | None:
        """Apply ``measure``, which returns float64 ``(count,)``, to the mechanism at other epsilons.

        Returns float64 ``(epsilons, count)``, a row of NaN if there is no such mechanism; or None if :meth:`at_epsilon`
        or ``measure`` returns None.
        """
        rows = []
        for epsilon in epsilons:
            try:
                changed = self.at_epsilon(epsilon)
            except (ValueError, BundleError):
                rows.append(np.full(count, np.nan))
                continue
            figures = None if changed is None else measure(changed)
            if figures is None:
                return None
            rows.append(figures)
        return np.array(rows)

    def useful_epsilons(self) -> tuple[float, float] | None:
        """Return the lowest and highest epsilon worth previewing, or None if the keep-rate decides that."""
        return None

    def at_epsilon(self, epsilon: float) -> Self | None:  # noqa: ARG002 - for those that can
        """Return the mechanism at another epsilon, close enough for previews, without a build; or None if impossible.

        Raises :class:`ValueError` if ``epsilon`` is out of range.
        """
        return None
