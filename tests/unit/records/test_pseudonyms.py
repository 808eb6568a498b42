"""Pseudonyms: one for each value of a column in a release, the same on every machine, and never the value."""

from __future__ import annotations

import hashlib
import hmac
import struct

import pyarrow as pa
import pytest

from support.toys import MASTER_KEY, record_batch, write_toy_bundle
from wordveil.artifacts.bundle import open_bundle
from wordveil.crypto.keys import MasterKey
from wordveil.records.pseudonyms import Pseudonym, make_pseudonyms
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.text.policy import TextPolicy

MATERIAL, LATER = bytes(range(7, 39)), bytes(range(60, 92))
CUSTOMER = Pseudonym("customer_id", "customer")


def hashes(values, pseudonym=CUSTOMER, *, release="a", epochs=()):
    keys = MasterKey(MATERIAL, later=epochs).for_release(release)
    return make_pseudonyms(values, pseudonym, keys, release).to_pylist()


def test_pseudonym_is_hmac_of_release_column_and_value():
    """The second value is what every machine must compute: it was written down once."""
    parts = (b"pseudonym", b"a", b"customer_id", b"c-1")
    message = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
    key = MasterKey(MATERIAL).subkey("pseudonym", "a").reveal()
    (found,) = hashes(pa.array(["c-1"]))
    assert found == hmac.new(key, message, hashlib.sha256).hexdigest()[:32]
    assert found == "c4552b68c0091e43ee68865f9e908bc9"


def test_equal_values_have_one_pseudonym_and_null_has_none():
    first, second, *others = hashes(pa.array(["x", "y", "x", None, "", "x "]))
    assert others[:2] == [first, None]
    assert len({first, second, *others[2:]}) == 4
    assert hashes(pa.array([], pa.string())) == []


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.string(), pa.large_string()])
def test_a_number_of_any_type_has_one_pseudonym(kind):
    assert hashes(pa.array([5, -1]).cast(kind)) == hashes(pa.array(["5", "-1"]))


def test_bytes_that_are_no_utf8_have_a_pseudonym():
    raw = pa.array([b"\xff\xfe", b"\xff"], pa.binary())
    broken = pa.StringArray.from_buffers(2, raw.buffers()[1], raw.buffers()[2])
    assert len({*hashes(broken)}) == 2


def test_other_releases_columns_and_keys_have_other_pseudonyms():
    values = pa.array(["c-1"])
    other = MasterKey(LATER).for_release("a")
    found = [
        hashes(values),
        hashes(values, release="b"),
        hashes(values, Pseudonym("referrer", "customer")),
        hashes(values, Pseudonym("customer_id", "customer", rotate=True)),
        make_pseudonyms(values, CUSTOMER, other, "a").to_pylist(),
    ]
    assert len({value for (value,) in found}) == len(found)
    assert hashes(values, Pseudonym("customer_id", "who")) == found[0], "the name in the output changes nothing"


def test_only_rotating_pseudonyms_change_with_the_epoch():
    values, rotating = pa.array(["c-1"]), Pseudonym("customer_id", "customer", rotate=True)
    assert hashes(values, epochs=[LATER]) == hashes(values)
    assert hashes(values, rotating, epochs=[LATER]) != hashes(values, rotating)


def test_a_sanitiser_writes_pseudonyms_instead_of_values(tmp_path):
    """In every row, quarantined ones too, between kept and internal columns; texts and tags are as without them."""
    bundle = open_bundle(write_toy_bundle(tmp_path, epsilon=0.1, padding=False))
    plain = RecordSettings("a", "run", TextPolicy(), ("ds",), internal=1)
    hidden = RecordSettings("a", "run", TextPolicy(), ("ds",), internal=1, pseudonyms=(CUSTOMER,))
    texts, reasons = ["cat dog", "mat", None], [None, None, "null_text"]
    passed = {"ds": pa.array([1, 2, 3]), "customer": pa.array([70, None, 70]), "__author": pa.array(["u", "v", "w"])}
    keys = MASTER_KEY.for_release("a")
    batches = [record_batch(texts, None, reasons, kept) for kept in (passed, {**passed})]
    without = batches[0].drop_columns(["customer"])
    (out,), (before,) = (
        [*RecordSanitiser(settings, bundle, keys).sanitise(batch)]
        for settings, batch in ((hidden, batches[1]), (plain, without))
    )
    assert out.schema.names == ["id", "ds", "customer", "__author", *before.schema.names[3:]]
    first, second, third = out["customer"].to_pylist()
    assert (first, second) == (third, None)
    assert len(first) == 32
    assert out["privacy"][0].as_py()["exposes"] == ["length", "presence", "column:ds", "pseudonym:customer"]
    for name in ("text", "status", "content_tag", "ds", "__author"):
        assert out[name] == before[name]
