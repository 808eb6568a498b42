"""Chinese and Japanese are cut into words by dictionaries; joined, the words are the text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.repository import needs
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.text.choices import TokeniserKind
from wordveil.text.codec import Codec
from wordveil.text.language import SEGMENTERS
from wordveil.text.policy import TextPolicy
from wordveil.text.tokeniser import Tokeniser, cut_run

KINDS = [pytest.param(kind, marks=needs(*packages.names)) for kind, packages in SEGMENTERS.items()]
RUNS = st.text(st.sampled_from("我们在北京大学学习東京都に住んでいるコーヒー々〇ｱｰㄅ\u3099"), min_size=1, max_size=30)


def words(kind: str, text: str) -> list[str]:
    tokeniser = Tokeniser(kind)
    return tokeniser.cut_words(tokeniser.normalise(pa.array([text]))).words.to_pylist()


CUT = {
    "chinese": {
        "我们在北京大学学习。": "我们 在 北京大学 学习",
        "2024年iPhone很好，don't！": "2024 年 iPhone 很 好 don't",
        "我们 在 北京": "我们 在 北京",
    },
    "japanese": {
        "友達とコーヒーを飲んだ。": "友達 と コーヒー を 飲ん だ",
        "Tシャツを2枚「時々」": "T シャツ を 2 枚 時々",
        "plain words": "plain words",
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_words(kind):
    assert {text: " ".join(words(kind, text)) for text in CUT[kind]} == CUT[kind]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50, deadline=None)
@given(run=RUNS)
def test_the_words_of_a_run_are_the_run(kind, run):
    words = cut_run(run, kind)
    assert "".join(words) == run
    assert "" not in words
    assert cut_run(run, kind) == words


@pytest.mark.parametrize("kind", KINDS)
def test_long_runs_are_cut_in_blocks(kind):
    run = "東京都に住んでいる" * 5000  # 135,000 bytes: Sudachi takes 49,149 at once
    assert "".join(cut_run(run, kind)) == run


def test_run_changed_by_a_dictionary_is_cut_into_characters(monkeypatch):
    monkeypatch.setattr("wordveil.text.tokeniser._load", lambda _: lambda run: [run[:-1]])
    assert cut_run("我们在", TokeniserKind.CHINESE) == ["我", "们", "在"]


@needs("rjieba")
def test_words_go_into_the_places_of_the_text():
    vocabulary = Vocabulary(pa.array(["北京大学", "学习", "在"]))
    codec = Codec(TextPolicy(tokeniser="chinese", language="zh", punctuation="keep"), vocabulary)
    encoded = codec.encode(pa.array(["我们在北京大学，学习！"]))
    assert encoded.ids.tolist() == [vocabulary.unknown, 2, 0, 1]
    out = codec.decode(np.array([0, 1, 2, 2], np.int32), encoded.offsets, encoded.skeleton)
    assert out.to_pylist() == ["北京大学学习在，在！"]
