"""How the embedding `glove` is made: which words, whose vectors, and what is taken out of them."""

from __future__ import annotations

import numpy as np
import pytest

from support.repository import load_script
from wordveil.embeddings.embedding import DEMO, Embedding, check_embedding, load

script = load_script("scripts/glove.py")
WORDS = ("the", "you", "Dr", "42", "well-known", "q", "<unk>", "know", "say", "x.y")


@pytest.fixture(scope="module")
def source() -> Embedding:
    """The demo embedding, turned, in place of GloVe: 40 further words that both have, then :data:`WORDS`."""
    demo = load(DEMO)
    shared = [word for word in demo.words.to_pylist() if word.isalpha() and len(word) > 1 and word not in WORDS][:400]
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.standard_normal((100, 100)))
    rows = {word: row for row, word in enumerate(demo.words.to_pylist())}
    words = [*WORDS, *shared]
    vectors = [demo.vectors[rows[word]] @ turn if word in rows else rng.standard_normal(100) for word in words]
    return check_embedding(words, np.array(vectors), "turned")


def test_it_has_words_as_the_tokeniser_cuts_them(source, tmp_path, monkeypatch):
    source.save(tmp_path / "source")
    monkeypatch.setattr(script, "TARGET", tmp_path / "made")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "SIZE", 300)
    monkeypatch.setattr("sys.argv", ["glove.py", str(tmp_path / "source")])
    script.main()
    made = load(str(tmp_path / "made"))
    words = made.words.to_pylist()
    assert made.size == 300
    assert {"the", "you", "well-known", "q", "a", "i", "don't", "it's"} <= {*words}
    assert not {"Dr", "42", "<unk>", "x.y"} & {*words}
    # Each stands before the word of its rank.
    theirs = load(DEMO).words.to_pylist()
    for word in ("a", "i", "don't"):
        before = [other for other in words[: words.index(word)] if other in source.words.to_pylist()]
        assert len(before) == theirs.index(word), word
    monkeypatch.setattr("sys.argv", ["glove.py", str(tmp_path / "nowhere")])
    with pytest.raises(SystemExit, match=r"usage: python scripts/glove\.py GLOVE"):
        script.main()
