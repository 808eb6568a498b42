"""Typed tokens through the sanitiser: nothing of them but class and shape reaches an output, and they cost nothing.

Recognition decides how a text looks, never what is protected: whatever is found, no original survives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import toys
from wordveil.artifacts.bundle import Bundle
from wordveil.errors import BundleError
from wordveil.records.columns import TextColumns, text_inputs
from wordveil.records.fixed_settings import explain_change, list_settings
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN
from wordveil.text.policy import TextPolicy, with_profile
from wordveil.text.types import typed as module
from wordveil.text.types.classes import (
    CHARACTER_TYPES,
    CLASSES,
    NAME_TYPES,
    TYPES,
    TokenClass,
    TypeSpans,
    newest_version,
)
from wordveil.text.types.lists import PublicLists

WORDS = [*"abcdefghijklmnopqrst", "the", "cat", "sat", "mat", "please", "mail", "or", "call", "on", "at", "from", "pay"]
LISTS = "en"
STOPS = {"stop_words": "keep", "stop_word_list": ("at", "on", "or", "the")}
_CANARIES = {
    "email": "quentin.zorblax@frobnicate.com",
    "url": "https://frobnicate.com/quentin/zorblax?token=9f8e7d",
    "phone": "+1 617-867-5309",
    "ip": "198.41.33.77",
    "date": "1987-03-14",
    "time": "03:47:59",
    "number": "86,753,091,234",
    "year": "1877",
    "amount": "$48,151,623.42",
    "account": "DE44500105175407324931",
    "card": "4539 1488 0343 6467",
    "mention": "@quentin_zorblax",
    "hashtag": "#frobnicategate",
    "emoji": "\U0001f9ff",
    "markup": '<a href="quentin">',
    "first_name": "Alexandria",
    "surname": "Featherstone",
    "place": "Nairobi",
    "nationality": "Azerbaijanis",
}
CANARIES = {kind: _CANARIES.get(kind) or entry.examples[0] for kind, entry in CLASSES.items()}
RECORDS = 40


def sanitise(bundles: dict[bool, Bundle], policy: TextPolicy, *columns: list[str], ids: Any = None) -> list[dict]:
    names = ("text",) if len(columns) == 1 else ("subject", "body")
    settings = RecordSettings("types", "run", policy, (), columns=TextColumns(names))
    sanitiser = RecordSanitiser(settings, bundles[policy.pads], toys.MASTER_KEY.for_release("types"))
    count = len(columns[0])
    arrays = [pa.array(ids or [f"r{i}" for i in range(count)])]
    arrays += [pa.array(column, pa.string()) for column in columns]
    arrays.append(pa.nulls(count, pa.string()))
    batch = pa.RecordBatch.from_arrays(arrays, names=["id", *text_inputs(len(columns)), REASON_COLUMN])
    return toys.sanitise(sanitiser, batch).to_pylist()


def text_with(canary: str) -> str:
    return f"please the cat sat at {canary} on the mat, mail from a."


@pytest.mark.parametrize("kind", CANARIES)
def test_no_token_survives_and_none_costs_anything(bundles, kind):
    policy = with_profile("readable", **STOPS, types_version=newest_version())
    rows = sanitise(bundles, policy, [text_with(CANARIES[kind])] * RECORDS)
    plain = sanitise(bundles, policy, [text_with("")] * RECORDS)
    texts = [row["text"] for row in rows]
    whole = sum(CANARIES[kind].casefold() in text.casefold() for text in texts)
    # An emoji or a name is drawn among thousands, and may come back.
    assert whole <= (2 if kind in ("emoji", *NAME_TYPES) else 0)
    for part in ("quentin", "zorblax", "frobnicate", "9f8e7d"):
        assert not any(part in text for text in texts)
    assert {row["privacy"]["tokens"] for row in rows} == {row["privacy"]["tokens"] for row in plain}
    assert "types" in rows[0]["privacy"]["exposes"]
    assert len(set(texts)) > RECORDS / 2


@pytest.mark.parametrize("action", ["mask", "tag", "surrogate"])
@pytest.mark.parametrize("kind", CHARACTER_TYPES)
def test_every_action_hides_the_token(bundles, kind, action):
    policy = with_profile("readable", **STOPS, types={kind: action}, types_version=newest_version())
    rows = sanitise(bundles, policy, [text_with(CANARIES[kind])] * 5)
    plain = sanitise(bundles, policy, [text_with("")] * 5)
    assert not any(CANARIES[kind].casefold() in row["text"].casefold() for row in rows)
    more = rows[0]["privacy"]["tokens"] - plain[0]["privacy"]["tokens"]
    assert more == (1 if action == "mask" else 0)
    if action == "tag":
        assert all(f"<{kind}>" in row["text"] for row in rows)


def test_under_strict_nothing_shows(bundles):
    policy = with_profile("strict", n_max=12, refused="empty")
    rows = sanitise(bundles, policy, [text_with(canary) for canary in CANARIES.values()])
    words = {*WORDS}
    assert all({*row["text"].split()} <= words for row in rows)
    assert {row["privacy"]["relation"] for row in rows} == {"any_text"}
    assert {tuple(row["privacy"]["exposes"]) for row in rows} == {()}
    assert {row["privacy"]["tokens"] for row in rows} == {12}


def test_an_output_depends_on_class_and_shape_alone(bundles):
    """Not on the token: two versions have the same tag, and share their draws."""
    policy = with_profile("readable", **STOPS)
    pairs = [
        ("a@b.com", "john.smith@corp.org"),
        ("4,711", "9,138"),
        ("$4.50", "$9.17"),
        ("2001-02-03", "1987-11-30"),
        ("Alice", "Robert"),
        ("@john_smith", "@x1"),
    ]
    for one, other in pairs:
        rows = [sanitise(bundles, policy, [text_with(token)], ids=["r"])[0] for token in (one, other)]
        assert rows[0]["text"] == rows[1]["text"], (one, other)
        assert rows[0]["content_tag"] == rows[1]["content_tag"]
    for one, other in (("4,711", "47,11"), ("a@b.com", "4711"), ("Alice", "ALICE")):
        rows = [sanitise(bundles, policy, [text_with(token)], ids=["r"])[0] for token in (one, other)]
        assert rows[0]["content_tag"] != rows[1]["content_tag"], (one, other)


def test_values_are_drawn_apart_from_the_words(bundles):
    """Other keys of values leave the words as they are."""
    policy = with_profile("readable", **STOPS)
    settings = RecordSettings("types", "run", policy, ())
    keys = toys.MASTER_KEY.for_release("types")
    others = toys.MASTER_KEY.for_release("another")
    mixed = type(keys)(**{**vars(keys), "types": others.types})
    texts = [
        toys.sanitise(RecordSanitiser(settings, bundles[False], chosen), toys.record_batch([text_with("4711")]))
        .column("text")[0]
        .as_py()
        for chosen in (keys, mixed)
    ]
    assert texts[0] != texts[1]
    assert [word for word in texts[0].split() if not word.isdigit()] == [
        word for word in texts[1].split() if not word.isdigit()
    ]


def test_name_repeated_in_a_record_is_one_name(bundles):
    policy = with_profile("readable", **STOPS, repeat="same")
    (row,) = sanitise(bundles, policy, ["Alice, 42"], ["the mat from ALICE's cat, 42 or 43; Alice"])
    name = row["subject"].split(",")[0]
    assert name != "Alice"
    assert name.upper() + "'s" in row["body"]
    assert row["body"].endswith(name)
    number = row["subject"].split(", ")[1]
    assert number in row["body"].split()
    (each,) = sanitise(bundles, with_profile("readable", **STOPS), ["Alice, 42"], ["Alice 42 Alice 42 Alice 42"])
    assert len({*each["body"].split()}) > 2


def _nothing(texts: pa.StringArray) -> TypeSpans:
    none = np.zeros(0, np.int64)
    return TypeSpans(none, none, none.astype(np.int8), np.zeros(len(texts) + 1, np.int64))


def _anything(texts: pa.StringArray, seed: int) -> TypeSpans:
    """Spans at random places, of random classes."""
    random = np.random.default_rng(seed)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    starts, ends, kinds, bounds = [], [], [], [0]
    for record in range(len(texts)):
        cuts = np.unique(random.integers(offsets[record], offsets[record + 1] + 1, 8))
        for start, end in zip(cuts[::2], cuts[1::2], strict=False):
            starts.append(start)
            ends.append(end)
            kinds.append(TYPES.index(random.choice(CHARACTER_TYPES)))
        bounds.append(len(starts))
    return TypeSpans(
        np.array(starts, np.int64), np.array(ends, np.int64), np.array(kinds, np.int8), np.array(bounds, np.int64)
    )


@pytest.mark.parametrize("seed", [None, *range(12)])
def test_whatever_is_recognised_no_word_of_the_original_survives(bundles, monkeypatch, seed):
    """With a recogniser that finds nothing, and with one that finds anything, hidden words stay hidden."""
    secrets = ["zorblax", "frobnicate", "86753", "quuxly"]
    texts = [f"{one} sat at {other} 4{one} or {one}@{other}.com" for one in secrets for other in secrets]
    monkeypatch.setattr(
        module.Recogniser, "find", lambda _, found: _nothing(found) if seed is None else _anything(found, seed)
    )
    for policy in (with_profile("readable", **STOPS), with_profile("strict", n_max=6), TextPolicy(names="gazetteer")):
        for text in (row["text"] for row in sanitise(bundles, policy, texts)):
            assert not any(secret in text for secret in secrets), text


def test_policy_of_an_earlier_version_keeps_its_classes(bundles, monkeypatch):
    """A class that is added ends no release: rows, fingerprint and recorded settings of version 1 stay."""
    newest = newest_version() + 1
    texts = [text_with(canary) for canary in CANARIES.values()]
    first = with_profile("readable", **STOPS, types_version=1)
    rows, recorded = sanitise(bundles, first, texts), list_settings(first, bundles[False])
    ticket = TokenClass("ticket", ("T-0001", "T-0002"), lambda lists: ("#", lists.words), since=newest)
    monkeypatch.setitem(CLASSES, "ticket", ticket)
    with pytest.raises(ValueError, match=r"types_version: \d+ is unknown"):
        TextPolicy(types_version=newest + 1)
    for same in (with_profile("readable", **STOPS), with_profile("readable", **STOPS, types_version=1)):
        assert sanitise(bundles, same, texts) == rows
        assert same.fingerprint == first.fingerprint
        assert list_settings(same, bundles[False]) == recorded
    later = with_profile("readable", **STOPS, types_version=newest)
    assert later.type_actions["ticket"] == "surrogate"
    assert [row["text"] for row in sanitise(bundles, later, texts)] != [row["text"] for row in rows]
    unrecorded = {name: value for name, value in recorded.items() if name != "text.types_version"}
    for before in (recorded, unrecorded):
        terms = ("policy_fingerprint", later.fingerprint, first.fingerprint)
        change = explain_change(*terms, list_settings(later, bundles[False]), before)
        assert f"text.types_version is {newest} now and was 1" in change


def test_a_bundle_without_lists_is_refused(bundles, tmp_path):
    embedding = toys.toy_embedding(["a", "b"], [1.0, 2.0])
    bundle = toys.laplace_bundle(tmp_path, embedding, 1.0, padding=False)
    with pytest.raises(Exception, match="it was built without public lists"):
        bundle.check_policy(with_profile("readable", **STOPS))
    bundles[False].check_policy(with_profile("readable", **STOPS))
    assert bundles[False].lists is not None
    assert bundles[False].manifest["recipe"]["lists"] == "en"
    assert bundle.manifest["recipe"]["lists"] == ""


def test_lists_of_another_language_are_refused(bundles):
    """Whatever looks names up in them would find others, and write those of another language."""
    with pytest.raises(BundleError, match="lists are of language en"):
        bundles[False].check_policy(with_profile("readable", **STOPS, language="de"))
    bundles[False].check_policy(TextPolicy(language="de"))


def test_lists_of_an_earlier_version_find_no_nationality(bundles):
    """A bundle keeps its lists, and a policy that says nothing of the class its fingerprint: so its rows stay."""
    lines = bundles[False].lists.serialise().decode().splitlines(keepends=True)
    old = PublicLists.from_bytes("".join(line for line in lines if not line.startswith("nationality")).encode())
    bundle, policy = replace(bundles[False], lists=old), with_profile("readable", **STOPS)
    bundle.check_policy(policy)
    texts = ["the Azerbaijanis sat on the mat", "the cats sat on the mat", "Alice sat on the mat"]
    rows = sanitise({False: bundle}, policy, texts)
    assert rows[0]["privacy"]["tokens"] == rows[1]["privacy"]["tokens"] == rows[2]["privacy"]["tokens"] + 1
    now = sanitise(bundles, policy, texts)
    assert now[0]["privacy"]["tokens"] == now[2]["privacy"]["tokens"]
    with pytest.raises(
        BundleError, match=r"\(en\) have none of text\.types\.nationality\. An earlier version built it"
    ):
        bundle.check_policy(with_profile("readable", **STOPS, types={"nationality": "tag"}))
    bundle.check_policy(with_profile("readable", **STOPS, types={"nationality": "words"}))


def test_the_fixed_settings_of_a_release_tell_lists_apart(bundles):
    named = "mechanism (SHA-256 of the public lists)"
    assert list_settings(with_profile("readable", **STOPS), bundles[False])[named] == bundles[False].lists.digest
