"""Typed tokens through the sanitiser: only class and shape reach an output, whatever is recognised."""

from __future__ import annotations

import itertools
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
LISTS = "en"  # for the fixture `bundles`
STOPS = {"stop_words": "keep", "stop_word_list": ("at", "on", "or", "the")}
_CANARIES = {
    "email": "quentin.zorblax@frobnicate.com", "url": "https://frobnicate.com/quentin/zorblax?token=9f8e7d",
    "phone": "+1 617-867-5309", "ip": "198.41.33.77", "date": "1987-03-14", "time": "03:47:59",
    "number": "86,753,091,234", "year": "1877", "amount": "$48,151,623.42", "account": "DE44500105175407324931",
    "card": "4539 1488 0343 6467", "mention": "@quentin_zorblax", "hashtag": "#frobnicategate",
    "emoji": "\U0001f9ff", "markup": '<a href="quentin">', "first_name": "Alexandria", "surname": "Featherstone",
    "place": "Nairobi", "nationality": "Azerbaijanis",
}  # fmt: skip
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
    *found, plain = sanitise(bundles, policy, [text_with(CANARIES[kind])] * RECORDS + [text_with("")])
    texts = [row["text"] for row in found]
    whole = sum(CANARIES[kind].casefold() in text.casefold() for text in texts)
    # An emoji or a name is drawn among thousands, and may come back.
    assert whole <= (2 if kind in ("emoji", *NAME_TYPES) else 0)
    for part in ("quentin", "zorblax", "frobnicate", "9f8e7d"):
        assert not any(part in text for text in texts)
    assert {row["privacy"]["tokens"] for row in found} == {plain["privacy"]["tokens"]}
    assert "types" in found[0]["privacy"]["exposes"]
    assert len(set(texts)) > RECORDS / 2


def test_under_strict_nothing_shows(bundles):
    policy = with_profile("strict", n_max=12, refused="empty")
    for row in sanitise(bundles, policy, [text_with(canary) for canary in CANARIES.values()]):
        assert {*row["text"].split()} <= {*WORDS}
        privacy = row["privacy"]
        assert (privacy["relation"], privacy["exposes"], privacy["tokens"]) == ("any_text", [], 12)


def test_an_output_depends_on_class_and_shape_alone(bundles):
    """Not on the token: two versions have the same tag, and share their draws."""
    policy = with_profile("readable", **STOPS)

    def outputs(*tokens: str) -> list[tuple[str, bytes]]:
        rows = sanitise(bundles, policy, [text_with(token) for token in tokens], ids=["r"] * len(tokens))
        return [(row["text"], row["content_tag"]) for row in rows]

    for pair in (
        ("a@b.com", "john.smith@corp.org"), ("4,711", "9,138"), ("$4.50", "$9.17"), ("2001-02-03", "1987-11-30"),
        ("Alice", "Robert"), ("@john_smith", "@x1"),
    ):  # fmt: skip
        one, other = outputs(*pair)
        assert one == other, pair
    for pair in (("4,711", "47,11"), ("a@b.com", "4711"), ("Alice", "ALICE")):
        one, other = outputs(*pair)
        assert one[1] != other[1], pair


def test_values_are_drawn_apart_from_the_words(bundles):
    """Other keys of values leave the words as they are."""
    keys, others = (toys.MASTER_KEY.for_release(name) for name in ("types", "another"))
    texts = []
    for chosen in (keys, replace(keys, types=others.types)):
        toy = toys.record_sanitiser(bundles[False], with_profile("readable", **STOPS), keys=chosen)
        texts.append(toys.sanitise(toy, toys.record_batch([text_with("4711")]))["text"][0].as_py().split())
    assert texts[0] != texts[1]
    assert [word for word in texts[0] if not word.isdigit()] == [word for word in texts[1] if not word.isdigit()]


def test_name_repeated_in_a_record_is_one_name(bundles):
    policy = with_profile("readable", **STOPS, repeat="same")
    (row,) = sanitise(bundles, policy, ["Alice, 42"], ["the mat from ALICE's cat, 42 or 43; Alice"])
    name = row["subject"].split(",")[0]
    assert name != "Alice"
    assert name.upper() + "'s" in row["body"]
    assert row["body"].endswith(name)
    assert row["subject"].split(", ")[1] in row["body"].split()
    (each,) = sanitise(bundles, with_profile("readable", **STOPS), ["Alice, 42"], ["Alice 42 Alice 42 Alice 42"])
    assert len({*each["body"].split()}) > 2


def _nothing(texts: pa.StringArray) -> TypeSpans:
    none = np.zeros(0, np.int64)
    return TypeSpans(none, none, none.astype(np.int8), np.zeros(len(texts) + 1, np.int64))


def _anything(texts: pa.StringArray, seed: int) -> TypeSpans:
    """Spans at random places, of random classes."""
    random = np.random.default_rng(seed)
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    spans, bounds = [], [0]
    for start, end in itertools.pairwise(offsets):
        cuts = np.unique(random.integers(start, end + 1, 8))
        spans += zip(cuts[::2], cuts[1::2], strict=False)
        bounds.append(len(spans))
    starts, ends = np.array(spans, np.int64).T.copy()  # the loops are compiled for rows
    kinds = random.choice([TYPES.index(kind) for kind in CHARACTER_TYPES], len(spans)).astype(np.int8)
    return TypeSpans(starts, ends, kinds, np.array(bounds, np.int64))


@pytest.mark.parametrize("seed", [None, *range(6)])
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
    policy = with_profile("readable", **STOPS)
    bundle = toys.laplace_bundle(tmp_path, toys.toy_embedding(["a", "b"], [1.0, 2.0]), 1.0, padding=False)
    with pytest.raises(BundleError, match="it was built without public lists"):
        bundle.check_policy(policy)
    bundles[False].check_policy(policy)
    assert [some.manifest["recipe"]["lists"] for some in (bundle, bundles[False])] == ["", "en"]
    # Whatever looks names up in lists of another language would find others, and write those of that language.
    with pytest.raises(BundleError, match="lists are of language en"):
        bundles[False].check_policy(replace(policy, language="de"))
    bundles[False].check_policy(TextPolicy(language="de"))
    named = "mechanism (SHA-256 of the public lists)"
    assert list_settings(policy, bundles[False])[named] == bundles[False].lists.digest


def test_lists_of_an_earlier_version_find_no_nationality(bundles):
    """A bundle keeps its lists, and a policy that says nothing of the class its fingerprint: so its rows stay."""
    lines = bundles[False].lists.serialise().decode().splitlines(keepends=True)
    old = PublicLists.from_bytes("".join(line for line in lines if not line.startswith("nationality")).encode())
    bundle, policy = replace(bundles[False], lists=old), with_profile("readable", **STOPS)
    bundle.check_policy(policy)
    texts = [f"{subject} sat on the mat" for subject in ("the Azerbaijanis", "the cats", "Alice")]
    for some, counts in ((bundle, [1, 1, 0]), (bundles[False], [0, 1, 0])):
        tokens = [row["privacy"]["tokens"] for row in sanitise({False: some}, policy, texts)]
        assert [count - tokens[2] for count in tokens] == counts
    message = r"\(en\) have none of text\.types\.nationality\. An earlier version built it"
    with pytest.raises(BundleError, match=message):
        bundle.check_policy(with_profile("readable", **STOPS, types={"nationality": "tag"}))
    bundle.check_policy(with_profile("readable", **STOPS, types={"nationality": "words"}))
