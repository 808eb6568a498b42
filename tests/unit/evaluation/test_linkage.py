"""Linking does what the definition says: by brute force over all pairs of a record and a text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.toys import make_bundle, random_embedding
from wordveil.evaluation import linkage
from wordveil.evaluation.encoders import WeightedBag
from wordveil.evaluation.figures import find_linked
from wordveil.evaluation.linkage import Links, link_by_laws, link_by_vectors, link_by_what_shows, measure_linkage
from wordveil.evaluation.pairs import Pairs
from wordveil.evaluation.redrawn import BundleSanitiser, Ragged, Redrawn, redraw, redraw_columns
from wordveil.records.columns import TextColumns, text_inputs
from wordveil.records.schema import REASON_COLUMN
from wordveil.text.policy import TextPolicy

SIZE = 60
EMBEDDING = random_embedding(SIZE, 3)
WORDS = EMBEDDING.words.to_pylist()
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "lists": ("exponential", {"epsilon": 2.0, "neighbours": 12}),
    "all listed": ("exponential", {"epsilon": 2.0}),
    "blind": ("exponential", {"epsilon": 1e-9, "gamma": 1e-9}),
    "tree": ("tree", {"epsilon": 3.0, "sizes": (5,)}),
    "staircase": ("staircase", {"epsilon": 3.0}),
}


def some_texts(count: int, seed: int = 0, longest: int = 6) -> list[str]:
    """Texts of 0 to ``longest`` words, some of which are unknown, some of which occur twice."""
    rng = np.random.default_rng(seed)
    words = [*WORDS[:20], "stranger", "alien"]
    return [" ".join(rng.choice(words, rng.integers(0, longest + 1))) for _ in range(count)]


@pytest.fixture
def system(tmp_path: Path):
    def make(case: str, **policy: Any) -> BundleSanitiser:
        name, settings = CASES.get(case, (case, {"epsilon": 3.0} if case == "laplace" else {}))
        chosen = TextPolicy(**policy)
        bundle = make_bundle(tmp_path, EMBEDDING, settings, padding=chosen.pads, mechanism=name)
        return BundleSanitiser(bundle, chosen)

    return make


def rows_of(records: Ragged) -> list[np.ndarray]:
    return [records.ids[a:b] for a, b in zip(records.offsets[:-1], records.offsets[1:], strict=True)]


def brute_force(redrawn: Redrawn, *, ordered: bool) -> Links:
    laws = np.stack([redrawn.mechanism.probabilities(symbol) for symbol in range(SIZE + 2)])
    texts, records = rows_of(redrawn.whole), rows_of(Ragged(redrawn.drawn, redrawn.hidden.offsets))
    firsts = rows_of(Ragged(redrawn.is_first.astype(np.int32), redrawn.hidden.offsets))
    scores = np.full((len(records), len(texts)), -np.inf)
    for row, record in enumerate(records):
        for column, text in enumerate(texts):
            if redrawn.shows[row] != redrawn.shows[column]:
                continue
            if ordered:
                first = firsts[row].astype(bool)
                scores[row, column] = np.log(laws[text[first], record[first]]).sum()
            else:
                known = text if len(text) else np.array([SIZE + 1])
                scores[row, column] = np.log(laws[known].mean(axis=0)[record]).sum()
    own = np.diag(scores)[:, None]
    same = np.isclose(scores, own, rtol=0, atol=1e-8)
    return Links(((scores > own) & ~same).sum(axis=1), same.sum(axis=1), len(texts))


def assert_same(found: Links, wanted: Links) -> None:
    assert found.pool == wanted.pool
    assert found.better.tolist() == wanted.better.tolist()
    assert found.tied.tolist() == wanted.tied.tolist()


@pytest.mark.parametrize("case", CASES)
def test_ordered_records_are_ranked_by_the_sum_of_logarithms(system, case, monkeypatch):
    monkeypatch.setattr(linkage, "BLOCK_SCORES", 1)  # few records at a time
    redrawn = redraw(system(case), some_texts(150), seed=1)
    assert redrawn.laws.is_exact
    assert_same(link_by_laws(redrawn), brute_force(redrawn, ordered=True))


@pytest.mark.parametrize("case", ["lists", "tree"])
def test_padding_is_a_symbol_like_any(system, case):
    redrawn = redraw(system(case, length="pad", n_max=4), some_texts(80), seed=1)
    assert len(set(redrawn.shows)) == 1
    assert (redrawn.hidden.ids == SIZE).any()
    assert_same(link_by_laws(redrawn), brute_force(redrawn, ordered=True))


@pytest.mark.parametrize("policy", [{}, {"repeat": "same"}, {"punctuation": "keep"}], ids=["plain", "same", "copied"])
def test_redraw_columns_counts_words_of_all_columns(system, policy):
    sanitiser = replace(system("lists", **policy), columns=TextColumns(("title", "body")))
    columns = [pa.array(some_texts(90, seed, 3), pa.string()) for seed in (1, 2)]
    redrawn = redraw_columns(sanitiser, columns, seed=1)
    lengths = {
        (title.count(" ") + bool(title), body.count(" ") + bool(body))
        for title, body in zip(*map(pa.Array.to_pylist, columns), strict=True)
    }
    assert len(set(redrawn.shows)) >= len(lengths) > len(set(redrawn.hidden.lengths))  # the length of each column shows
    assert_same(link_by_laws(redrawn), brute_force(redrawn, ordered=True))
    assert redrawn.sequence.ids[redrawn.is_hidden].tolist() == redrawn.drawn.tolist()
    with pytest.raises(ValueError, match="one text column"):
        redraw_columns(replace(sanitiser, policy=TextPolicy(length="sample", n_max=2)), columns)


def test_find_linked_of_words_sampled_from_columns_is_missing(system):
    originals = {name: pa.array(some_texts(40, seed, 3), pa.string()) for seed, name in enumerate(text_inputs(2))}
    nothing = (None,) * 40
    records = pa.table({**originals, REASON_COLUMN: pa.nulls(40, pa.string())})
    pairs = Pairs(records, ("",) * 40, np.arange(40), nothing, nothing, frozenset(), frozenset(), 40)
    for length, is_missing in (("sample", True), ("pad", False)):
        sanitiser = replace(system("lists", length=length, n_max=4), columns=TextColumns(("title", "body"), (2, 2)))
        assert (find_linked(pairs, sanitiser, WeightedBag.plain(EMBEDDING), 0) is None) == is_missing


@pytest.mark.parametrize("policy", [{"output": "bag"}, {"length": "sample", "n_max": 5}], ids=["bag", "sample"])
@pytest.mark.parametrize("case", ["lists", "all listed"])
def test_without_an_order_the_mean_law_counts(system, case, policy, monkeypatch):
    monkeypatch.setattr(linkage, "BLOCK_TEXTS", 7)  # several blocks
    monkeypatch.setattr(linkage, "BLOCK_SCORES", 1_000)
    redrawn = redraw(system(case, **policy), some_texts(90), seed=1)
    assert_same(link_by_laws(redrawn), brute_force(redrawn, ordered=False))


def test_words_that_are_drawn_once_count_once(system):
    redrawn = redraw(system("lists", repeat="same"), some_texts(120), seed=1)
    assert not redrawn.is_first.all()
    assert_same(link_by_laws(redrawn), brute_force(redrawn, ordered=True))
    assert len(set(redrawn.shows)) > len(set(redrawn.hidden.lengths))  # which words are equal shows


def test_what_is_copied_tells_records_apart(system):
    texts = [f"{WORDS[3]}, {WORDS[4]}!", f"{WORDS[5]} {WORDS[6]}?", f"{WORDS[7]} {WORDS[8]}?"]
    redrawn = redraw(system("blind", punctuation="keep"), texts, seed=1)
    assert link_by_what_shows(redrawn).hits.tolist() == [1, 0.5, 0.5]
    assert link_by_laws(redrawn).hits.tolist() == [1, 0.5, 0.5]


def test_of_random_words_nothing_but_what_shows_is_learnt(system):
    redrawn = redraw(system("blind"), some_texts(60), seed=1)
    assert_same(link_by_laws(redrawn), link_by_what_shows(redrawn))


def test_who_knows_the_mechanism_links_more_than_who_does_not(system):
    """Also by laws that are estimated, and never against a wrong pool."""
    texts = some_texts(400, longest=8)
    vectors = WeightedBag.plain(EMBEDDING)
    for case, is_exact in (("lists", True), ("laplace", False)):
        sanitiser = system(case)
        redrawn = redraw(sanitiser, texts, seed=1)
        assert redrawn.laws.is_exact == is_exact
        knowing = link_by_laws(redrawn).hits.mean()
        guessing = link_by_vectors(vectors.encode(texts), vectors.encode(sanitiser.sanitise(texts, 1))).hits.mean()
        assert knowing > guessing + 0.05
        others = vectors.encode(sanitiser.sanitise(texts[1:] + texts[:1], 1))
        assert link_by_vectors(vectors.encode(texts), others).hits.mean() < 0.02, "by chance it is one of 400"


def test_texts_of_one_word_are_linked_as_often_as_theory_says(system):
    """The best attacker is right with the mean over texts of the largest probability of each output."""
    sanitiser, texts = system("lists"), WORDS[:20]
    laws = np.stack([sanitiser.bundle.mechanism.probabilities(word) for word in range(20)])
    wanted = laws.max(axis=0).sum() / 20
    hits = np.concatenate([link_by_laws(redraw(sanitiser, texts, seed)).hits for seed in range(40)])
    error = 4 * hits.std() / np.sqrt(len(hits))
    assert abs(hits.mean() - wanted) < error < wanted - 1 / 20


def test_equal_texts_share_their_place():
    vectors = np.array([[0.0, 1.0], [0.0, 1.0], [5.0, 5.0]])
    found = link_by_vectors(vectors, vectors)
    assert found.hits.tolist() == [0.5, 0.5, 1]
    assert found.reciprocal_ranks == pytest.approx([0.75, 0.75, 1])
    assert Links(np.array([2]), np.array([3]), 9).reciprocal_ranks == pytest.approx([(1 / 3 + 1 / 4 + 1 / 5) / 3])


def test_vectors_are_linked_to_the_nearest(monkeypatch):
    rng = np.random.default_rng(3)
    pool = rng.standard_normal((70, 4))
    records = pool + rng.standard_normal((70, 4))
    distances = ((records[:, None] - pool[None]) ** 2).sum(axis=2)
    better = (distances < np.diag(distances)[:, None]).sum(axis=1)
    monkeypatch.setattr(linkage, "BLOCK_SCORES", 500)
    assert link_by_vectors(pool, records).better.tolist() == better.tolist()


def test_scores_have_chance_levels_and_intervals(system):
    texts = some_texts(100)
    sanitiser = system("lists")
    arguments = (texts, sanitiser.sanitise(texts, 1), WeightedBag.plain(EMBEDDING), "release")
    scores = measure_linkage(*arguments, redrawn=redraw(sanitiser, texts, 1))
    assert [(score.method, score.figure) for score in scores] == [
        (method, figure)
        for method in ("nearest-vector", "what-shows", "bayes")
        for figure in ("linked", "reciprocal-rank")
    ]
    for score in scores:
        assert score.low <= score.value <= score.high
        assert score.count == 100
    assert scores[0].chance == 1 / 100
    assert scores[1].chance == pytest.approx(sum(1 / rank for rank in range(1, 101)) / 100)
    assert [score.method for score in measure_linkage(*arguments)] == ["nearest-vector"] * 2
    with pytest.raises(ValueError, match="as many originals"):
        measure_linkage(texts, texts[:1], arguments[2], "release")


def test_copied_words_stand_in_the_sequence(system):
    policy = {"stop_words": "keep", "stop_word_list": (WORDS[2],), "punctuation": "keep", "digits": "drop"}
    texts = [f"{WORDS[0]}, {WORDS[2]} {WORDS[5]}", f"{WORDS[2]} x9 {WORDS[1]}"]
    redrawn = redraw(system("lists", **policy), texts, seed=1)
    drawn = redrawn.drawn.tolist()
    assert redrawn.hidden.ids.tolist() == [0, 5, 1]
    assert [row.tolist() for row in rows_of(redrawn.sequence)] == [[drawn[0], 2, drawn[1]], [2, drawn[2]]]
    assert redrawn.is_hidden.tolist() == [True, False, True, False, True]
