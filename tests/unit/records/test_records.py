"""Records come out once and in order; draw and tag follow from release, id and content alone."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from support.toys import MASTER_KEY, WORDS, record_batch, write_toy_bundle
from wordveil.artifacts.bundle import open_bundle
from wordveil.records import sanitiser as module
from wordveil.records import schema
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.records.schema import OUTPUT_FIELDS, PRIVACY_TYPE, REASON_COLUMN, STATISTIC_FIELDS, TEXT_COLUMN
from wordveil.text.policy import TextPolicy

TEXT = "the cat sat on the mat and the dog sat on the cat and the mat"
PADDED = {"length": "pad", "n_max": 6}
SAME = {"repeat": "same"}
COPYING = {"punctuation": "keep", "case": "restore"}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """Opened toy bundles, by padding. Epsilon is small beside the words' distances, so that most words change."""
    store = tmp_path_factory.mktemp("store")
    return {padding: open_bundle(write_toy_bundle(store, epsilon=0.1, padding=padding)) for padding in (False, True)}


@pytest.fixture
def sanitiser(bundles):
    """Makes a sanitiser of the policy's settings."""

    def make(*, release="toy", kept=(), run="run-1", **policy):
        text_policy = TextPolicy(**policy)
        settings = RecordSettings(release, run, text_policy, tuple(kept))
        return RecordSanitiser(settings, bundles[text_policy.pads], MASTER_KEY.for_release(release))

    return make


def run(toy, texts, ids=None, reasons=None, **kept):
    """All output rows as one table."""
    batch = record_batch(texts, ids, reasons, {name: pa.array(values) for name, values in kept.items()})
    return pa.Table.from_batches(list(toy.sanitise(batch))).combine_chunks()


def tags_of(toy, *args, **kwargs):
    return run(toy, *args, **kwargs)["content_tag"].to_pylist()


def words_drawn(text):
    return text.lower().split()


def test_output_columns(sanitiser):
    out = run(sanitiser(kept=["ds"]), [TEXT], ds=["2026-11-20"])
    made = "text status reason privacy content_tag run_id __words __unknown __unchanged"
    assert out.schema.names == ["id", "ds", *made.split()]
    assert all(out.schema.field(field.name) == field for field in (*OUTPUT_FIELDS, *STATISTIC_FIELDS))
    (row,) = out.to_pylist()
    assert (row["ds"], row["run_id"], row["status"], row["reason"]) == ("2026-11-20", "run-1", "released", None)
    assert len(words_drawn(row["text"])) == 16
    assert set(words_drawn(row["text"])) <= set(WORDS)
    assert words_drawn(row["text"]) != TEXT.split()
    assert (row["__words"], row["__unknown"]) == (16, 2)
    assert len(row["content_tag"]) == 16


def test_privacy_says_what_the_record_cost(sanitiser, bundles):
    rows = run(sanitiser(kept=["z", "ds"]), [TEXT, "cat", ""], z=[1, 2, 3], ds=["a", "b", "c"])["privacy"].to_pylist()
    guarantee = bundles[False].guarantee
    assert [row["tokens"] for row in rows] == [16, 1, 0]
    assert [row["epsilon_bound"] for row in rows] == pytest.approx([16 * guarantee.pure, guarantee.pure, 0])
    assert [row["epsilon_pure"] for row in rows] == [None] * 3
    assert [row["delta"] for row in rows] == [16 * guarantee.delta, guarantee.delta, 0]
    assert guarantee.delta > 0
    varying = ("tokens", "epsilon_bound", "epsilon_pure", "delta")
    constant = {name: rows[0][name] for name in PRIVACY_TYPE.names if name not in varying}
    assert constant == {
        "release_id": "toy",
        "mechanism": "laplace",
        "bundle": bundles[False].fingerprint,
        "search": "exact",
        "search_recall": 1.0,
        "policy": TextPolicy().fingerprint,
        "metric": guarantee.metric.identifier,
        "nominal_epsilon": 0.1,
        "epsilon": 0.1,
        "slack": guarantee.slack,
        "composition": "sequence",
        "relation": "same_length",
        "exposes": ["length", "presence", "column:ds", "column:z"],
    }


REASONS = [None, "null_id", "oversize", None, "null_text", "undecodable", "duplicate_id", None]


@pytest.mark.parametrize("policy", [{}, COPYING], ids=["hiding", "copying"])
def test_number_and_order_of_records_stay_and_refused_are_null(sanitiser, policy):
    texts = [None if reason else f"cat {number}" for number, reason in enumerate(REASONS)]
    texts[3] = "漢字"
    rows = run(sanitiser(**policy), texts, ids=list(range(8)), reasons=REASONS).to_pylist()
    assert [row["id"] for row in rows] == list(range(8))
    assert [row["reason"] for row in rows] == [*REASONS[:3], "script_without_word_spaces", *REASONS[4:]]
    for row in rows:
        assert row["status"] == ("quarantined" if row["reason"] else "released")
        drawn = [row[name] is None for name in ("text", "privacy", "content_tag", "__words", "__unknown")]
        assert drawn == [row["reason"] is not None] * 5
        assert row["run_id"] == "run-1"


@pytest.mark.parametrize("policy", [{}, {"output": "bag"}, COPYING, PADDED], ids=str)
def test_a_batch_of_refused_records_alone_or_of_none(sanitiser, policy):
    out = run(sanitiser(**policy), [None, None], reasons=["null_id", "oversize"])
    assert out["status"].to_pylist() == ["quarantined"] * 2
    assert out["text"].to_pylist() == [None, None]
    assert list(sanitiser(**policy).sanitise(record_batch([]))) == []


def buffers_of(table):
    """All bytes of all columns, hidden ones beneath nulls included."""
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    return b"\0".join(bytes(buffer) for chunk in chunks for buffer in chunk.buffers() if buffer is not None)


@pytest.mark.parametrize("policy", [{}, COPYING, PADDED], ids=str)
def test_the_text_of_a_refused_record_is_in_no_output_column(sanitiser, policy):
    toy = sanitiser(unknown="quarantine", **policy)
    out = run(toy, ["the cat", "SECRETWORD the cat", "漢字仅限内部漢字仅限内部 SECRETWORD", "cat"])
    assert out["reason"].to_pylist() == [None, "unknown_words", "script_without_word_spaces", None]
    content = buffers_of(out)
    assert b"SECRETWORD" not in content.upper()
    assert "漢字".encode() not in content


def test_a_refused_record_changes_nothing_for_the_others(sanitiser):
    toy = sanitiser(unknown="quarantine", **COPYING)
    together = run(toy, ["The cat!", "zebra", "sat", None], reasons=[None, None, None, "oversize"])
    alone = [run(toy, [text], ids=[name]).slice(0, 1) for text, name in (("The cat!", "r0"), ("sat", "r2"))]
    assert together.take([0, 2]).to_pylist() == [row for table in alone for row in table.to_pylist()]


def test_too_many_tokens_are_refused(sanitiser, bundles, monkeypatch):
    toy = sanitiser()
    monkeypatch.setattr(type(bundles[False].mechanism), "max_tokens", 3)
    out = run(toy, ["the cat sat", "the cat sat on"])
    assert out["reason"].to_pylist() == [None, "too_many_tokens"]
    assert out["text"].to_pylist()[1] is None


def test_schema_of_a_batch_with_late_refusals_is_the_same(sanitiser):
    toy = sanitiser(kept=["ds"])
    fields = [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ds", pa.string(), nullable=False, metadata={"a": "b"}),
        pa.field(TEXT_COLUMN, pa.string()),
        pa.field(REASON_COLUMN, pa.string()),
    ]
    found = []
    for text in ("the cat", "漢字"):
        row = {"id": "a", "ds": "d", TEXT_COLUMN: text}
        found += [out.schema for out in toy.sanitise(pa.RecordBatch.from_pylist([row], pa.schema(fields)))]
    assert found[0].equals(found[1], check_metadata=True)


EMPTY = {**PADDED, "refused": "empty", "unknown": "quarantine"}


def test_under_refused_empty_texts_enter_as_the_empty_text(sanitiser):
    toy = sanitiser(**EMPTY)
    texts = [None, None, None, "漢字", "zebra", ""]
    out = run(toy, texts, reasons=["null_text", "oversize", "undecodable", None, None, None])
    assert out["status"].to_pylist() == ["released"] * 6
    assert out["reason"].null_count == 6
    empty = [run(toy, [""], ids=[f"r{number}"]) for number in range(6)]
    for name in ("text", "content_tag", "privacy"):
        assert out[name].to_pylist() == [table[name][0].as_py() for table in empty]


def test_under_refused_empty_no_reason_of_the_id_enters(sanitiser):
    reasons = [*schema.ID_REASONS, None]
    out = run(sanitiser(**EMPTY), [*[None] * len(schema.ID_REASONS), "the"], reasons=reasons)
    assert out["reason"].to_pylist() == reasons
    assert out["text"].is_null().to_pylist() == [reason is not None for reason in reasons]
    assert out["status"].to_pylist() == ["quarantined" if reason else "released" for reason in reasons]


def test_run_and_kept_columns_change_no_draw(sanitiser):
    one, two = (
        run(sanitiser(run=name, kept=["ds"]), [TEXT], ds=[name]).drop_columns(["run_id", "ds"]) for name in ("a", "b")
    )
    assert one.equals(two)


def test_a_record_does_not_depend_on_its_batch(sanitiser):
    texts = [TEXT, "", "cat", TEXT + " dog", "The Cat!"]
    for policy in (
        {},
        {"output": "bag"},
        COPYING,
        PADDED,
        {"length": "sample", "n_max": 5},
        SAME,
        {**SAME, **PADDED, "output": "bag"},
    ):
        toy = sanitiser(**policy)
        alone = [run(toy, [text], ids=[f"r{number}"]).to_pylist()[0] for number, text in enumerate(texts)]
        assert run(toy, texts).to_pylist() == alone
        backwards = run(toy, texts[::-1], ids=[f"r{number}" for number in range(5)][::-1])
        assert backwards.to_pylist() == alone[::-1]


def test_tags_and_texts_follow_id_release_policy_and_content(sanitiser):
    toy = sanitiser()
    assert tags_of(toy, ["The cat, sat"], ids=["a"]) == tags_of(toy, ["the CAT sat!"], ids=["a"])
    others = [
        run(toy, [TEXT, TEXT], ids=["a", "b"]),
        run(toy, [TEXT + " cat", TEXT[:-3]], ids=["a", "a"]),
        *(
            run(sanitiser(**change), [TEXT], ids=["a"])
            for change in ({"release": "other"}, {"output": "bag"}, {"hyphens": "inner"}, {"case": "exact"})
        ),
    ]
    for name, read in (("content_tag", bytes), ("text", lambda text: " ".join(words_drawn(text)[:14]))):
        values = [read(value) for out in others for value in out[name].to_pylist()]
        assert len(set(values)) == len(values) == 8, name


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (TEXT + ".", TEXT + "!"), (TEXT, TEXT.replace("mat and", "mat, and")), (TEXT, TEXT.capitalize()),
        (TEXT, TEXT.replace("cat sat", "cat  sat")), (TEXT + "\x02", TEXT + "\x03"), (TEXT, TEXT + " of"),
        (TEXT, TEXT + " 7"),
    ],
)  # fmt: skip
def test_versions_with_other_copies_share_no_tag_or_noise(sanitiser, one, two):
    """Equal hidden words in both outputs would prove that no hidden word was changed."""
    toy = sanitiser(**COPYING, stop_words="keep", stop_word_list=("of",), digits="keep")
    out = run(toy, [one, two], ids=["a", "a"])
    first, second = (re.findall(r"[\w'-]+", text.lower())[:15] for text in out["text"].to_pylist())
    assert len(first) == len(second) == 15
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 8
    assert out["content_tag"][0] != out["content_tag"][1]


def test_an_id_draws_the_same_whatever_its_type(sanitiser):
    plain = run(sanitiser(), [TEXT, "cat"], ids=["17", "4"])
    for kind in (pa.int64(), pa.int32(), pa.uint16(), pa.large_string()):
        typed = run(sanitiser(), [TEXT, "cat"], ids=pa.array([17, 4]).cast(kind))
        assert typed["id"].type == kind
        assert typed.drop_columns("id").equals(plain.drop_columns("id"))


def test_columns_that_are_not_kept_do_not_pass(sanitiser):
    with pytest.raises(ValueError, match="Expected 4 columns"):
        run(sanitiser(kept=["ds"]), ["cat", "漢字"], ds=[1, 2], secret=["x", "y"])


def test_slices_change_nothing(sanitiser, monkeypatch):
    texts = [TEXT, "cat", None, "zebra", "", "漢字", TEXT]
    reasons = [None, None, "oversize", None, None, None, None]
    for policy in (PADDED, {**PADDED, "unknown": "quarantine"}, {"length": "sample", "n_max": 3}):
        whole = run(sanitiser(**policy), texts, reasons=reasons)
        for tokens in (1, 6, 13, 10**6):
            monkeypatch.setattr(module, "_SLICE_TOKENS", tokens)
            slices = list(sanitiser(**policy).sanitise(record_batch(texts, reasons=reasons)))
            assert len(slices) == -(-7 // max(1, tokens // policy["n_max"]))
            assert pa.Table.from_batches(slices).combine_chunks().equals(whole)
        monkeypatch.undo()


def damaged(values):
    """A string array that holds whatever bytes it is given."""
    binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(binary), binary.buffers())


@pytest.mark.parametrize("policy", [{}, COPYING, EMPTY], ids=["hiding", "copying", "empty"])
def test_invalid_utf8_in_refused_rows_is_not_decoded(sanitiser, policy):
    ids, days = damaged([b"\xff\xfe", b"fine", b"late"]), damaged([b"\xc3\x28", b"day", b"\xfe"])
    out = run(sanitiser(kept=["ds"], **policy), [None, "the", "漢字"], ids, ["invalid_id", None, None], ds=days)
    late = None if policy == EMPTY else "script_without_word_spaces"
    assert out["reason"].to_pylist() == ["invalid_id", None, late]
    assert out["id"].cast(pa.binary()).to_pylist() == [b"\xff\xfe", b"fine", b"late"]
    assert out["ds"].cast(pa.binary()).to_pylist() == [b"\xc3\x28", b"day", b"\xfe"]


def test_statistics_count_words_before_the_policy(sanitiser):
    out = run(sanitiser(unknown="drop", digits="drop"), ["the zebra 42 x9", ""])
    assert out["__words"].to_pylist() == [4, 0]
    assert out["__unknown"].to_pylist() == [2, 0]
    assert [row["tokens"] for row in out["privacy"].to_pylist()] == [1, 0]
