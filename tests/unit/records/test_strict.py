"""Strict policies show the same of every text, but for the words, the tag and the internal statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support import toys
from support.hostile_texts import HOSTILE, MOST_BYTES, random_texts
from support.toys import WORDS
from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.streams import TAG_BYTES
from wordveil.privacy.relations import Relation
from wordveil.records import sanitiser as module
from wordveil.records import schema
from wordveil.records.sanitiser import RecordSanitiser, find_refusals
from wordveil.records.schema import REASON_COLUMN, STATISTIC_FIELDS, TEXT_COLUMN
from wordveil.text.policy import TextPolicy

N_MAX = 5
STOP_WORDS = ("of", "on", "the")
CHOICES = {
    "tokeniser": ("words", "characters", "whitespace"),
    "hyphens": ("split", "inner"),
    "unknown": ("mask", "drop", "quarantine"),
    "case": ("lower", "exact"),
    "digits": ("hide", "drop"),
    "controls": ("keep", "drop", "quarantine"),
    "stop_words": ("hide", "drop"),
    "stop_word_capitals": ("match", "replace"),
}
SHAPES = [*product(("pad", "sample"), ("sequence", "bag"))]
SETTINGS = {"laplace": {"epsilon": 2.0}, "exponential": {"epsilon": 2.0, "gamma": 2.0}}
FREE = ("text", "content_tag", *(field.name for field in STATISTIC_FIELDS))
"""Columns that follow the text. Of the first two :func:`faults` says what they may be."""
Texts = Sequence[bytes | None]


def policy_of(length: str, output: str, **settings: Any) -> TextPolicy:
    listed = {"stop_word_list": STOP_WORDS} if settings.get("stop_words", "hide") != "hide" else {}
    return TextPolicy(**{"refused": "empty", "n_max": N_MAX, **listed, **settings}, length=length, output=output)


def all_settings() -> list[dict[str, str]]:
    every = [dict(zip(CHOICES, chosen, strict=True)) for chosen in product(*CHOICES.values())]
    return [chosen for chosen in every if (chosen["stop_words"], chosen["stop_word_capitals"]) != ("hide", "replace")]


def chosen_settings() -> list[dict[str, str]]:
    """A few of :func:`all_settings` in which every two choices of two settings meet."""
    pairs = [(settings, {*combinations(settings.items(), 2)}) for settings in all_settings()]
    wanted = {pair for _, met in pairs for pair in met}
    chosen = []
    while wanted:
        best, met = max(pairs, key=lambda one: len(wanted & one[1]))
        wanted -= met
        chosen.append(best)
    return chosen


def name_of(policy: TextPolicy) -> str:
    return "-".join(str(getattr(policy, name)) for name in ("length", "output", *CHOICES))


POLICIES = [policy_of(*shape, **settings) for shape in SHAPES for settings in chosen_settings()]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Bundle]:
    """Bundles of few words, by mechanism and padding."""
    vectors = np.random.default_rng(2).standard_normal((len(WORDS) + 2, 4))
    embedding, store = toys.toy_embedding([*WORDS, "Cat", "straße"], vectors), tmp_path_factory.mktemp("strict")
    return {
        (name, padding): toys.make_bundle(store, embedding, SETTINGS[name], padding=padding, mechanism=name)
        for name, padding in product(SETTINGS, (False, True))
    }


def input_of(texts: Texts) -> pa.RecordBatch:
    """Records with these texts, refused as they are before a sanitiser sees them, and a kept column."""
    raw = pa.array(texts, pa.binary())
    ids = pa.array([f"r{number}" for number in range(len(texts))])
    strings = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    reason = find_refusals(ids, [strings], MOST_BYTES)
    readable = pc.if_else(reason.is_null(), strings, pa.scalar(None, pa.string()))
    day = pa.array([number % 3 for number in range(len(texts))])
    return pa.RecordBatch.from_arrays([ids, day, readable, reason], names=["id", "day", TEXT_COLUMN, REASON_COLUMN])


def slices_of(sanitiser: RecordSanitiser, texts: Texts) -> list[pa.RecordBatch]:
    return list(sanitiser.sanitise(input_of(texts)))


def faults(sanitiser: RecordSanitiser, bundle: Bundle, policy: TextPolicy, texts: Texts) -> set[str]:
    """What tells ``texts`` from as many empty ones, by name; and what is wrong in a column that may follow them."""
    made, plain = slices_of(sanitiser, texts), slices_of(sanitiser, [b""] * len(texts))
    found = {"slices"} if [piece.num_rows for piece in made] != [piece.num_rows for piece in plain] else set()
    one, other = pa.Table.from_batches(made), pa.Table.from_batches(plain)
    if one.num_rows != other.num_rows or not one.schema.equals(other.schema, check_metadata=True):
        return found | {"rows or schema"}
    found |= {name for name in one.column_names if name not in (*FREE, "privacy") and not one[name].equals(other[name])}
    fields = zip(one["privacy"].flatten(), other["privacy"].flatten(), schema.PRIVACY_TYPE.names, strict=True)
    found |= {
        f"privacy.{name}"
        for mine, theirs, name in fields
        if not mine.equals(theirs) or len({*map(str, theirs.to_pylist())}) > 1
    }
    are_wrong = {
        "status": {*one["status"].to_pylist()} != {"released"},
        "reason": one["reason"].null_count < one.num_rows,
        "privacy": one["privacy"].null_count > 0,
        "content_tag": any(tag is None or len(tag) != TAG_BYTES for tag in one["content_tag"].to_pylist()),
        "text": any(map(_is_no_output(bundle, policy), one["text"].to_pylist())),
    }
    return found | {name for name, is_wrong in are_wrong.items() if is_wrong}


def _is_no_output(bundle: Bundle, policy: TextPolicy) -> Any:
    """Whether a text is anything else than words of the vocabulary with single spaces: ``n_max`` of them, or, where
    padding is left out, up to so many.
    """
    known, padded = {*bundle.vocabulary.array.to_pylist()}, policy.length == "pad"

    def check(text: str | None) -> bool:
        words = [] if text == "" else str(text).split(" ")
        return text is None or not known.issuperset(words) or len(words) > N_MAX or (not padded and len(words) < N_MAX)

    return check


def fuzz(bundles: dict[tuple[str, bool], Bundle], policy: TextPolicy, texts: Texts) -> None:
    for name in SETTINGS:
        bundle = bundles[name, policy.pads]
        assert faults(toys.record_sanitiser(bundle, policy, kept=("day",)), bundle, policy, texts) == set(), name


@pytest.fixture(scope="module")
def texts() -> Texts:
    return [*HOSTILE.values(), *random_texts(150, 1, WORDS)]


@pytest.mark.parametrize("policy", POLICIES, ids=name_of)
def test_every_text_shows_the_same(bundles, texts: Texts, policy: TextPolicy):
    assert policy.relation is Relation.ANY_TEXT
    fuzz(bundles, policy, texts)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES, ids="-".join)
@pytest.mark.parametrize("tokeniser", CHOICES["tokeniser"])
def test_every_text_shows_the_same_under_all_policies(bundles, shape: tuple[str, str], tokeniser: str):
    for number, settings in enumerate(all_settings()):
        if settings["tokeniser"] == tokeniser:
            fuzz(bundles, policy_of(*shape, **settings), [*HOSTILE.values(), *random_texts(1000, 100 + number, WORDS)])


def test_the_texts_are_refused_for_every_reason_but_one(bundles, texts: Texts):
    """Under a policy that does quarantine. How many tokens there are is no reason where their number is public."""
    sanitiser = toys.record_sanitiser(
        bundles["laplace", True],
        policy_of("pad", "sequence", refused="quarantine", unknown="quarantine", controls="quarantine"),
        kept=("day",),
    )
    found = {*pa.Table.from_batches(slices_of(sanitiser, texts))["reason"].to_pylist()}
    of_policies = {"other_language", "too_many_unknown_words"}  # tests/unit/text/test_foreign.py has these
    assert found == {None, *schema.TEXT_REASONS} - {schema.TOO_MANY_TOKENS} - of_policies


def test_every_reason_shows_the_same(bundles, monkeypatch: pytest.MonkeyPatch):
    for reason in schema.TEXT_REASONS:
        monkeypatch.setitem(globals(), "find_refusals", lambda ids, _, __, reason=reason: pa.repeat(reason, len(ids)))
        fuzz(bundles, policy_of("pad", "sequence"), [b"the cat"] * 3)


@pytest.mark.parametrize("settings", [{}, {"unknown": "quarantine"}, {"length": "sample"}], ids=str)
def test_under_refused_quarantine_only_the_refusal_shows(bundles, texts: Texts, settings: dict[str, str]):
    policy = policy_of(**{"length": "pad", "output": "sequence", "refused": "quarantine", **settings})
    assert "presence" in policy.exposes
    bundle = bundles["laplace", policy.pads]
    sanitiser = toys.record_sanitiser(bundle, policy, kept=("day",))
    done = pa.Table.from_batches(slices_of(sanitiser, texts))
    assert done["id"].equals(pa.chunked_array([input_of(texts)["id"]]))
    refused = pc.equal(done["status"], "quarantined")
    assert refused.equals(pc.is_valid(done["reason"]))
    kept = [text for text, gone in zip(texts, refused.to_pylist(), strict=True) if not gone]
    assert len(kept) > 50
    assert faults(sanitiser, bundle, policy, kept) == set()
    empty = done.filter(refused)
    assert all(empty[name].null_count == empty.num_rows for name in ("text", "privacy", "content_tag"))


class Dropping(RecordSanitiser):
    """Leaves refused records out."""

    def sanitise(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        return super().sanitise(batch.filter(pc.is_null(batch[REASON_COLUMN])))


class Sorting(RecordSanitiser):
    """Gives long texts first."""

    def sanitise(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        sizes = pc.negate(pc.fill_null(pc.binary_length(batch[TEXT_COLUMN]), 0))
        return super().sanitise(batch.take(pc.array_sort_indices(sizes)))


class Telling(RecordSanitiser):
    """Shows of what is a word outside the vocabulary that it is one."""

    def _draw(self, encoded: Any, messages: list[bytes]) -> Any:
        (texts,), *others = super()._draw(encoded, messages)
        return ([pc.if_else(pa.array(encoded.unknown > 0), "?", texts)], *others)


AS_IS = {"length": "as_is", "n_max": None, "refused": "quarantine"}
REFUSED = {"status", "reason", "privacy", "content_tag", "text"}


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"refused": "quarantine"}, REFUSED),
        (AS_IS, {*REFUSED, "privacy.tokens", "privacy.epsilon_bound", "privacy.delta"}),
        *(
            ({**AS_IS, **copied}, {*REFUSED, "privacy.tokens"})
            for copied in ({"unknown": "keep"}, {"case": "restore"}, {"punctuation": "keep"})
        ),
    ],
)
def test_the_fuzz_finds_policies_that_show_more(bundles, texts: Texts, settings: dict[str, Any], found: set[str]):
    policy = policy_of(**{"length": "pad", "output": "sequence", **settings})
    bundle = bundles["laplace", policy.pads]
    assert faults(toys.record_sanitiser(bundle, policy, kept=("day",)), bundle, policy, texts) >= found


@pytest.mark.parametrize(
    ("kind", "found"),
    [(RecordSanitiser, set()), (Dropping, {"slices", "rows or schema"}), (Sorting, {"id", "day"}), (Telling, {"text"})],
)
def test_the_fuzz_finds_broken_sanitisers(bundles, texts: Texts, kind: type[RecordSanitiser], found: set[str]):
    policy, bundle = policy_of("pad", "sequence"), bundles["laplace", True]
    settings = module.RecordSettings(toys.RELEASE, "test-run", policy, ("day",))
    assert faults(kind(settings, bundle, toys.KEYS), bundle, policy, texts) == found
