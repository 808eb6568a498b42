"""Under ``repeat: same`` a word of a record becomes one word at all its places, and costs one draw."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import toys
from support.hostile_texts import HOSTILE, random_texts
from support.toys import unravel
from wordveil.artifacts.bundle import Bundle
from wordveil.mechanisms.base import TokenBatch
from wordveil.records.codec import write_words
from wordveil.records.sanitiser import RecordSanitiser
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy
from wordveil.text.repetition import Pattern
from wordveil.text.tokeniser import Tokeniser, fold_words

WORDS = [*"abcdefghijklmnopqrst", "the", "cat", "sat", "mat"]
TEXT = "The cat sat: Zorblax met Müller, the CAT and zorblax sat; Müller the cat Grimsby"
COPYING = {"punctuation": "keep", "case": "restore"}
PADDED = {"length": "pad", "n_max": 20}
SHAPES: list[dict[str, Any]] = [
    {},
    COPYING,
    PADDED,
    {"output": "bag"},
    {**PADDED, "output": "bag"},
    {"unknown": "keep", "punctuation": "keep"},
    {"stop_words": "keep", "stop_word_list": ("and", "the")},
]


def sanitiser(bundles: dict[bool, Bundle], repeat: str = "same", **policy: Any) -> RecordSanitiser:
    made = TextPolicy(repeat=repeat, **policy)
    return toys.record_sanitiser(bundles[made.pads], made)


def rows(toy: RecordSanitiser, texts: list[str], ids: list[str] | None = None) -> list[dict[str, Any]]:
    return toys.sanitise(toy, toys.record_batch(texts, ids)).to_pylist()


def words_of_each(texts: list[str]) -> list[list[str]]:
    """As they are looked up."""
    cut = Tokeniser().cut_words(pa.array(texts))
    return unravel(fold_words(cut.words), cut.offsets)


def test_the_prices_of_known_texts(bundles):
    for repeat, prices in (("same", [8, 3, 0, 1]), ("each", [15, 5, 0, 3])):
        found = rows(sanitiser(bundles, repeat), [TEXT, "cat Cat x y x", "", "a a a"])
        assert [row["privacy"]["tokens"] for row in found] == prices


@pytest.mark.parametrize("policy", [{}, COPYING], ids=["hiding", "copying"])
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("zebra lion zebra a b c d e f", "zebra lion lion a b c d e f"),
        ("zebra lion zebra a b c d e f", "zebra lion mouse a b c d e f"),
        ("zebra zebra a b c d e f", "zebra lion a b c d e f"),
    ],
)
def test_versions_with_another_pattern_share_no_tag_or_noise(bundles, policy, one, two):
    """Ids do not tell unknown words apart: without the pattern the known words would come out alike, and the first
    draws too.
    """
    toy = sanitiser(bundles, **policy)
    drawn = [
        [words[-6:] for words in words_of_each([row["text"] for row in rows(toy, [text] * 40)])] for text in (one, two)
    ]
    alike = np.mean([[a == b for a, b in zip(*pair, strict=True)] for pair in zip(*drawn, strict=True)])
    assert alike < 0.3
    tags = [row["content_tag"] for row in rows(toy, [one, two, one], ["a", "a", "a"])]
    assert tags[0] == tags[2] != tags[1]


def test_other_names_in_the_same_pattern_are_the_same_to_it(bundles):
    """Unknown words have one symbol: a text with others in their places has the same content."""
    one, two = rows(sanitiser(bundles), ["zebra lion zebra cat", "Müller Grimsby Müller cat"], ["a", "a"])
    assert one == two


class Stub:
    """Draws words of 0 .. 9 by position and renders each as the tens of its place among all."""

    def __init__(self) -> None:
        self.seen: list[TokenBatch] = []

    def draw(self, batch: TokenBatch, _: Any) -> TokenBatch:
        self.seen.append(batch)
        positions = np.concatenate([[0], *(np.arange(n) for n in np.diff(batch.offsets))])[1:]
        return replace(batch, ids=positions.astype(np.int32))

    def render(self, batch: TokenBatch) -> TokenBatch:
        self.seen.append(batch)
        return replace(batch, ids=(batch.ids + 10 * np.arange(len(batch.ids))).astype(np.int32))


def test_distinct_words_are_drawn_once_and_rendered_everywhere():
    forms, offsets = np.array([7, 5, 7, 6, 5, 5]), np.array([0, 4, 4, 6])
    batch = TokenBatch(forms.astype(np.int32), offsets, toys.counted_contexts(3))
    stub: Any = Stub()
    written = write_words(stub, batch, toys.KEYS, Pattern.of(forms, offsets, 8))
    drawn, rendered = stub.seen
    assert drawn.ids.tolist() == [7, 5, 6, 5]
    assert drawn.offsets.tolist() == [0, 3, 3, 4]
    assert drawn.contexts is batch.contexts
    assert rendered.ids.tolist() == [0, 1, 0, 2, 0, 0]
    assert written.batch.ids.tolist() == [0, 11, 0, 32, 40, 40]
    assert written.batch.offsets is batch.offsets
    assert written.draws.offsets.tolist() == [0, 3, 3, 4]
    assert written.draws.ids.tolist() == [0, 11, 32, 40]
    assert written.replaced.tolist() == forms.tolist()


@pytest.mark.parametrize("bag", [False, True])
def test_tokens_without_a_pattern_are_drawn_and_rendered_each(bag):
    """What was drawn for a token goes where the token goes, and is rendered there."""
    batch = TokenBatch(np.arange(30, dtype=np.int32), np.array([0, 20, 30]), toys.counted_contexts(2))
    stub: Any = Stub()
    written = write_words(stub, batch, toys.KEYS, bag=bag)
    drawn, rendered = stub.seen
    assert drawn is batch
    assert written.draws is written.batch
    assert sorted(written.replaced.tolist()) == batch.ids.tolist()
    assert (written.replaced.tolist() != batch.ids.tolist()) == bag
    assert (rendered.ids == written.replaced % 20).all()
    assert (written.batch.ids == rendered.ids + 10 * np.arange(30)).all()


def test_bag_is_rendered_shuffled_and_then_unified():
    forms, offsets = np.tile([0, 1, 0, 2, 1, 0], 5), np.arange(6) * 6
    batch = TokenBatch(forms.astype(np.int32), offsets, toys.counted_contexts(5))
    stub: Any = Stub()
    written = write_words(stub, batch, toys.KEYS, Pattern.of(forms, offsets, 3), bag=True)
    assert (stub.seen[1].ids == written.replaced).all()
    for record in range(5):
        part = slice(record * 6, record * 6 + 6)
        forms_here, after = written.replaced[part].tolist(), written.batch.ids[part].tolist()
        first = [forms_here.index(form) for form in forms_here]
        assert after == [form + 10 * (record * 6 + place) for form, place in zip(forms_here, first, strict=True)]
    assert written.replaced.tolist() != forms.tolist()


@pytest.mark.parametrize("policy", [{}, {"output": "bag"}, {"repeat": "each"}, {"repeat": "each", "output": "bag"}])
def test_unchanged_counts_what_is_finally_written(bundles, monkeypatch, policy):
    """A mechanism that renders every word as ``cat`` leaves the places of ``cat`` alone unchanged."""
    cat = WORDS.index("cat")
    toy = sanitiser(bundles, **policy)
    monkeypatch.setattr(
        type(bundles[False].mechanism), "render", lambda _, batch: replace(batch, ids=np.full_like(batch.ids, cat))
    )
    found = rows(toy, ["cat the cat sat", "mat", "cat", "zebra cat cat cat"])
    assert [row["__unchanged"] for row in found] == [2, 0, 1, 3]
    assert {word for row in found for word in row["text"].split()} == {"cat"}


@pytest.mark.parametrize("repeat", ["each", "same"])
def test_in_a_bag_a_word_is_unchanged_wherever_it_goes(bundles, monkeypatch, repeat):
    monkeypatch.setattr(type(bundles[False].mechanism), "draw", lambda _, batch, __: replace(batch, ids=batch.ids % 24))
    text = "a b c d e f g h i j a b cat zebra zebra"  # the stub draws `b` for the unknown word, 25
    found = rows(sanitiser(bundles, repeat, output="bag"), [text] * 20)
    assert {row["__unchanged"] for row in found} == {13}
    assert len({row["text"] for row in found}) == 20


@pytest.mark.parametrize("policy", SHAPES, ids=str)
def test_a_record_costs_its_distinct_words(bundles, policy):
    """Of hostile texts too: nothing fails, equal forms come out equal, and what is inspected is what is charged."""
    raw = map(_decoded, [*HOSTILE.values(), *random_texts(150, 5, WORDS)])
    texts = [TEXT, "zebra zebra lion", "the the and and cat", *(text for text in raw if text is not None)]
    toy, made = sanitiser(bundles, **policy), TextPolicy(repeat="same", **policy)
    done = toys.sanitise(toy, toys.record_batch(texts))
    (inspected,) = toy.inspect(toys.record_batch(texts))
    assert inspected["__tag"].to_pylist() == done["content_tag"].to_pylist()
    encoded = Codec(made, bundles[made.pads].vocabulary).encode(pa.array(texts))
    distinct = [len(set(some)) for some in unravel(encoded.pattern.firsts, encoded.offsets)]
    before = words_of_each(Tokeniser().normalise(pa.array(texts)).to_pylist())
    released = 0
    for row, tokens, count, words in zip(done.to_pylist(), inspected["__tokens"], distinct, before, strict=True):
        privacy = row["privacy"]
        if privacy is None:
            assert (row["status"], tokens.as_py()) == ("quarantined", None)
            continue
        released += 1
        assert privacy["tokens"] == tokens.as_py() == (made.n_max or count)
        assert privacy["epsilon_bound"] == privacy["tokens"] * bundles[made.pads].guarantee.pure
        assert privacy["epsilon_pure"] is None
        assert (privacy["composition"], privacy["relation"]) == ("distinct", "same_skeleton")
        assert "repetition" in privacy["exposes"]
        if not policy:
            assert len(set(zip(words, row["text"].split(), strict=True))) == len(set(words)) == count
    assert released > 150


def _decoded(text: bytes | None) -> str | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None
