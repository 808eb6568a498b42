"""Previews on arrays: counts as the job's, shares that grow with epsilon, keys that are thrown away."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from support import toys
from wordveil.cli.tables import list_words, sample_facts
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.embeddings.vocabulary import Vocabulary
from wordveil.errors import ConfigError
from wordveil.measures import preview
from wordveil.measures.preview import Quantiles, WordPreview, default_words, inspect, preview_words, sort_words
from wordveil.records.columns import TextColumns
from wordveil.records.schema import REASON_COLUMN, TEXT_COLUMN
from wordveil.text.policy import TextPolicy

OPEN = TextPolicy()
GERMAN = "Seit gestern kann ich mich nicht mehr mit meinem Konto anmelden."
FRENCH = "Je ne peux plus me connecter depuis hier, et le mot de passe est refusé."
LINE = toys.toy_embedding(["near", "next", "far"], [1.0, 2.0, 5.0])
TEXTS = ["near next", "near zorblax far far", None, "東京", "", "NEXT, near!"]
REASONS = [None, None, "oversize", None, None, None]


@pytest.fixture
def bundle(tmp_path):
    return toys.laplace_bundle(tmp_path, LINE, 1.0, padding=True)


def batch(texts=TEXTS, reasons=REASONS) -> pa.RecordBatch:
    return pa.record_batch({TEXT_COLUMN: pa.array(texts, pa.string()), REASON_COLUMN: pa.array(reasons, pa.string())})


def test_counts_are_exact(bundle):
    sample = inspect([batch(), batch()], TextPolicy(length="pad", n_max=3), bundle)
    assert (sample.records, sample.released) == (12, 8)
    assert sample.quarantined == {"oversize": 2, "script_without_word_spaces": 2}
    assert (sample.words, sample.unknown, sample.unknown_rate) == (16, 2, 1 / 8)
    assert sample.lengths == Quantiles(min=0, median=2, p95=4, max=4)
    assert (sample.cut, sample.padded, sample.tokens) == (2, 6, 24)
    assert sample.keep_draws == 14
    assert 0 < sample.keep_rate < 1
    assert sample.core_hours(24) == pytest.approx(2 * sample.seconds / 3600)
    assert sample.core_hours(24) > 0


@pytest.mark.parametrize(
    "policy",
    [
        OPEN,
        TextPolicy(unknown="quarantine"),
        TextPolicy(length="pad", n_max=2, refused="empty"),
        TextPolicy(length="sample", n_max=3, refused="empty", unknown="quarantine"),
        TextPolicy(case="restore", punctuation="keep", unknown="keep"),
        TextPolicy(repeat="same", length="pad", n_max=3),
        TextPolicy(repeat="same", unknown="quarantine", punctuation="keep"),
    ],
)
def test_counts_are_those_of_the_job(policy, tmp_path):
    """The same records through the sanitiser itself."""
    bundle = toys.laplace_bundle(tmp_path, LINE, 1.0, padding=policy.pads)
    sample = inspect([batch()], policy, bundle)
    rows = toys.sanitise(toys.record_sanitiser(bundle, policy), toys.record_batch(TEXTS, reasons=REASONS)).to_pylist()
    released = [row for row in rows if row["status"] == "released"]
    assert sample.released == len(released)
    assert sample.quarantined == Counter(row["reason"] for row in rows if row["status"] == "quarantined")
    assert sample.tokens == sum(row["privacy"]["tokens"] for row in released)
    assert (sample.words, sample.unknown) == tuple(
        sum(row[name] for row in released) for name in ("__words", "__unknown")
    )
    assert sum(sample.emptied.values()) == (
        0 if policy.refused == "quarantine" else len(released) - 4 + ("unknown_words" in sample.emptied)
    )


def test_different_words_are_counted_where_each_is_drawn_once(bundle):
    assert inspect([batch()], OPEN, bundle).distinct is None
    texts = ["near near Near next", "zorblax other zorblax", None, "", "far"]
    records = batch(texts, [None, None, "oversize", None, None])
    sample = inspect([records], TextPolicy(repeat="same"), bundle)
    assert sample.lengths == Quantiles(min=0, median=1, p95=4, max=4)
    assert sample.distinct == Quantiles(min=0, median=1, p95=2, max=2)
    assert (sample.tokens, sample.keep_draws) == (5, 5)
    shown = sample_facts(sample, {"table_rows": 5, "core_hours": None, "core_hours_a_million": None})
    assert shown["different words a record"] == "min 0, median 1, p95 2, max 2"
    padded = inspect([records], TextPolicy(repeat="same", length="pad", n_max=9), bundle)
    assert (padded.released, padded.tokens, padded.distinct.max) == (4, 36, 2)


def test_the_keep_rate_is_that_of_what_is_written(bundle, monkeypatch):
    monkeypatch.setattr(type(bundle.mechanism), "render", lambda _, drawn: replace(drawn, ids=0 * drawn.ids + 2))
    assert inspect([batch(["near far next far"], [None])], OPEN, bundle).keep_rate == 0.5
    assert [item.stays for item in preview_words(bundle, ["near", "far"], 1.0, draws=50)] == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("output", ["representative", "member"])
def test_keep_rate_of_representatives_is_that_of_clusters(tmp_path, output):
    embedding = toys.random_embedding(60, 3, seed=2)
    settings = {"epsilon": 4.0, "clusters": (5,), "least": 3, "output": output}
    tree = toys.make_bundle(tmp_path, embedding, settings, padding=False, mechanism="tree")
    alike = tree.mechanism.drawn_alike(7)
    law = tree.mechanism.probabilities(7)
    other = embedding.words[int(next(word for word in alike if law[word] == 0 or output == "member"))].as_py()
    expected = law[alike].sum() if output == "representative" else law[embedding.words.index(other).as_py()]
    sample = inspect([batch([f"{other} zorblax"] * 4000, [None] * 4000)], OPEN, tree)
    assert sample.keep_draws == 4000
    assert sample.keep_rate == pytest.approx(expected, abs=0.04)
    assert sample.by_cluster == (output == "representative")
    (middle,) = [item for item in preview_words(tree, [other], 4.0) if item.epsilon == 4.0]
    assert middle.stays == pytest.approx(expected, abs=0.05)
    shown = sample_facts(sample, {"table_rows": 4000, "core_hours": None, "core_hours_a_million": None})
    assert ("stay in their cluster" in shown["expected keep-rate"]) == sample.by_cluster


def test_default_words_are_those_that_public_text_has_more_often():
    names = ["the", "with", "people", "house", "letter", "backup", "vpn", "server", "1password", "outage", "printer"]
    vocabulary = Vocabulary(pa.array([*names, *(f"other{letter}" for letter in "abcdefghij")]))
    counts = np.ones(len(names) + 10)
    counts[:10] = [400, 300, 5, 5, 5, 50, 90, 90, 90, 80]
    telling = default_words(vocabulary, counts / counts.sum())
    assert telling[:3] == ["server", "outage", "backup"], "no stop-words, short words or digits"
    assert len(telling) == 5


def test_default_words_without_counts_are_everyday_words():
    nouns = ["hotel", "money", "garden", "train", "camera", "school"]
    english = Vocabulary(pa.array([f"w{number}" for number in range(300)] + nouns))
    assert default_words(english) == ["money", "train", "school", "camera", "garden"]
    letters = [f"wort{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(300)]
    german = default_words(Vocabulary(pa.array(letters)))
    assert len(german) == 5
    assert set(german) <= set(letters[200:])


def test_list_words_has_a_row_for_each_word():
    previews = [
        WordPreview(word, epsilon, 100, epsilon / 10, ((f"{word}s", epsilon / 20),), 7)
        for word in ("train", "house")
        for epsilon in (2.0, 4.0, 8.0)
    ]
    headings, rows = list_words(previews)
    assert headings == ["word", "stays at 2", "stays at 4", "stays at 8", "likeliest others at 4"]
    assert rows == [
        ["train", "20.0%", "40.0%", "80.0%", "trains 20.0%"],
        ["house", "20.0%", "40.0%", "80.0%", "houses 20.0%"],
    ]
    assert list_words([replace(previews[1], replacements=())]) == (
        ["word", "stays at 4", "likeliest others at 4"],
        [["train", "40.0%", "none drawn twice"]],
    )


def test_records_in_another_language_are_counted_where_they_pass(bundle):
    texts = [GERMAN, "near and far are what the next one is", GERMAN, None, FRENCH]
    records = batch(texts, [None, None, None, "null_text", None])
    sample = inspect([records, records], OPEN, bundle)
    assert sample.other_languages == {"de": 4, "fr": 2}
    shown = sample_facts(sample, {"table_rows": 10, "core_hours": None, "core_hours_a_million": None})
    assert shown["in another language"].startswith("6 (75.0%) at least, most of them de: ")
    assert not {"ich", "nicht"} & {*" ".join(shown.values()).split()}
    assert inspect([records], TextPolicy(other_language="quarantine"), bundle).other_languages == {}
    assert "in another language" not in sample_facts(
        inspect([batch()], OPEN, bundle), {"table_rows": 5, "core_hours": None, "core_hours_a_million": None}
    )


def test_too_many_tokens_are_refused_as_in_the_job(bundle, monkeypatch):
    monkeypatch.setattr(type(bundle.mechanism), "max_tokens", 3)
    assert inspect([batch()], OPEN, bundle).quarantined["too_many_tokens"] == 1
    assert "too_many_tokens" not in inspect([batch()], TextPolicy(length="pad", n_max=3), bundle).quarantined


@pytest.mark.parametrize("batches", [[], [batch([], [])], [batch([None], ["null_text"])]])
def test_nothing_to_draw_is_no_error(bundle, batches):
    sample = inspect(batches, OPEN, bundle)
    assert (sample.released, sample.tokens) == (0, 0)
    assert (sample.keep_rate, sample.unknown_rate, sample.lengths) == (None, None, None)
    assert sample.tokens_per_second > 0
    facts = sample_facts(sample, {"table_rows": 0, "core_hours": sample.core_hours(9), "core_hours_a_million": None})
    assert facts["expected keep-rate"] == "no known words"


def test_the_keep_rate_is_the_share_that_stays(tmp_path):
    sure = toys.laplace_bundle(tmp_path / "sure", LINE, 1e4, padding=True)
    assert inspect([batch()], OPEN, sure).keep_rate == 1.0
    # Noise far longer than the line: each end takes half of the draws, and the middle nothing.
    lost = toys.laplace_bundle(tmp_path / "lost", LINE, 1e-6, padding=False)
    rate = inspect([batch(["near"] * 5000, [None] * 5000)], OPEN, lost).keep_rate
    assert rate == pytest.approx(0.5, abs=0.04)


def test_a_sample_is_drawn_within_bounds(bundle, monkeypatch):
    monkeypatch.setattr(preview, "SAMPLE_TOKENS", 1000)
    sample = inspect([batch(["near next far"] * 1000, [None] * 1000)], OPEN, bundle)
    assert (sample.tokens, sample.keep_draws) == (3000, 1000)
    ids = preview.choose_evenly(np.arange(5000, dtype=np.int32), 1000)
    assert len({*ids.tolist()}) == 1000
    assert ids[:100].max() > 4000  # a prefix is from everywhere
    monkeypatch.setattr(preview, "SAMPLE_TOKENS", 3000)
    monkeypatch.setattr(preview, "DRAW_SECONDS", 1e-9)
    assert inspect([batch(["near next far"] * 1000, [None] * 1000)], OPEN, bundle).keep_draws == 2000


def test_shares_are_the_mechanisms_own(tmp_path):
    """One dimension, no padding: noise is Laplace(1/eps), and a word's cell ends half way to its neighbour."""
    line = toys.laplace_bundle(tmp_path, LINE, 2.0, padding=False)
    found = preview_words(line, ["next", "near"], 2.0, draws=20_000)
    assert [(item.word, item.epsilon) for item in found[:4]] == [*(("next", e) for e in (1.0, 2.0, 4.0)), ("near", 1.0)]
    for item, epsilon in zip(found[:3], (1.0, 2.0, 4.0), strict=True):
        left, right = np.exp(-epsilon * 0.5) / 2, np.exp(-epsilon * 1.5) / 2
        assert item.stays == pytest.approx(1 - left - right, abs=0.015)
        (first, most), (second, least) = item.replacements
        assert (first, second) == ("near", "far"), "by share"
        assert (most, least) == (pytest.approx(left, abs=0.015), pytest.approx(right, abs=0.015))


def test_each_preview_has_keys_of_its_own(bundle):
    first, second = vars(make_throwaway_keys()), vars(make_throwaway_keys())
    assert all(first[name] != second[name] for name in ("context", "noise", "sampling", "shuffle", "tag"))
    assert preview_words(bundle, ["near"], 1.0) != preview_words(bundle, ["near"], 1.0)


def test_words_are_looked_up_as_the_policy_does():
    vocabulary = Vocabulary(pa.array(["near", "Far"]))
    assert sort_words([" NEAR ", "near", ""], OPEN, vocabulary) == (["near"], [])
    assert sort_words(["Far"], TextPolicy(case="exact"), vocabulary) == (["Far"], [])
    with pytest.raises(ConfigError, match="at least one"):
        sort_words([" "], OPEN, vocabulary)


@pytest.mark.parametrize(
    ("rule", "becomes"),
    [("mask", "drawn as the unknown word"), ("drop", "left out"), ("keep", "stays"), ("quarantine", "refuses")],
)
def test_word_not_in_vocabulary_shown_with_its_rule(rule: str, becomes: str):
    vocabulary = Vocabulary(pa.array(["near", "Far"]))
    known, unknown = sort_words(["near", "zorblax", "far"], TextPolicy(unknown=rule), vocabulary)
    assert known == ["near"]
    assert [(item.word, item.rule) for item in unknown] == [("zorblax", rule), ("far", rule)]
    assert all(becomes in item.becomes for item in unknown)


def test_what_people_see_holds_every_figure(bundle):
    sample = inspect([batch()], TextPolicy(length="pad", n_max=3, refused="empty"), bundle)
    figures = {"table_rows": 1234, "core_hours": 0.5, "core_hours_a_million": None}
    suggested = {"suggested": {"n_max": 8, "cut": 1, "epsilon_bound": 40.0}}
    shown = sample_facts(sample, {**figures, "seed": 42, "files": 9, "files_read": 2, **suggested})
    expected = {
        "records read": "6 of 1,234, at random, from 2 of 9 files; --seed 42",
        "released as the empty text": "2 (1 oversize, 1 script_without_word_spaces)",
        "longer than n_max": "1 (16.7%), cut",
        "unknown words": "12.50% of 8",
        "suggested n_max": "8, the p95 rounded up; 1 (16.7%) cut",
        "epsilon of a record at that": "40",
    }
    assert {name: shown[name] for name in expected} == expected
    assert sample_facts(sample, {**figures, "table_rows": 6})["records read"] == "6 of 6, all of the table"


def test_several_columns_are_counted_together_and_apart(bundle):
    columns = TextColumns(("subject", "body"), (2, 5))
    texts = [pa.array(["near", "near far near", None]), pa.array(["far " * 9, "", "near far"])]
    names = ["__text", "__text_1", "__reason"]
    records = pa.RecordBatch.from_arrays([*texts, pa.nulls(3, pa.string())], names=names)
    sample = inspect([records], TextPolicy(length="pad", n_max=7), bundle, columns=columns)
    assert (sample.released, sample.tokens, sample.words) == (3, 21, 15)
    assert sample.lengths == Quantiles(2, 3, 10, 10)
    assert (sample.cut, sample.padded, sample.suggested) == (2, 3, None)
    assert [(column.name, column.lengths.max, column.cut) for column in sample.columns] == [
        ("subject", 3, 1),
        ("body", 9, 1),
    ]
    once = inspect([records], TextPolicy(repeat="same"), bundle, columns=TextColumns(("subject", "body")))
    assert once.distinct == Quantiles(2, 2, 2, 2)
