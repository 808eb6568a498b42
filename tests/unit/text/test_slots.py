"""Slots are selected as defined, and a model is found, verified and refused by name."""

from __future__ import annotations

import json
import re
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import yaml

from support import ngram_models, toys
from support.repository import ROOT
from wordveil.artifacts.ngram_model import find_model, open_model
from wordveil.config.arguments import parse_arguments
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import ConfigError, NgramError
from wordveil.text.codec import Codec
from wordveil.text.policy import TextPolicy, with_profile
from wordveil.text.slots import Grams, NgramSettings, assemble_trie
from wordveil.text.tokeniser import Tokeniser, fold_words

PUBLIC = [
    *(
        f"play the next song by {name}, please!"
        for name in ["anna", "berta", "carl", "dora", "emil", "frida", "gerd", "hanna", "ida", "jan", "karin", "lena"]
    ),
    *["please turn off the light in the kitchen"] * 10,
    *["turn off the light at 7 in the bedroom"] * 5,
    *["what is the weather in oslo 24 today"] * 4,
    "the cat sat on the mat",
    "",
]
SMALL = NgramSettings(max_n=3, min_count=2)
THRESHOLD, START = 0.2, 0.1


def kept(model, texts, threshold=THRESHOLD, start=START):
    pieces = Tokeniser().cut_words(pa.array(texts, pa.string()))
    mask = model.mark_kept(fold_words(pieces.words), pieces.offsets, threshold, start)
    return [part.tolist() for part in np.split(mask, pieces.offsets[1:-1])]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return ngram_models.make_model(tmp_path_factory.mktemp("models"), PUBLIC, SMALL)


def test_carrier_phrases_stay_and_slots_are_hidden(model):
    def masked(text):
        return " ".join(
            word if keep else "_"
            for word, keep in zip(ngram_models.cut_words(text), kept(model, [text])[0], strict=True)
        )

    assert masked("play the next song by Zorblax, please") == "play the next song by _ _"
    assert masked("Turn off the light in the cellar") == "_ _ the light in the _"
    assert masked("zorblax quux") == "_ _"
    assert masked("please turn off the light at 7 in the kitchen") == "please turn off the light at _ _ the kitchen"


@pytest.fixture(scope="module")
def model_of_letters(tmp_path_factory):
    rng = np.random.default_rng(3)
    public = ["".join(rng.choice(list("aab cé  "), size=60)) for _ in range(60)]
    return ngram_models.make_model(tmp_path_factory.mktemp("letters"), public, NgramSettings(3, 2))


def test_a_hidden_word_decides_nothing_but_itself(model_of_letters):
    """Any other word that is hidden in its place leaves the whole mask as it was, whatever the other slots hold."""
    model = model_of_letters
    rng = np.random.default_rng(8)
    alphabet = ["a", "aa", "b", "c", "ab", "ba", "é", "aab", "7", "quux"]
    changed = 0
    for _ in range(100):
        words = rng.choice(alphabet, size=12)
        mask = kept(model, [" ".join(words)])[0]
        places = np.flatnonzero(~np.array(mask))
        other = words.copy()
        other[places] = rng.choice(alphabet, size=len(places))
        again = kept(model, [" ".join(other)])[0]
        first = next((index for index in range(12) if mask[index] != again[index]), None)
        assert first is None or first in places, "a mask changes first where a slot's word is not hidden"
        if not any(again[index] for index in places):
            assert again == mask
            changed += (words != other).any()
    assert changed > 5


@pytest.mark.parametrize("max_n", [2, 3, 8])
def test_decisions_are_those_of_the_definition(tmp_path, max_n):
    """The definition counts everything; the model has pruned, and decides alike."""
    rng = np.random.default_rng(max_n)
    letters = [*list("abcdefgh"), "x1", "don't"]
    weights = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.04, 0.02, 0.02, 0.02])

    def text():
        return rng.choice([" ", ". ", "'"]).join(rng.choice(letters, size=rng.integers(0, 30), p=weights))

    public, private = [text() for _ in range(200)], [text() + " unseen a b" for _ in range(60)]
    counts = ngram_models.count_ngrams(public, max_n)
    for min_count in (1, 3, 40):
        chosen = NgramSettings(max_n, min_count)
        model = ngram_models.make_model(tmp_path / str(min_count), public, chosen)
        for threshold, start in product((0.05, 0.3, 1.0), (0.08, 1.0)):
            wanted = [ngram_models.select_slots(item, counts, chosen, threshold, start) for item in private]
            assert kept(model, private, threshold, start) == wanted
            if threshold < 0.5 and start < 0.5:
                assert 0 < sum(map(sum, wanted)) < sum(map(len, wanted))


def test_grams_are_those_of_their_texts():
    """Against windows in plain Python; the bytes are ordered as the n-grams are."""
    rng = np.random.default_rng(1)
    parts = [rng.integers(-1, 300, rng.integers(0, 9)).astype(np.int32) for _ in range(50)]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    code = Grams(4)
    grams = code.encode(np.concatenate(parts), offsets).to_pylist()
    wanted = []
    for part in parts:
        words = [0, *part.tolist()]
        for n in (2, 3, 4):
            windows = [words[start : start + n] for start in range(len(words) - n + 1)]
            wanted += [[*window, *[-1] * (4 - n)] for window in windows if min(window) >= 0]
    assert sorted(code.decode(b"".join(grams)).tolist()) == sorted(wanted)
    ordered = code.decode(b"".join(sorted(grams))).tolist()
    assert ordered == sorted(wanted, key=lambda row: (sum(word >= 0 for word in row), row))


def test_an_n_gram_without_its_beginning_is_refused():
    with pytest.raises(ValueError, match="without its beginning"):
        assemble_trie(np.array([1, 5, 5]), np.array([[1, 2, -1], [2, 1, 1]], np.int32), np.array([2, 2]))


def test_the_same_counts_give_the_same_digest_and_others_another(tmp_path, model):
    again = ngram_models.make_model(tmp_path / "again", list(reversed(PUBLIC)), SMALL)
    other = ngram_models.make_model(tmp_path / "other", PUBLIC[1:], SMALL)
    assert again.digest == model.digest != other.digest
    assert find_model(tmp_path / "again") == again.path
    assert ngram_models.make_model(tmp_path / "again", PUBLIC, SMALL).path == again.path, "left as it is"
    for array in (again.words, again.counts, again.first, again.index.data, again.index.offsets, again.index.slots):
        assert isinstance(array.base, np.memmap)


def test_a_model_is_found_or_refused_by_name(tmp_path):
    ngram_models.make_model(tmp_path, PUBLIC, SMALL)
    ngram_models.make_model(tmp_path, PUBLIC[1:], SMALL)
    with pytest.raises(NgramError, match=r"holds 2 n-gram models: .*Set text.ngrams to the directory of one of them"):
        find_model(tmp_path)


def test_an_altered_model_is_refused(tmp_path):
    model = ngram_models.make_model(tmp_path, PUBLIC, SMALL)
    counts, manifest = model.path / "counts.bin", model.path / "manifest.json"
    with pytest.raises(NgramError, match="not the n-gram model that the run started with"):
        open_model(model.path, "0" * 64)
    data = bytearray(counts.read_bytes())
    data[8] ^= 1
    counts.write_bytes(data)
    mend = r"counts\.bin: its checksum differs from the manifest's.*build the n-gram model again"
    with pytest.raises(NgramError, match=mend):
        open_model(model.path)
    altered = json.loads(manifest.read_text())
    altered["content"]["settings"]["min_count"] = 1
    for content, message in ((json.dumps(altered), "altered since it was written"), ("{}", "is damaged")):
        manifest.write_text(content)
        with pytest.raises(NgramError, match=message):
            open_model(model.path)


def policy_of(model, **settings):
    chosen = {"slot_threshold": THRESHOLD, "slot_start_threshold": START, "ngrams": model.digest, **settings}
    chosen = {"types": {}, "names": "words", **chosen}  # typed tokens have tests of their own
    return with_profile("carrier_phrases", **chosen)


VOCABULARY = Vocabulary(pa.array(["anna", "play", "song", "the", "light"]))


def test_the_codec_copies_carrier_phrases_and_draws_the_rest(model):
    codec = Codec(policy_of(model), VOCABULARY, model)
    encoded = codec.encode(pa.array(["Please turn off the LIGHT, play the next Song by ANNA; Quux 7th!"]))
    assert encoded.ids.tolist() == [1, 0, VOCABULARY.unknown, VOCABULARY.unknown]
    words = codec.decode(np.array([4, 2, 3, 4], np.int32), encoded.offsets, encoded.skeleton)
    assert words.to_pylist() == ["Please turn off the LIGHT, light the next Song by SONG; The light!"]


def test_words_that_are_not_carriers_go_by_the_other_rules(model):
    text = "please turn off the light at 7 by anna quux"
    policy = policy_of(model, digits="drop", unknown="drop", case="lower", punctuation="drop")
    codec = Codec(policy, VOCABULARY, model)
    encoded = codec.encode(pa.array([text]))
    assert encoded.ids.tolist() == [0]
    decoded = codec.decode(encoded.ids, encoded.offsets, encoded.skeleton).to_pylist()
    assert decoded == ["please turn off the light at anna"]
    refused = Codec(policy_of(model, unknown="quarantine"), VOCABULARY, model).encode(pa.array([text, "the light"]))
    assert refused.refused.tolist() == ["unknown_words", None]


def test_a_record_keeps_its_words_outside_slots(model, tmp_path):
    bundle = toys.laplace_bundle(tmp_path, toys.random_embedding(40, 4), 1.0, padding=False)
    texts = [f"{text} quux" for text in PUBLIC]
    settings = toys.RecordSettings(toys.RELEASE, "run", policy_of(model), ())
    whole = toys.sanitise(toys.RecordSanitiser(settings, bundle, toys.KEYS, model), toys.record_batch(texts))
    for text, result, privacy in zip(texts, whole["text"].to_pylist(), whole["privacy"].to_pylist(), strict=True):
        mask = kept(model, [text])[0]
        pairs = zip(ngram_models.cut_words(text), ngram_models.cut_words(result), mask, strict=True)
        assert all((first == second) == keep for first, second, keep in pairs)
        assert privacy["tokens"] == len(mask) - sum(mask)
        assert (privacy["relation"], privacy["epsilon_pure"]) == ("same_skeleton", None)
        assert privacy["exposes"] == ["carrier_phrases", "case", "length", "presence", "punctuation"]


def test_a_codec_refuses_another_model(model, tmp_path):
    other = ngram_models.make_model(tmp_path, PUBLIC[1:], SMALL)
    for policy, wrong in ((policy_of(model), other), (policy_of(model), None), (TextPolicy(), model)):
        with pytest.raises(ValueError, match="not the one that the policy names"):
            Codec(policy, VOCABULARY, wrong)


def parse(**text):
    return parse_arguments({"id": "id", "text": "body"}, text)[1]


def test_a_configuration_names_the_model_by_its_path(model):
    policy = parse(profile="carrier_phrases", ngrams=str(model.path.parent), slot_threshold=0.25)
    assert (policy.ngrams, policy.slot_threshold, policy.slot_start_threshold) == (model.digest, 0.25, 0.002)
    text = yaml.safe_load((ROOT / "conf" / "text" / "carrier_phrases.yaml").read_text())["text"]
    shipped = parse(**{**text, "ngrams": str(model.path)})
    assert shipped == parse(profile="carrier_phrases", ngrams=str(model.path)), "it shows the defaults"


FAULTS = [
    ({}, "ngrams", "needs an n-gram model of public text. `wordveil ngrams`"),
    ({"ngrams": "nowhere"}, "ngrams", "nowhere: holds no n-gram model"),
    ({"ngrams": "MODEL", "length": "pad", "n_max": 8}, "length", "copies .*carrier_phrases, which shows it"),
    ({"ngrams": "MODEL", "stop_words": "keep"}, "stop_words", "decides about stop-words too"),
    ({"ngrams": "MODEL", "tokeniser": "whitespace"}, "tokeniser", "with tokeniser: words.*--tokeniser whitespace"),
    ({"ngrams": "MODEL", "hyphens": "inner"}, "hyphens", "counted with hyphens: split"),
    ({"ngrams": "MODEL", "slot_threshold": 0.0}, "slot_threshold", "greater than 0"),
    ({"profile": "readable", "ngrams": "MODEL"}, "ngrams", "no meaning with slots: all"),
    ({"profile": "readable", "slot_threshold": 0.1}, "slot_threshold", "no meaning with slots: all"),
]


@pytest.mark.parametrize(("text", "name", "problem"), FAULTS)
def test_faults_are_named_with_their_fix(model, text, name, problem):
    text = {key: str(model.path) if value == "MODEL" else value for key, value in text.items()}
    with pytest.raises(ConfigError) as caught:
        parse(**{"profile": "carrier_phrases", **text})
    (fault,) = caught.value.faults
    assert fault.where == f"text.{name}"
    assert re.search(problem, fault.problem)
