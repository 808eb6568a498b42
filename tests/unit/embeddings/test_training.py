"""Poincare embeddings: pairs read and filtered, points trained repeatably inside the ball."""

from __future__ import annotations

import gzip
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.hypernyms import ALL, QUICK, both_trainers, pair_table, tree_pairs
from support.toys import toy_settings
from wordveil.assembly.bundles import build_bundle, find_bundle, open_parts
from wordveil.config.load import parse_config
from wordveil.embeddings.embedding import DEMO_POINCARE, load
from wordveil.embeddings.training.hypernyms import HypernymGraph, PoincareSettings, build_hierarchy, read_pairs
from wordveil.embeddings.training.poincare import LARGEST_NORM, _contrast, embed, project_to_ball, train
from wordveil.errors import BundleError, ConfigError, EmbeddingError
from wordveil.neighbours.blocks import BuildContext


@pytest.fixture(scope="module")
def graph() -> HypernymGraph:
    return build_hierarchy(pair_table(*tree_pairs(4)), ALL, "tree")


def edges_of(graph: HypernymGraph) -> set[tuple[str, str]]:
    return {(graph.words[word], graph.words[hypernym]) for word, hypernym in graph.edges}


PAIRS = [("cat", "mammal"), ("dog", 'say "mammal"'), ("zürich", "city")]


@pytest.mark.parametrize("kind", ["tsv", "tsv.gz", "tsv.xz", "parquet", "directory"])
@pytest.mark.parametrize("counts", [None, [3, 1, 7]])
def test_pairs_are_read_as_they_stand(tmp_path, kind, counts):
    path = tmp_path / f"pairs.{kind}"
    expected = pair_table(*(pair if counts is None else (*pair, counts[row]) for row, pair in enumerate(PAIRS)))
    if kind.startswith("tsv"):
        content = "".join(
            "\t".join(map(str, row.values() if counts else [*row.values()][:2])) + "\n" for row in expected.to_pylist()
        )
        opener = {"tsv": open, "tsv.gz": gzip.open, "tsv.xz": lzma.open}[kind]
        with opener(path, "wb") as file:
            file.write(content.encode())
    else:
        stored = expected if counts else expected.drop_columns("count")
        if kind == "directory":
            path.mkdir()
        pq.write_table(stored, path / "part.parquet" if kind == "directory" else path)
    assert read_pairs(path).equals(expected)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"cat\n", "the first line has 1 column"),
        (b"a\tb\tc\td\n", "the first line has 4 column"),
        (b"cat\tmammal\ndog\n", "cannot be read as pairs"),
        (b"cat\tmammal\tmany\n", "counts as whole numbers in an optional third"),
        (b"cat\tmammal\t1.5\n", "counts as whole numbers in an optional third"),
        (b"\xff\xfe\tmammal\n", "cannot be read as pairs"),
        (b"", "the first line has 1 column"),
        (None, "mechanism.embedding = .*pairs.tsv"),
    ],
)
def test_text_that_is_no_pairs_is_refused(tmp_path, content, words):
    path = tmp_path / "pairs.tsv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EmbeddingError, match=words) as error:
        read_pairs(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"word": ["a"]}, "column hypernym is missing"),
        ({"word": [1], "hypernym": ["b"]}, "column word is int64"),
        ({"word": ["a"], "hypernym": ["b"], "count": [1.5]}, "column count is double"),
    ],
)
def test_parquet_without_the_columns_is_refused(tmp_path, columns, words):
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    with pytest.raises(EmbeddingError, match=words):
        read_pairs(tmp_path / "pairs.parquet")


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (("", "b"), "word of pair 2 is missing"),
        (("a", " \t"), "hypernym of pair 2"),
        (("a", "b\nc"), "line break"),
        ((None, "b"), "word of pair 2 is missing"),
        (("a", "b", 0), "count of pair 2 is 0"),
        (("a", "b", None), "count of pair 2 is missing"),
    ],
)
def test_bad_pairs_are_named_by_their_number(pair, words):
    with pytest.raises(EmbeddingError, match=words):
        build_hierarchy(pair_table(("x", "y"), pair), ALL, "pairs")


def test_counts_of_a_pair_add_up_before_they_are_compared():
    pairs = pair_table(("a", "b", 2), ("c", "b", 4), ("a", "b", 3), ("d", "d", 9))
    assert edges_of(build_hierarchy(pairs, replace(ALL, min_count=5), "pairs")) == {("a", "b")}
    assert edges_of(build_hierarchy(pairs, ALL, "pairs")) == {("a", "b"), ("c", "b")}


def test_stop_words_go_on_either_side_and_in_any_case():
    pairs = pair_table(("The", "word"), ("cat", "about"), ("cat", "mammal"))
    assert edges_of(build_hierarchy(pairs, replace(ALL, stop_words="drop"), "pairs")) == {("cat", "mammal")}
    assert len(build_hierarchy(pairs, ALL, "pairs").edges) == 3


def test_the_filter_of_links_runs_once():
    """``c`` has two links, one of them to a word that goes: it stays."""
    pairs = pair_table(("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("a", "e"), ("b", "e"), ("e", "f"))
    once = build_hierarchy(pairs, replace(ALL, min_links=3), "pairs")
    assert edges_of(once) == {("a", "b"), ("a", "c"), ("b", "c"), ("a", "e"), ("b", "e")}
    assert min(once.links) < 3


def test_nothing_left_is_an_error():
    """By default words with two links or fewer go, as in the paper."""
    with pytest.raises(EmbeddingError, match="min_links = 3"):
        build_hierarchy(pair_table(("a", "b")), PoincareSettings(), "pairs")


def test_hierarchy_orders_words_by_links_then_alphabet(graph):
    rows = tree_pairs(4)[::-1]
    again = build_hierarchy(pair_table(*rows, *rows[:9]), ALL, "tree")
    assert again.words == graph.words
    assert np.array_equal(again.edges, graph.edges)
    assert list(graph.words) == sorted(graph.words, key=lambda word: (-graph.links[graph.words.index(word)], word))
    assert graph.words[0] == "r"


SHORT = replace(QUICK, epochs=5, burn_in=2)


@both_trainers
def test_embed_same_seed_same_bits_and_other_seed_others(graph, trainer):
    chosen = replace(SHORT, trainer=trainer)
    first = embed(graph, chosen, "tree", BuildContext())
    assert first.vectors.tobytes() == embed(graph, chosen, "tree", BuildContext()).vectors.tobytes()
    assert first.vectors.tobytes() != embed(graph, replace(chosen, seed=2), "tree", BuildContext()).vectors.tobytes()
    assert first.vectors.dtype == np.float32
    assert tuple(first.words.to_pylist()) == graph.words


def test_the_bits_are_those_of_every_machine(graph):
    """Trained once and written down: a change of the trainer, or a machine that computes otherwise, shows here."""
    assert embed(graph, QUICK, "tree", BuildContext()).digest[:16] == "6f34845081537f63"


def test_gradients_are_the_slopes_of_the_loss():
    """Against differences of the loss as the paper writes it, with arcosh; another loss is far from them."""
    rng = np.random.default_rng(8)
    points, others = rng.uniform(-0.5, 0.5, (6, 3)), np.array([1, 2, 3, 4, 5])

    def loss(at: np.ndarray) -> float:
        room = 1 - (at**2).sum(1)
        distance = np.arccosh(1 + 2 * ((at[0] - at[others]) ** 2).sum(1) / (room[0] * room[others]))
        return distance[0] + np.log(np.exp(-distance).sum())

    mine, theirs = np.empty(3), np.empty((5, 2, 3))
    _contrast(points, 0, others, np.empty(5), mine, theirs)
    gradient = np.vstack([mine, theirs[:, 1]])
    for index in np.ndindex(points.shape):
        step = np.zeros_like(points)
        step[index] = 1e-6
        assert gradient[index] == pytest.approx((loss(points + step) - loss(points - step)) / 2e-6, abs=1e-6)


@both_trainers
def test_points_stay_in_the_ball_at_a_rate_that_throws_them_out(graph, trainer):
    points = embed(graph, replace(SHORT, trainer=trainer, learning_rate=2.0), "tree", BuildContext()).vectors
    norms = np.linalg.norm(points.astype(np.float64), axis=1)
    assert norms.max() <= LARGEST_NORM
    assert norms.max() > 0.99


def test_rounding_never_leaves_the_ball():
    rng = np.random.default_rng(3)
    points = rng.standard_normal((2000, 7))
    points *= (rng.choice([0.5, LARGEST_NORM, 1.0 - 1e-9, 1.0, 3.0], 2000) / np.linalg.norm(points, axis=1))[:, None]
    norms = np.linalg.norm(project_to_ball(points).astype(np.float64), axis=1)
    inside = np.linalg.norm(points, axis=1) < 0.9
    assert norms.max() <= LARGEST_NORM
    assert norms[~inside].min() > LARGEST_NORM - 1e-6
    assert np.array_equal(project_to_ball(points)[inside], points[inside].astype(np.float32))


@both_trainers
def test_too_few_words_to_contrast_with_are_named(graph, trainer):
    with pytest.raises(EmbeddingError, match="negative = 30"):
        train(graph, replace(QUICK, trainer=trainer, negative=30), "tree", BuildContext())


def settings(tmp_path: Path, **mechanism: Any) -> dict[str, Any]:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{word}\t{hypernym}\n" for word, hypernym in tree_pairs(4)))
    training = {"dimension": 2, "epochs": 5, "burn_in": 1, "min_links": 1, "negative": 5}
    given = {"name": "exponential", "epsilon": 4.0, "embedding": str(path), "embedding_format": "hypernyms"}
    return toy_settings(
        {**given, "training": training, "public": True, **mechanism}, bundle_store=str(tmp_path / "bundles")
    )


def test_bundle_is_trained_once_and_found_by_its_training(tmp_path, monkeypatch):
    config = parse_config(settings(tmp_path), "job")
    bundle = build_bundle(config)
    assert bundle.vocabulary.size == 31
    assert find_bundle(config).fingerprint == bundle.fingerprint
    assert "98 hypernym pairs" in bundle.manifest["provenance"]["source"]
    monkeypatch.setattr("wordveil.embeddings.training.poincare.train", lambda *_: pytest.fail("trained again"))
    assert build_bundle(parse_config(settings(tmp_path, epsilon=5.0), "job")).fingerprint != bundle.fingerprint
    for name, own, other in (("seed", 1, 2), ("trainer", "gensim", "compiled")):
        changed = settings(tmp_path)
        changed["mechanism"]["training"][name] = other
        with pytest.raises(
            BundleError, match=rf"training\.{name} is {own} in the bundle, {other} in the configuration"
        ):
            find_bundle(parse_config(changed, "job"))
    with open_parts(config) as parts:
        assert parts.embedding.words.to_pylist() == bundle.vocabulary.array.slice(0, 31).to_pylist()


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        ({"training": {"trainer": "annoy"}}, "mechanism.training.trainer = annoy: allowed: 'gensim' or 'compiled'."),
        ({"training": {"learning_rate": float("nan")}}, "mechanism.training.learning_rate = nan"),
        ({"embedding_format": "auto"}, "mechanism.training: is only for an embedding that is trained from pairs."),
        ({"embedding": "demo"}, "mechanism.embedding = demo: is an embedding, not pairs."),
    ],
)
def test_faults_of_the_section_are_named(tmp_path, mechanism, words):
    with pytest.raises(ConfigError) as error:
        parse_config(settings(tmp_path, **mechanism), "job")
    assert words in str(error.value)


def test_the_shipped_embedding_is_a_hierarchy_in_the_ball():
    embedding = load(DEMO_POINCARE)
    words = embedding.words.to_pylist()
    norms = dict(zip(words, np.linalg.norm(embedding.vectors.astype(np.float64), axis=1), strict=True))
    assert embedding.dimension == 10
    assert words[:2] == ["entity", "abstraction"]
    assert max(norms.values()) <= LARGEST_NORM
    assert norms["entity"] < norms["animal"] < norms["dog"]
