"""Several text columns of a record: one noise stream, one price, one tag, and each word stays in its column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support import toys
from wordveil.artifacts.bundle import Bundle
from wordveil.mechanisms.base import TokenBatch
from wordveil.records import sanitiser as module
from wordveil.records.columns import TextColumns, text_inputs
from wordveil.records.paths import parse_path, read_path
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import REASON_COLUMN
from wordveil.text.policy import TextPolicy

WORDS = [*"abcdefghijklmnopqrst", "the", "cat", "sat", "mat"]
COPYING = {"punctuation": "keep", "case": "restore"}
Rows = list[dict[str, Any]]


def sanitiser(
    bundles: dict[bool, Bundle], names: tuple[str, ...] = ("subject", "body"), widths: Any = (), **policy: Any
) -> RecordSanitiser:
    made = TextPolicy(**policy, **({"n_max": sum(widths)} if widths else {}))
    settings = RecordSettings("columns", "run", made, (), columns=TextColumns(names, tuple(widths)))
    return RecordSanitiser(settings, bundles[made.pads], toys.MASTER_KEY.for_release("columns"))


def batch(*columns: list[str | None], ids: list[str] | None = None, reason: str | None = None) -> pa.RecordBatch:
    count = len(columns[0])
    values = [pa.array(ids or [f"r{i}" for i in range(count)])]
    values += [pa.array(column, pa.string()) for column in columns]
    names = ["id", *text_inputs(len(columns)), REASON_COLUMN]
    return pa.RecordBatch.from_arrays([*values, pa.array([reason] * count, pa.string())], names=names)


def rows(toy: RecordSanitiser, *columns: list[str | None], ids: list[str] | None = None) -> Rows:
    return toys.sanitise(toy, batch(*columns, ids=ids)).to_pylist()


def test_a_dotted_name_becomes_a_field_of_a_struct(bundles):
    names = ("message.subject", "title", "message.parts.body", "`a.b`")
    (row,) = rows(sanitiser(bundles, names), ["a"], ["b c"], ["d e f"], ["g"])
    assert [*row][1:5] == ["message", "title", "a.b", "status"]
    assert [*row["message"]] == ["subject", "parts"]
    texts = [row["message"]["subject"], row["title"], row["message"]["parts"]["body"], row["a.b"]]
    assert [len(text.split()) for text in texts] == [1, 2, 3, 1]
    assert (row["status"], row["__words"], row["__unknown"]) == ("released", 7, 0)


def test_one_price_for_all_columns(bundles):
    guarantee = bundles[False].guarantee
    found = rows(sanitiser(bundles), ["a b", "", "a"], ["c d e", "", None])
    assert [row["privacy"]["tokens"] for row in found] == [5, 0, 1]
    assert [row["privacy"]["epsilon_bound"] for row in found] == pytest.approx([5 * guarantee.pure, 0, guarantee.pure])
    assert found[0]["privacy"]["relation"] == "same_length"


@pytest.mark.parametrize("length", ["pad", "sample"])
def test_a_hidden_length_costs_the_sum_of_the_widths(bundles, length):
    found = rows(sanitiser(bundles, widths=(3, 7), length=length), ["a b c d e", "", "a"], ["c", "", None])
    assert {row["privacy"]["tokens"] for row in found} == {10}
    (pure,) = {row["privacy"]["epsilon_pure"] for row in found}
    assert pure == pytest.approx(10 * bundles[length == "pad"].guarantee.pure)
    assert {row["privacy"]["relation"] for row in found} == {"any_text"}
    counts = [(len(row["subject"].split()), len(row["body"].split())) for row in found]
    if length == "sample":
        assert counts == [(3, 7)] * 3
    else:
        assert all(subject <= 3 and body <= 7 for subject, body in counts)
        assert any(row["body"] for row in found[1:])


def test_positions_run_on_over_the_columns(bundles, monkeypatch):
    """A draw at the same context and position is the same, however the words are spread over columns."""
    seen: list[TokenBatch] = []
    mechanism = bundles[False].mechanism
    draw = type(mechanism).draw
    monkeypatch.setattr(
        type(mechanism), "draw", lambda self, tokens, keys: (seen.append(tokens), draw(self, tokens, keys))[1]
    )
    found = rows(sanitiser(bundles), ["a b", "c"], ["c d e", "a a"])
    (tokens,) = seen
    assert [WORDS[i] for i in tokens.ids] == [*"abcde", *"caa"]
    assert tokens.offsets.tolist() == [0, 5, 8]
    again = TokenBatch(tokens.ids, tokens.offsets, tokens.contexts)
    drawn = draw(mechanism, again, toys.MASTER_KEY.for_release("columns")).ids
    assert [WORDS[i] for i in drawn] == " ".join(f"{row['subject']} {row['body']}" for row in found).split()


PADDED = {"widths": (3, 4), "length": "pad"}


@pytest.mark.parametrize("policy", [{}, COPYING, {"repeat": "same"}, {"output": "bag"}, PADDED])
def test_where_a_word_stands_changes_tag_and_noise(bundles, policy):
    shapes = [("a b", "c"), ("a", "b c"), ("", "a b c"), ("a b c", ""), ("a c", "b"), ("a b", "c")]
    found = [rows(sanitiser(bundles, **policy), [subject], [body], ids=["r"])[0] for subject, body in shapes]
    assert len({row["content_tag"] for row in found}) == 5
    assert len({" ".join(f"{row['subject']} {row['body']}".split()) for row in found}) > 2
    assert found[0] == found[-1]


def test_names_widths_and_order_are_part_of_the_fingerprint(bundles):
    policy = TextPolicy(length="pad", n_max=10)
    one = TextColumns().fingerprint(policy)
    assert one == TextColumns(("text",), (10,)).fingerprint(policy) == policy.fingerprint
    columns = [(("subject", "body"), (3, 7)), (("subject", "body"), (7, 3)), (("body", "subject"), (3, 7))]
    columns += [(("subject", "body", "note"), (3, 3, 4))]
    several = [TextColumns(*some).fingerprint(policy) for some in columns]
    assert len({one, *several}) == 5
    (row,) = rows(sanitiser(bundles, widths=(3, 7), length="pad"), ["a"], ["b"])
    assert row["privacy"]["policy"] == several[0]


def test_widths_must_add_up():
    for widths in ((3, 3), ()):
        with pytest.raises(ValueError, match="do not add up"):
            TextColumns(("a", "b"), widths).split_policy(TextPolicy(length="pad", n_max=10))


def test_a_null_among_several_texts_is_an_empty_text(bundles):
    for policy in ({}, PADDED):
        toy = sanitiser(bundles, **policy)
        with_null, with_empty = (rows(toy, [text], ["a b"], ids=["r"]) for text in (None, ""))
        assert with_null == with_empty
        assert with_null[0]["subject"] is not None


def test_a_repeated_word_is_one_word_of_the_record(bundles):
    toy, texts = sanitiser(bundles, repeat="same"), (["Cat the zorblax"], ["the mat, zorblax. CAT cat"])
    (row,) = rows(toy, *texts)
    subject, body = row["subject"].split(), row["body"].split()
    assert subject == [body[3], body[0], body[2]]
    assert body[3] == body[4]
    assert (row["privacy"]["tokens"], row["privacy"]["composition"]) == (4, "distinct")
    (inspected,) = toy.inspect(batch(*texts))
    assert inspected.column("__tokens").to_pylist() == [4]


@pytest.mark.parametrize("policy", [{}, PADDED, COPYING, {"output": "bag"}])
def test_equal_unknown_words_across_columns_enter_the_tag(bundles, policy):
    toy = sanitiser(bundles, repeat="same", **policy)
    (same,) = rows(toy, ["zorb a"], ["zorb b"], ids=["r"])
    (other,) = rows(toy, ["zorb a"], ["glim b"], ids=["r"])
    assert same["content_tag"] != other["content_tag"]
    assert (same["subject"], same["body"]) != (other["subject"], other["body"])


def test_a_bag_keeps_words_in_their_columns(bundles, monkeypatch):
    for name in ("draw", "render"):
        monkeypatch.setattr(type(bundles[False].mechanism), name, lambda self, tokens, *keys: tokens)
    subject, body = list("abcdefgh"), list("ijklmnopqrst")
    (row,) = rows(sanitiser(bundles, output="bag"), [" ".join(subject)], [" ".join(body)])
    assert sorted(row["subject"].split()) == subject
    assert sorted(row["body"].split()) == body
    assert row["subject"].split() != subject
    assert row["body"].split() != body


def test_what_is_copied_stays_in_its_column(bundles):
    (row,) = rows(sanitiser(bundles, **COPYING), ["Cat, sat!"], ["(the MAT) -- a?"])
    assert row["subject"][0].isupper()
    assert row["subject"].endswith("!")
    assert row["body"].startswith("(")
    assert row["body"].endswith("?")


def test_one_refused_column_refuses_the_record(bundles):
    found = rows(sanitiser(bundles, unknown="quarantine"), ["a", "a", "zorblax"], ["b", "zorblax", "b"])
    assert [row["reason"] for row in found] == [None, "unknown_words", "unknown_words"]
    assert [row["status"] for row in found] == ["released", "quarantined", "quarantined"]
    assert {text for row in found[1:] for text in (row["subject"], row["body"])} == {None}


def test_a_refused_record_is_empty_in_all_columns(bundles):
    toy = sanitiser(bundles, **PADDED, unknown="quarantine", refused="empty")
    (refused,), (empty,) = (rows(toy, *texts, ids=["r"]) for texts in ((["a b"], ["zorblax"]), ([""], [""])))
    assert {**refused, "__words": 0, "__unknown": 0} == {**empty, "__words": 0, "__unknown": 0}


def test_cuts_of_batches_do_not_matter(bundles, monkeypatch):
    rng = np.random.default_rng(3)
    texts = [[" ".join(rng.choice(WORDS, rng.integers(0, 9))) for _ in range(20)] for _ in range(3)]
    for policy in ({}, {"repeat": "same", **COPYING}, {"widths": (2, 5, 3), "length": "pad", "output": "bag"}):
        toy = sanitiser(bundles, ("one", "two", "three"), **policy)
        whole = rows(toy, *texts)
        assert whole == [row for i in range(20) for row in rows(toy, *([column[i]] for column in texts), ids=[f"r{i}"])]
        monkeypatch.setattr(module, "_SLICE_TOKENS", 20)
        assert rows(sanitiser(bundles, ("one", "two", "three"), **policy), *texts) == whole
        monkeypatch.undo()


def test_names_are_read_as_spark_reads_them():
    paths = {"body": ("body",), "message.body": ("message", "body"), "`a.b`.c d": ("a.b", "c d"), "`a``b`": ("a`b",)}
    assert {name: parse_path(name) for name in paths} == paths
    for name in ("a.", ".a", "a..b", "`a", "a`b`", ""):
        with pytest.raises(ValueError, match="is not a column name"):
            parse_path(name)
        assert read_path(name) == (name,)
