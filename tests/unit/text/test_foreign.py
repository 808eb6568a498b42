"""Records of another language, or with too many unknown words, are masked or refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from support import toys
from support.ngram_models import make_model
from support.repository import needs
from support.toys import unravel
from wordveil.artifacts.bundle import Bundle
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.records.schema import LANGUAGE_MARK, REASON_COLUMN, TEXT_REASONS
from wordveil.text.codec import Codec, Encoded
from wordveil.text.policy import TextPolicy
from wordveil.text.slots import NgramSettings

WORDS = ["the", "train", "was", "late", "again", "last", "night", "my", "parcel", "in", "an", "ok", "thanks"]
VOCABULARY = Vocabulary(pa.array(WORDS))
UNKNOWN = VOCABULARY.unknown
ROWS = [
    ("The train was late again last night.", False),
    ("부산으로 가는 기차가 어제 저녁에 또 늦었습니다.", True),
    ("ok thanks", False),
    ("Поезд в Москву вчера вечером опять опоздал.", True),
    ("", False),
    ("تأخر القطار إلى القاهرة مساء أمس نصف ساعة.", True),
    ("Zorblax", False),
    ("Der Zug in die Stadt war gestern an der Grenze wieder spät.", True),
    ("my parcel was 12 days late", False),
]
TEXTS = pa.array([text for text, _ in ROWS])
IS_OTHER = np.array([other for _, other in ROWS])
STOPS = {"stop_word_list": ("an", "in", "the", "was")}
NEEDS_IDENTIFIER = needs("py3langid")
POLICIES = {
    "plain": {},
    "pad": {"length": "pad", "n_max": 6},
    "exact": {"case": "exact"},
    "drop": {"stop_words": "drop", "digits": "drop", **STOPS},
    "keep": {"stop_words": "keep", "digits": "keep", **STOPS},
    "readable": {"case": "restore", "punctuation": "keep", "stop_words": "keep", **STOPS},
    "same": {"repeat": "same"},
}


def encode(texts: pa.StringArray = TEXTS, **policy: object) -> Encoded:
    return Codec(TextPolicy(**policy), VOCABULARY).encode(texts)


def ids_of(encoded: Encoded) -> list[list[int]]:
    return unravel(encoded.ids, encoded.offsets)


@NEEDS_IDENTIFIER
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_records_of_another_language_are_refused_or_masked(policy):
    plain, refused, masked = (encode(other_language=rule, **policy) for rule in ("release", "quarantine", "mask"))
    assert refused.refused.tolist() == ["other_language" if other else None for other in IS_OTHER]
    assert masked.refused.tolist() == [None] * len(ROWS)
    assert refused.words.tolist() == np.where(IS_OTHER, 0, plain.words).tolist()
    assert masked.words.tolist() == plain.words.tolist()
    assert masked.unknown[IS_OTHER].tolist() == plain.words[IS_OTHER].tolist()

    def fit(count: int) -> list[int]:
        return ([UNKNOWN] * count + [VOCABULARY.pad] * 6)[:6] if "n_max" in policy else [UNKNOWN] * count

    for treated, counts in ((refused, refused.words), (masked, plain.words)):
        rows = zip(ids_of(plain), counts, IS_OTHER, strict=True)
        assert ids_of(treated) == [fit(count) if other else ids for ids, count, other in rows]


@NEEDS_IDENTIFIER
def test_masked_record_copies_only_text_between_words():
    encoded = encode(other_language="mask", **POLICIES["readable"])
    codec = Codec(TextPolicy(other_language="mask", **POLICIES["readable"]), VOCABULARY)
    out = codec.decode(np.full(len(encoded.ids), WORDS.index("ok"), np.int32), encoded.offsets, encoded.skeleton)
    assert out[7].as_py() == "Ok Ok ok ok Ok ok ok ok ok Ok ok ok."
    assert out[0].as_py() == "The ok was ok ok ok ok."


@NEEDS_IDENTIFIER
def test_carrier_phrases_of_a_masked_record_are_hidden(tmp_path):
    model = make_model(tmp_path, ["in an in an in an"] * 50, NgramSettings(max_n=2, min_count=1))
    settings = {"slots": "carrier_phrases", "ngrams": model.digest, "slot_threshold": 0.1, "slot_start_threshold": 0.1}
    texts = pa.array(["in an", "Wir fahren in die Stadt an der Grenze"])
    for rule, counts in (("release", [0, 6]), ("mask", [0, 8])):
        encoded = Codec(TextPolicy(other_language=rule, **settings), VOCABULARY, model).encode(texts)
        assert np.diff(encoded.offsets).tolist() == counts


@pytest.mark.parametrize(
    ("share", "text", "refused"),
    [
        (0.5, "the train zorblax qwint", False), (0.5, "the zorblax qwint", True), (0.5, "zorblax", True),
        (0.5, "", False), (0.5, "...", False), (0.0, "the train", False), (0.0, "the train zorblax", True),
        (0.99, "zorblax qwint", True), (None, "zorblax qwint", False),
    ],
)  # fmt: skip
def test_a_record_with_too_many_unknown_words_is_refused(share, text, refused):
    encoded = encode(pa.array([text, "the train"]), max_unknown_share=share)
    assert encoded.refused.tolist() == ["too_many_unknown_words" if refused else None, None]
    assert len(ids_of(encoded)[0]) == (0 if refused else encoded.words[0])
    assert ids_of(encoded)[1] == [0, 1]


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_share_counts_all_words_of_the_text(policy):
    """Those that the policy copies or drops too: the vocabulary decides, and no other setting."""
    texts = pa.array(["zorblax 12 qwint in an", "the in an zorblax was"])
    assert encode(texts, max_unknown_share=0.5, **policy).refused.tolist() == ["too_many_unknown_words", None]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    embedding = toys.toy_embedding(WORDS, np.random.default_rng(5).standard_normal((len(WORDS), 4)))
    settings = {"epsilon": 2.0, "gamma": 2.0}
    return toys.make_bundle(
        tmp_path_factory.mktemp("foreign"), embedding, settings, padding=True, mechanism="exponential"
    )


STRICT = {"length": "pad", "n_max": 6}


@NEEDS_IDENTIFIER
@pytest.mark.parametrize("rule", ["quarantine", "mask"])
def test_foreign_record_under_strict_looks_like_all_others(bundle, rule):
    """Under ``refused: empty`` they are released, priced and tagged like any other record."""
    assert {"other_language", "too_many_unknown_words"} < {*TEXT_REASONS}
    policy = TextPolicy(other_language=rule, max_unknown_share=0.5, refused="empty", **STRICT)
    assert policy.exposes == ()
    out = toys.sanitise(toys.record_sanitiser(bundle, policy), toys.record_batch(TEXTS.to_pylist()))
    assert set(out["status"].to_pylist()) == {"released"}
    assert out["reason"].null_count == len(ROWS)
    assert len({str(row) for row in out["privacy"].to_pylist()}) == 1
    assert out["content_tag"].null_count == 0


@NEEDS_IDENTIFIER
def test_the_column_of_languages_decides_where_it_says_something(bundle):
    texts = [ROWS[7][0], ROWS[7][0], ROWS[0][0], ROWS[0][0], None]
    reasons = [f"{LANGUAGE_MARK}en-GB", LANGUAGE_MARK, f"{LANGUAGE_MARK}de", None, "null_text"]
    batch = toys.record_batch(texts, reasons=reasons)
    refusing, masking = (
        toys.record_sanitiser(bundle, TextPolicy(other_language=rule, **STRICT)) for rule in ("quarantine", "mask")
    )
    out = toys.sanitise(refusing, batch)
    assert out["reason"].to_pylist() == [None, "other_language", "other_language", None, "null_text"]
    inspected = pa.Table.from_batches(list(refusing.inspect(batch)))
    assert inspected[REASON_COLUMN].to_pylist() == out["reason"].to_pylist()
    masked = toys.sanitise(masking, batch)
    assert masked["reason"].to_pylist() == [None, None, None, None, "null_text"]
    assert masked["__unknown"].to_pylist()[2:4] == [7, 0]
