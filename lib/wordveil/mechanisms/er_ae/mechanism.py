r"""ER-AE: a generator rewrites each text, and draws every symbol by a pure choice (Bo, Ding, Fung, Iqbal 2021).

A record's tokens are cut into sequences of ``length`` symbols, the last one filled up with padding. An encoder reads a
sequence, and a generator weights each possible next symbol: words, and if texts are padded also padding and the end of
the text. :mod:`wordveil.mechanisms.er_ae.symbol_choice` chooses one by these weights. A text of ``m`` tokens costs
``m`` times as much: one changed word may change the law of every symbol.

The generator reads back the symbols that were *written*. The authors' code feeds the original words back instead: the
bound is equal, but the generator then continues another text than the one being written.

After the end, which is never written, everything in a sequence is padding. That is a function of what was drawn, and so
is dropping symbols beyond a record's tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Le

from wordveil.arrays import Int32, Int64, UInt32
from wordveil.crypto.keys import ReleaseKeys
from wordveil.crypto.streams import KeyedStream, max_positions
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.generators.inference import WholeNumberGenerator
from wordveil.generators.initial import make_repeating_weights
from wordveil.generators.quantise import quantise_weights
from wordveil.generators.shape import GeneratorShape
from wordveil.generators.weights import Corpus, GeneratorWeights, digest_words
from wordveil.mechanisms.base import (
    NO_FILES,
    PRIVATE_WEIGHTS,
    Arrays,
    Files,
    Mechanism,
    MechanismArtifact,
    TokenBatch,
    pure_guarantee,
)
from wordveil.mechanisms.er_ae.symbol_choice import CHOICES, SymbolChoice, make_coins
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.mechanisms.laws import Evidence, ExactLoss, ShownEpsilon
from wordveil.mechanisms.settings import Example, MechanismSettings, PureEpsilon
from wordveil.neighbours.blocks import BuildContext

_COINS = "coins"
# Sequences that are inferred at a time.
_BLOCK = 128


@dataclass(frozen=True, kw_only=True)
class ErAeSettings(MechanismSettings):
    """Texts rewritten by a generator, each symbol chosen by a pure mechanism.

    Attributes
    ----------
    epsilon : float
        of the choice of one symbol, in nats. A token's loss is at most ``epsilon / 2 + ln(symbols - 1)``. It has no
        default.
    model : str
        path of the generator's weights, trained with the words of the embedding. It has no default.
    choice : {"softmax-rr", "two-set"}
        how a symbol is chosen: ``softmax-rr`` keeps one that the generator draws, or takes any other; ``two-set`` draws
        some, and takes one of these or any other, as the paper does. The loss is the same.
    candidates : int
        number of symbols that ``two-set`` draws.
    corpus : {"public", "private"}
        which text trained the weights. With the private corpus, every record is charged for all that is ever drawn
        (:attr:`wordveil.privacy.events.Composition.CORPUS`).
    max_records : int or None
        the most records ever drawn from weights of a private corpus, over all runs and releases of the ledger: required
        there, and refused with a public one.
    """

    input_files: ClassVar[tuple[str, ...]] = ("model",)

    epsilon: PureEpsilon
    model: str
    choice: Literal["softmax-rr", "two-set"] = "softmax-rr"
    candidates: Annotated[int, Ge(1), Le(256)] = 5
    corpus: Corpus = "public"
    max_records: Annotated[int, Ge(1), Le(2**24)] | None = None

    @classmethod
    def find_faults(cls, written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        is_private, limit = written.get("corpus") == "private", written.get("max_records")
        if is_private and limit is None:
            problem = (
                "is required with corpus: private: every record pays for all records that are ever drawn from the "
                "weights, and no more can be drawn. Set the number of records of the corpus, with room for the new "
                "and edited ones of all runs to come."
            )
            yield "max_records", problem
        if not is_private and limit is not None:
            yield (
                "max_records",
                "is only for corpus: private. Remove it, or set corpus: private if the corpus trained the weights.",
            )

    def recipe(self) -> dict[str, Any]:
        """List the settings of a bundle's recipe: all except the number of records, which decides charges alone."""
        return {name: value for name, value in super().recipe().items() if name != "max_records"}


class ErAe(Mechanism[ErAeSettings]):
    """ER-AE mechanism; see the module. Arrays: those of the generator in whole numbers, and the coins of the choice."""

    name = "er-ae"
    sampler_version = 1
    settings_type = ErAeSettings
    is_pure = True
    priced = "the choice of a symbol"
    reads_context = True

    def __init__(
        self, generator: WholeNumberGenerator, shape: GeneratorShape, parameters: Mapping[str, Any], coins: Any
    ) -> None:
        self._generator = generator
        self._shape = shape
        self._parameters = parameters
        self.private_weights = parameters.get(PRIVATE_WEIGHTS, "")
        self._choice = SymbolChoice(coins, _count_symbols(shape, parameters["padding"]), parameters["candidates"])

    @classmethod
    def examples(cls) -> Mapping[str, Example]:
        chosen = ErAeSettings(epsilon=8.0, model="generator.npz")
        two_set = ErAeSettings(epsilon=8.0, model="generator.npz", choice="two-set")
        return {
            "": Example(chosen, chosen, inputs=_example_inputs),
            "two-set": Example(two_set, two_set, inputs=_example_inputs),
        }

    @classmethod
    def build(
        cls,
        embedding: Embedding,
        settings: ErAeSettings,
        *,
        padding: bool,
        work: BuildContext,
        inputs: PublicInputs = NO_INPUTS,
    ) -> MechanismArtifact:
        weights = _require_weights(embedding, settings, inputs)
        coins, candidates = make_coins(settings.epsilon), settings.candidates if settings.choice == "two-set" else 0
        symbols = _count_symbols(weights.shape, padding)
        if symbols < candidates + 2:
            raise BundleError(
                f"mechanism.candidates = {candidates}: there are {symbols} symbols to choose from, and two-set leaves "
                f"at least 2 out. Set at most {symbols - 2}."
            )
        work.progress("bringing the generator into whole numbers")
        arrays = {**quantise_weights(weights), _COINS: coins}
        loss = SymbolChoice(coins, symbols, candidates).certify()
        guarantee = pure_guarantee(embedding, settings.epsilon, loss, padding=padding)
        parameters = {
            "epsilon": settings.epsilon,
            "candidates": candidates,
            "padding": padding,
            "shape": asdict(weights.shape),
        }
        if weights.corpus == "private":
            parameters[PRIVATE_WEIGHTS] = weights.identity
        return MechanismArtifact(parameters, arrays, guarantee)

    @classmethod
    def load(cls, size: int, parameters: Mapping[str, Any], arrays: Arrays, files: Files = NO_FILES) -> Self:  # noqa: ARG003
        shape = GeneratorShape(**parameters["shape"])
        if shape.size != size:
            raise BundleError(f"The bundle's generator has {shape.size:,} words, and its vocabulary {size:,}.")
        held = {name: array for name, array in arrays.items() if name != _COINS}
        return cls(WholeNumberGenerator(shape, held), shape, parameters, arrays[_COINS])

    @property
    def max_tokens(self) -> int:
        return max_positions(self._choice.blocks)

    def check_lengths(self, lengths: Sequence[int]) -> None:
        length = self._shape.length
        if uneven := [tokens for tokens in lengths if tokens % length]:
            tokens = uneven[0]
            near = " or ".join(
                str(count) for count in (tokens // length * length, -(-tokens // length) * length) if count
            )
            raise BundleError(
                f"text.n_max = {tokens}: this generator writes sequences of {length} tokens, and a text is a whole "
                f"number of them. Set {near}, for each text column."
            )

    def draw(self, batch: TokenBatch, keys: ReleaseKeys) -> TokenBatch:
        stream = KeyedStream(keys.noise, self._choice.blocks)
        drawing = _Drawing(self._generator, self._shape, self._choice, batch, stream)
        return TokenBatch(drawing.draw_all(), batch.offsets, batch.contexts)

    def exact_loss(self) -> ExactLoss:
        nats = self._choice.largest_loss()
        reason = f"The choice of one of {self._choice.columns:,} symbols loses {nats:.10g}, whatever is chosen from."
        return ExactLoss(nats, reason)

    def shown_epsilon(self, evidence: Evidence) -> ShownEpsilon:
        low, high = self._choice.find_epsilon(evidence.alpha, evidence.random_words)
        return ShownEpsilon(low, high, f"{CHOICES:,} choices")

    def at_epsilon(self, epsilon: float) -> Self:
        return type(self)(self._generator, self._shape, {**self._parameters, "epsilon": epsilon}, make_coins(epsilon))


def _count_symbols(shape: GeneratorShape, padding: bool) -> int:  # noqa: FBT001 - a value of the parameters
    """Count the output's columns that can be chosen: without padding, words alone."""
    return shape.outputs if padding else shape.size


def _example_inputs(embedding: Embedding) -> PublicInputs:
    return PublicInputs(generator=make_repeating_weights(embedding))


def _require_weights(embedding: Embedding, settings: ErAeSettings, inputs: PublicInputs) -> GeneratorWeights:
    """Return the generator's weights. Raises :class:`BundleError` if they do not fit the embedding."""
    setting, weights = f"mechanism.model = {settings.model}", inputs.generator
    if weights is None:
        raise BundleError(f"{setting}: there are no weights. Name a file that `wordveil train` wrote.")
    if weights.words_digest != digest_words(embedding.words) or weights.shape.size != embedding.size:
        raise BundleError(
            f"{setting}: its words are not those of mechanism.embedding. Name the embedding that it was trained with, "
            "or train it again with this one."
        )
    if weights.corpus != settings.corpus:
        raise BundleError(
            f"{setting}: says that it was trained on a {weights.corpus} corpus, and mechanism.corpus is "
            f"{settings.corpus}. Set corpus: {weights.corpus}, or name other weights."
        )
    return weights


@dataclass(frozen=True)
class _Drawing:
    """State of one batch's draws.

    A sequence is drawn in a block of about equally long ones, and does not depend on them.
    """

    generator: WholeNumberGenerator
    shape: GeneratorShape
    choice: SymbolChoice
    batch: TokenBatch
    stream: KeyedStream

    @cached_property
    def counts(self) -> Int64:
        """Number of sequences of each record: int64 ``(records,)``."""
        return np.asarray(-(-np.diff(self.batch.offsets) // self.shape.length))

    @cached_property
    def records(self) -> Int64:
        """Record of each sequence: int64 ``(sequences,)``."""
        return np.repeat(np.arange(len(self.batch)), self.counts)

    @cached_property
    def starts(self) -> Int64:
        """First token of each sequence: int64 ``(sequences,)``."""
        starts = np.cumsum(self.counts) - self.counts
        number = np.arange(len(self.records)) - starts[self.records]
        return np.asarray(self.batch.offsets[self.records] + number * self.shape.length)

    @cached_property
    def lengths(self) -> Int64:
        """Number of tokens of each sequence: int64 ``(sequences,)``, 1 or more."""
        return np.asarray(np.minimum(self.batch.offsets[self.records + 1] - self.starts, self.shape.length))

    def draw_all(self) -> Int32:
        """Draw an output for every token: int32 ``(tokens,)``. Tokens after an end stay padding."""
        out = np.full(len(self.batch.ids), self.shape.padding, np.int32)
        for chosen, shared in self.blocks():
            self.draw_block(chosen, shared, out)
        return out

    def blocks(self) -> Iterator[tuple[Int64, Int64]]:
        """Yield sequences to infer together, and the index of each one's inferred row: int64 ``(sequences,)`` each.

        Equal sequences of one token share a row: measurements of single words draw each many times.
        """
        single = self.lengths == 1
        symbols, rows = np.unique(self.batch.ids[self.starts[single]], return_inverse=True)
        order = np.argsort(rows, kind="stable")
        bounds = np.searchsorted(rows[order], np.arange(0, len(symbols) + _BLOCK, _BLOCK))
        for first, (low, high) in enumerate(pairwise(bounds.tolist())):
            block = order[low:high]
            if len(block):
                yield np.flatnonzero(single)[block], rows[block] - first * _BLOCK
        several = np.flatnonzero(~single)
        several = several[np.argsort(self.lengths[several], kind="stable")]
        for low in range(0, len(several), _BLOCK):
            block = several[low : low + _BLOCK]
            yield block, np.arange(len(block))

    def read(self, chosen: Int64) -> Int32:
        """Read the symbols of sequences for the encoder: int32 ``(sequences, length)``."""
        positions = np.arange(self.shape.length)
        inside = positions < self.lengths[chosen][:, None]
        symbols = np.full(inside.shape, self.shape.padding, np.int32)
        symbols[inside] = self.batch.ids[(self.starts[chosen][:, None] + positions)[inside]]
        return symbols

    def draw_block(self, chosen: Int64, shared: Int64, out: Int32) -> None:
        """Draw sequences symbol by symbol into ``out``, until each has its tokens or its end."""
        _, firsts = np.unique(shared, return_index=True)
        state = self.generator.begin(self.read(chosen[firsts]))
        symbols, rows = self.generator.start_symbols(len(firsts)), shared
        for step in range(int(self.lengths[chosen].max())):
            weights = self.generator.advance(state, symbols)
            columns = self.choose(weights, rows, chosen, step)
            # The column of the end comes after that of padding, and is written as padding.
            out[self.starts[chosen] + step] = np.minimum(columns, self.shape.padding)
            goes_on = (columns != self.shape.end_column) & (self.lengths[chosen] > step + 1)
            if not goes_on.any():
                return
            if not goes_on.all():
                state.keep(rows[goes_on])
            chosen, symbols = chosen[goes_on], columns[goes_on]
            rows = np.arange(len(chosen))

    def choose(self, weights: UInt32, rows: Int64, chosen: Int64, step: int) -> Int32:
        """Choose a column for the token at ``step`` of each sequence, by the noise of its position in its record."""
        records = self.records[chosen]
        position = self.starts[chosen] + step - self.batch.offsets[records]
        return self.choice.draw(weights, rows, self.stream.words(self.batch.contexts[records], position))
