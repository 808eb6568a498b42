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


def test_a_linear_map_brings_vectors_over(source):
    demo = load(DEMO)
    words, vectors = script.add_words(source.words.to_pylist(), source.vectors.astype(np.float64), demo)
    rows = {word: row for row, word in enumerate(demo.words.to_pylist())}
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    theirs = demo.vectors / np.linalg.norm(demo.vectors, axis=1, keepdims=True)
    chosen = ["don't", "can't", "a", "i", "the", "say"]
    found = units[[words.index(word) for word in chosen]]
    expected = theirs[[rows[word] for word in chosen]]
    assert found @ found.T == pytest.approx(expected @ expected.T, abs=1e-4), "a turn keeps all cosines"


def test_what_all_vectors_share_is_taken_out():
    rng = np.random.default_rng(1)
    common, clean = rng.standard_normal((3, 20)), rng.standard_normal((500, 20))
    vectors = clean + 7 * common[0] + 30 * rng.standard_normal((500, 2)) @ common[1:]
    found = script.take_out(vectors, 2)
    assert found.mean(axis=0) == pytest.approx(np.zeros(20), abs=1e-9)
    spread = np.linalg.svd(found, compute_uv=False)
    assert spread[0] < 1.5 * spread[10]
    assert spread[18:] == pytest.approx([0, 0], abs=1e-6)
    assert np.linalg.svd(script.take_out(vectors, 1), compute_uv=False)[0] > 5 * spread[0], "one is too few here"
