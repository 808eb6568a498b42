"""What the generator reads, what is written after an end, which symbols there are, and what a build refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.toys import KEYS, build_artifact, counted_contexts, random_embedding, sequences, token_batch
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.generators.inference import GeneratorState, WholeNumberGenerator
from wordveil.generators.initial import make_repeating_weights
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.er_ae.mechanism import ErAe, ErAeSettings
from wordveil.mechanisms.inputs import NO_INPUTS, PublicInputs
from wordveil.neighbours.blocks import BuildContext

SIZE, PAD, UNKNOWN, LENGTH = 40, 40, 41, 4
START = SIZE + 3
SETTINGS = ErAeSettings(epsilon=6.0, model="generator.npz")


@pytest.fixture(scope="module")
def embedding() -> Embedding:
    return random_embedding(SIZE, 6)


def build(embedding: Embedding, settings: ErAeSettings = SETTINGS, *, padding: bool = True) -> MechanismArtifact:
    return build_artifact(ErAe, embedding, settings, padding=padding)


def load(embedding: Embedding, settings: ErAeSettings = SETTINGS, *, padding: bool = True) -> ErAe:
    built = build(embedding, settings, padding=padding)
    return ErAe.load(embedding.size, built.parameters, built.arrays)


class Watched:
    """What generators read and how many rows they inferred."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sequences: list[list[list[int]]] = []
        self.symbols: list[list[int]] = []
        begin, advance = WholeNumberGenerator.begin, WholeNumberGenerator.advance

        def watch_begin(its: WholeNumberGenerator, read: NDArray[np.int32]) -> GeneratorState:
            self.sequences.append(read.tolist())
            return begin(its, read)

        def watch_advance(its: WholeNumberGenerator, state: GeneratorState, read: NDArray[np.int32]) -> Any:
            self.symbols.append(read.tolist())
            return advance(its, state, read)

        monkeypatch.setattr(WholeNumberGenerator, "begin", watch_begin)
        monkeypatch.setattr(WholeNumberGenerator, "advance", watch_advance)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_generator_reads_what_is_written_and_not_the_text(embedding: Embedding, watched: Watched) -> None:
    """The generator never reads an original word again, whether or not it wrote another one."""
    text = [7, 9, PAD, 11, UNKNOWN, 13]
    found = sequences(load(embedding, padding=False).draw(token_batch([text]), KEYS))[0]
    assert found != text
    assert watched.sequences == [[[UNKNOWN, 13, PAD, PAD], [7, 9, PAD, 11]]]
    assert watched.symbols == [[START, START], [found[4], found[0]], [found[1]], [found[2]]]


def draw_many(embedding: Embedding, texts: int = 400) -> list[list[int]]:
    """Texts whose first word is unknown, which often end at once."""
    random = np.random.default_rng(3)
    ids = [[UNKNOWN, *random.integers(0, UNKNOWN + 1, 2 * LENGTH - 2).tolist()] for _ in range(texts)]
    return sequences(load(embedding).draw(token_batch(ids), KEYS))


def test_after_an_end_a_sequence_is_padding_and_the_next_is_not(embedding: Embedding, watched: Watched) -> None:
    drawn = np.array(draw_many(embedding))
    ended = (drawn[:, :LENGTH] == PAD).all(axis=1)
    assert 100 < ended.sum() < 400
    assert (drawn[ended][:, LENGTH:] != PAD).any()
    assert drawn.max() == PAD
    # No row is inferred any longer once it has ended.
    assert sum(map(len, watched.symbols)) < 0.8 * drawn.size


def test_padding_that_is_drawn_is_no_end(embedding: Embedding) -> None:
    drawn = np.array(draw_many(embedding, 4000)).reshape(-1, LENGTH)
    assert ((drawn[:, :-1] == PAD) & (drawn[:, 1:] != PAD)).any()


def test_without_padding_there_are_words_alone(embedding: Embedding) -> None:
    text = [UNKNOWN, 1, 2, 3, 4, 5]
    mechanism = load(embedding, padding=False)
    drawn = np.array(sequences(mechanism.draw(token_batch([text] * 2000), KEYS)))
    assert np.unique(drawn).tolist() == list(range(SIZE))
    plain, padded = build(embedding, padding=False).guarantee, build(embedding).guarantee
    assert np.exp(padded.epsilon - plain.epsilon) == pytest.approx((SIZE + 1) / (SIZE - 1))


@pytest.mark.parametrize("length", [1, 2, 5])
def test_single_words_and_blocks_are_drawn_as_if_alone(
    embedding: Embedding, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sequences of one word share an inferred row, and blocks end anywhere."""
    monkeypatch.setattr("wordveil.mechanisms.er_ae.mechanism._BLOCK", 3)
    random = np.random.default_rng(length)
    texts = [random.integers(0, 9, length).tolist() for _ in range(30)] + [[1], [], [8] * 9, [PAD], [UNKNOWN]]
    contexts, mechanism = counted_contexts(len(texts)), load(embedding)
    together = sequences(mechanism.draw(token_batch(texts, contexts), KEYS))
    alone = [sequences(mechanism.draw(token_batch([text], contexts[[row]]), KEYS))[0] for row, text in enumerate(texts)]
    assert together == alone


def refuse(embedding: Embedding, settings: ErAeSettings, inputs: PublicInputs, *words: str) -> None:
    with pytest.raises(BundleError) as error:
        ErAe.build(embedding, settings, padding=False, work=BuildContext(), inputs=inputs)
    assert all(word in str(error.value) for word in words), error.value


def test_weights_must_be_there_of_the_same_words_and_public(embedding: Embedding) -> None:
    weights = make_repeating_weights(embedding, LENGTH)
    refuse(embedding, SETTINGS, NO_INPUTS, "mechanism.model = generator.npz: there are no weights")
    other = PublicInputs(generator=make_repeating_weights(random_embedding(SIZE + 1, 6), LENGTH))
    refuse(embedding, SETTINGS, other, "mechanism.model", "not those of mechanism.embedding")
    turned = replace(embedding, words=embedding.words[::-1])
    refuse(turned, SETTINGS, PublicInputs(generator=weights), "not those of mechanism.embedding")
    private = PublicInputs(generator=replace(weights, corpus="private"))
    refuse(embedding, SETTINGS, private, "mechanism.model", "private corpus")


def test_two_set_leaves_two_symbols_out(embedding: Embedding) -> None:
    inputs = PublicInputs(generator=make_repeating_weights(embedding, LENGTH))
    settings = replace(SETTINGS, choice="two-set", candidates=SIZE - 1)
    refuse(embedding, settings, inputs, "mechanism.candidates = 39", f"Set at most {SIZE - 2}.")
    assert build(embedding, replace(settings, candidates=SIZE - 2), padding=False)
    assert build(embedding, replace(settings, choice="softmax-rr"), padding=False)


def test_a_bundle_of_another_vocabulary_is_refused(embedding: Embedding) -> None:
    built = build(embedding)
    with pytest.raises(BundleError, match="40 words, and its vocabulary 41"):
        ErAe.load(SIZE + 1, built.parameters, built.arrays)
