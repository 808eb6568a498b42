"""Tokens that are not words pass through the codec as one token each: masked, or shown by class and shape alone."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from support.reference_words import PLACEHOLDER, cut_pieces
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.text.codec import UNKNOWN_WORD, WORD, Codec
from wordveil.text.policy import TextPolicy, with_profile
from wordveil.text.types.classes import CHARACTER_TYPES, CLASSES, NAME_TYPES, TYPES, TypeAction, newest_version
from wordveil.text.types.lists import PublicLists
from wordveil.text.types.typed import Recogniser

WORDS = ["the", "cat", "sat", "mail", "to", "will", "go", "smith", "3", "500", "john", "corp", "com"]
VOCABULARY = Vocabulary(pa.array(WORDS))
LISTS = PublicLists.load("en")
READABLE = with_profile("readable", stop_words="hide")
MAIL = "Mail john.smith@corp.com, or 3,500 to the cat."


def encode(text, policy):
    codec = Codec(policy, VOCABULARY, None, LISTS)
    return codec, codec.encode(pa.array([text] if isinstance(text, str) else text, pa.string()))


def names(ids):
    return [[*WORDS, "PAD", "?"][number] for number in ids]


def written(text, policy, values):
    """The output where each word is drawn as itself, and unknown ones as the first word."""
    codec, encoded = encode(text, policy)
    ids = np.where(encoded.ids < len(WORDS), encoded.ids, 0).astype(np.int32)
    return codec.decode(ids, encoded.offsets, encoded.skeleton, pa.array(values, pa.string()))[0].as_py()


def test_a_masked_token_is_one_unknown_word():
    _, encoded = encode(MAIL, TextPolicy(types={"email": "mask", "number": "mask"}))
    assert names(encoded.ids) == ["mail", "?", "?", "?", "to", "the", "cat"]  # "or" is unknown too
    assert (encoded.words.tolist(), encoded.unknown.tolist(), encoded.skeleton) == ([7], [1], None)
    _, encoded = encode(MAIL, TextPolicy())
    assert names(encoded.ids) == ["mail", "john", "smith", "corp", "com", "?", "3", "500", "to", "the", "cat"]


def test_a_token_that_shows_keeps_its_place_and_costs_no_word():
    codec, encoded = encode(MAIL, READABLE)
    assert names(encoded.ids) == ["mail", "?", "to", "the", "cat"]
    shown = encoded.shown
    assert shown.offsets.tolist() == [0, 2]
    assert shown.shapes.to_pylist() == ["", "0,000"]
    ids = np.array([WORDS.index(word) for word in ("mail", "will", "to", "the", "cat")], np.int32)
    text = codec.decode(ids, encoded.offsets, encoded.skeleton, pa.array(["a@example.com", "9,123"]))
    assert text[0].as_py() == "Mail a@example.com, will 9,123 to the cat."


def test_punctuation_that_is_dropped_leaves_the_order():
    policy = TextPolicy(types={"email": "tag", "number": "resample"})
    assert written("the mail x.y@z.com sat 42.", policy, ["<email>", "17"]) == "the mail <email> sat 17"


def test_dropped_words_leave_no_trace_beside_shown_tokens():
    for punctuation in ("keep", "drop"):
        policy = TextPolicy(punctuation=punctuation, unknown="drop", types={"number": "resample"})
        assert written("zebra 42 cat 7 zebra", policy, ["17", "3"]).split() == ["17", "cat", "3"]


def test_what_is_copied_holds_class_and_shape_and_not_the_token():
    def copied(text):
        return bytes(encode(text, READABLE)[1].skeleton.serialise()[0])

    for first, second in (("4,711 a@b.com", "9,999 john.smith@corp.com"), ("on 2001-02-03", "on 1999-12-31")):
        assert copied(first) == copied(second)
    assert copied("4,711") != copied("47,11")
    for text in ("a@b.com", "Alice", "555-123-4567"):
        assert text.encode() not in copied(text)
    assert copied("the \x02 <email> \x01 cat") != copied("the a@b.com cat")
    assert encode("the \x02 <email> \x01 cat", READABLE)[1].shown.offsets[-1] <= 1  # the mark-up, if it is one


def test_a_placeholder_of_the_text_is_no_token():
    for policy in (READABLE, TextPolicy(types={"email": "mask"})):
        _, encoded = encode("the\x02cat \x02 a@b.com", policy)
        assert encoded.words.tolist() == [3]


def test_names_of_lists_follow_the_case_of_the_text():
    _, encoded = encode("the cat sat to Alice and ALICE, and Will Smith sat.", READABLE)
    kinds = [TYPES[kind] for kind in encoded.shown.kinds]
    assert kinds[:2] == ["first_name"] * 2
    assert set(kinds[2:]) <= set(NAME_TYPES)
    assert encoded.shown.shapes.to_pylist()[:2] == ["Aa", "AA"]
    _, encoded = encode("Alice and Bob's", TextPolicy(names="gazetteer"))
    assert encoded.shown.shapes.to_pylist() == ["a", "a's"], "the case shows only where the policy copies it"
    _, encoded = encode("the AUSTRIAN's cat sat to Austrians", TextPolicy(names="gazetteer"))
    assert [TYPES[kind] for kind in encoded.shown.kinds] == ["nationality"] * 2


def test_repeated_tokens_are_the_same_where_words_are_drawn_once():
    policy = with_profile("readable", stop_words="hide", repeat="same")
    text = "Alice 42 alice 42 Bob 43 a@b.com A@B.com 3:05 PM 3:05 pm ALICE’s"
    assert encode(text, policy)[1].shown.pattern.firsts.tolist() == [0, 1, 0, 1, 4, 5, 6, 6, 8, 8, 0]
    assert encode(text, READABLE)[1].shown.pattern is None
    masked = TextPolicy(repeat="same", types={"number": "mask"})
    assert encode("42 43 42 zebra", masked)[1].pattern.firsts.tolist() == [0, 1, 0, 3]


def test_name_in_carrier_phrases_decides_no_neighbour():
    """A typed token is unknown to the n-gram model: see :mod:`wordveil.text.slots`."""
    seen = []

    class Model:
        digest = "0" * 64

        def mark_kept(self, words, offsets, threshold, start):
            seen.append(words.to_pylist())
            return np.zeros(len(words), np.bool_)

    policy = TextPolicy(
        slots="carrier_phrases", ngrams="0" * 64, slot_threshold=0.1, slot_start_threshold=0.1,
        types={"number": "resample"}, names="gazetteer",
    )  # fmt: skip
    codec = Codec(policy, VOCABULARY, Model(), LISTS)
    for text in ("the Alice sat 42", "the Emily sat 99"):
        codec.encode(pa.array([text]))
    assert seen[0] == seen[1] == ["the", "\x02", "sat", "\x02"]


def test_unknown_words_without_typed_tokens_are_refused():
    policy = TextPolicy(unknown="quarantine", types={"number": "mask", "email": "mask"})
    assert encode(["the cat 42 a@b.com", "zebra"], policy)[1].refused.tolist() == [None, "unknown_words"]
    dropped = encode("zebra 42 cat", TextPolicy(unknown="drop", types={"number": "mask"}))[1]
    assert names(dropped.ids) == ["?", "cat"]
    policy = TextPolicy(unknown="quarantine", types={"number": "resample"}, punctuation="keep")
    encoded = encode(["zebra 42", "cat 7"], policy)[1]
    assert encoded.refused.tolist() == ["unknown_words", None]
    assert encoded.shown.offsets.tolist() == [0, 0, 1], "a refused record shows no token"


def test_shown_tokens_need_lists_and_values():
    Codec(TextPolicy(types={"email": "mask"}), VOCABULARY)
    with pytest.raises(ValueError, match="public lists"):
        Codec(TextPolicy(types={"email": "surrogate"}), VOCABULARY)
    codec, encoded = encode("Alice sat to the cat", READABLE)
    with pytest.raises(ValueError, match="values"):
        codec.decode(encoded.ids * 0, encoded.offsets, encoded.skeleton)


def test_profiles_say_what_happens_to_each_class():
    strict = with_profile("strict", n_max=3)
    readable = with_profile("readable", stop_words="hide", types_version=newest_version())
    hidden = TextPolicy(names="gazetteer", length="pad", n_max=3)
    assert {*strict.type_actions.values(), *hidden.type_actions.values()} == {TypeAction.MASK}
    assert set(readable.type_actions) == set(TYPES)
    assert all(action in CLASSES[kind].allowed for kind, action in readable.type_actions.items())
    assert TextPolicy(types={}).fingerprint == TextPolicy().fingerprint
    assert TextPolicy(types={"email": "words"}).fingerprint == TextPolicy().fingerprint


@pytest.mark.parametrize(
    "text",
    [
        "mail http://a.b/\u6771\u4eac now",  # a script that the tokeniser does not cut, inside an address alone
        "mail #\u6771\u4eac \u6771\u4eac",
        "mail http://a.b/c=\u0338d now",  # another character in normalisation form C, where the address ends
        "the <b\u0301> cat",
        "the <b\x01> cat",  # the tokeniser's own mark
        "the <a href=x\x01y> cat",
        "the 1\ufe0f\u20e3 cat",
    ],
)
def test_an_odd_token_is_a_placeholder_to_the_patterns_of_words(text):
    policy = TextPolicy(types=dict.fromkeys(CHARACTER_TYPES, "mask"), types_version=newest_version())
    normal = unicodedata.normalize("NFC", text).replace("\x01", " ").replace("\x02", " ")
    spans = Recogniser(CHARACTER_TYPES).find(pa.array([normal]))
    marked = normal.encode()
    for start, end in zip(spans.starts[::-1], spans.ends[::-1], strict=True):
        marked = marked[:start] + PLACEHOLDER.encode() + marked[end:]
    codec, encoded = encode(["the cat", text, "42"], policy)
    assert encoded.refused.tolist() == [None] * 3
    expected = cut_pieces([marked.decode()], "words", "split")[0][1::2]
    read = codec.explain(text)
    assert [token.token if token.taken_for in (WORD, UNKNOWN_WORD) else PLACEHOLDER for token in read] == expected


def test_a_script_inside_a_typed_token_refuses_no_record():
    texts = ["mail http://a.b/\u6771\u4eac", "the #\u6771\u4eac", "the \u6771\u4eac\u6771\u4eac"]
    for action in ("mask", "tag"):
        _, encoded = encode(texts, TextPolicy(types={"url": action, "hashtag": action}))
        assert encoded.refused.tolist() == [None, None, "script_without_word_spaces"]
        assert encoded.words.tolist() == [2, 2, 0]


def test_a_class_of_names_can_be_words_beside_the_others():
    policy = TextPolicy(names="gazetteer", types={"first_name": "words"})
    assert policy.type_actions == dict.fromkeys(("surname", "place", "nationality"), TypeAction.RESAMPLE)
    _, encoded = encode("Alice sat to Sydney", policy)
    assert [TYPES[kind] for kind in encoded.shown.kinds] == ["place"]
    assert replace(policy, repeat="same").type_actions == policy.type_actions
    assert policy.fingerprint != TextPolicy(names="gazetteer").fingerprint


def test_later_class_with_its_default_action_is_not_stated():
    """So policies of versions before it keep their fingerprints."""
    usual = TextPolicy(names="gazetteer")
    assert usual.type_actions["nationality"] == TypeAction.RESAMPLE
    assert "nationality" not in dict(usual.types)
    assert TextPolicy(names="gazetteer", types={"nationality": "resample"}) == usual
    padded = TextPolicy(names="gazetteer", length="pad", n_max=4, types={"nationality": "mask"})
    assert dict(padded.types) == dict.fromkeys({*NAME_TYPES} - {"nationality"}, TypeAction.MASK)
    for action in (TypeAction.WORDS, TypeAction.TAG, TypeAction.SURROGATE, TypeAction.MASK):
        other = TextPolicy(names="gazetteer", types={"nationality": action})
        assert dict(other.types)["nationality"] == action
        assert replace(other, repeat="same").types == other.types
        assert other.type_actions.get("nationality", TypeAction.WORDS) == action
        assert other.fingerprint != usual.fingerprint
