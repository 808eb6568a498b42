"""One draw for a whole text: its law, its price, what it reads and writes, and broken twins that are refuted."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.intervals import least_chance, most_chance
from support.toys import (
    laplace_bundle,
    ragged,
    random_embedding,
    record_batch,
    record_sanitiser,
    sanitise,
    toy_embedding,
)
from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.bundle import Bundle, Recipe
from wordveil.assembly.passages import fit_passages
from wordveil.assembly.word_tables import FittedWords
from wordveil.audit.bundle import audit_bundle
from wordveil.audit.findings import Verdict
from wordveil.crypto.keys import make_throwaway_keys
from wordveil.embeddings.embedding import Embedding
from wordveil.errors import BundleError
from wordveil.evaluation.linkage import bound_linkage
from wordveil.measures.comparison import preview_sentence
from wordveil.measures.preview import Quantiles, inspect
from wordveil.mechanisms.base import MechanismArtifact
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.mechanisms.passages.mechanism import Passages, PassagesSettings
from wordveil.neighbours.blocks import BuildContext
from wordveil.privacy.table import TableTerms
from wordveil.records.codec import cut_sentences
from wordveil.records.columns import TextColumns
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.text.policy import TextPolicy, with_profile

SUBJECTS = {
    "music": ["song", "guitar", "singer", "melody", "concert", "piano", "band", "rhythm"],
    "money": ["bank", "market", "price", "stock", "profit", "loan", "budget", "dollar"],
    "weather": ["rain", "storm", "cloud", "wind", "snow", "thunder", "sunshine", "frost"],
    "food": ["bread", "cheese", "soup", "butter", "apple", "kitchen", "dinner", "recipe"],
}
WORDS = [word for words in SUBJECTS.values() for word in words]
POLICY = with_profile("passages")
EPSILON = 3.0


def make_embedding() -> Embedding:
    """Words of a subject point in one direction, roughly."""
    rng = np.random.default_rng(0)
    centres = np.repeat(10 * np.eye(4, 12), 8, axis=0)
    return toy_embedding(WORDS, centres + rng.standard_normal((32, 12)))


def make_passages(embedding: Embedding, more: tuple[str, ...] = ()) -> PublicInputs:
    """Thirty passages of each subject."""
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.permutation(words)[:5]).capitalize() + "." for words in SUBJECTS.values() for _ in range(30)]
    fitted = fit_passages(pa.array([*texts, *more], pa.string()), FittedWords(embedding.words, "passages", "toy", []))
    return PublicInputs(passages=fitted)


def build(embedding: Embedding, inputs: PublicInputs | None = None, **settings: Any) -> MechanismArtifact:
    chosen = PassagesSettings(**{"epsilon": EPSILON, "passages": "toy", "clusters": 4, **settings})
    inputs = make_passages(embedding) if inputs is None else inputs
    return Passages.build(embedding, chosen, padding=True, work=BuildContext(), inputs=inputs)


@pytest.fixture(scope="module")
def embedding() -> Embedding:
    return make_embedding()


@pytest.fixture(scope="module")
def built(embedding: Embedding) -> MechanismArtifact:
    return build(embedding)


@pytest.fixture(scope="module")
def bundle(embedding: Embedding, built: MechanismArtifact, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return store(tmp_path_factory.mktemp("store"), embedding, built)


def store(home: Path, embedding: Embedding, built: MechanismArtifact) -> Bundle:
    recipe = Recipe("passages", {"epsilon": EPSILON}, True, "toy", embedding.digest)
    return bundles.open_bundle(bundles.write(home, embedding, built, recipe, {}))


def find_loss(laws: list[np.ndarray]) -> float:
    return max(float(np.abs(np.log(one) - np.log(other)).max()) for one, other in product(laws, laws))


def test_any_two_texts_lose_epsilon_at_most(bundle: Bundle):
    """All pairs of symbols, the empty one among them; the closed form of randomised response among five."""
    laws = [bundle.mechanism.probabilities(symbol) for symbol in range(5)]
    assert all(law.sum() == pytest.approx(1) for law in laws)
    assert find_loss(laws) == pytest.approx(bundle.guarantee.pure, abs=1e-9)
    assert bundle.guarantee.pure <= EPSILON
    stays = math.exp(EPSILON) / (math.exp(EPSILON) + 4)
    assert [law[symbol] for symbol, law in enumerate(laws[:4])] == pytest.approx([stays] * 4, abs=0.01)
    # Had the empty symbol not been counted, a subject would stay more often than the price allows.
    careless = [np.where(np.arange(4) == own, math.exp(EPSILON), 1.0) for own in range(4)]
    with_empty = [np.append(0.95 * law / law.sum(), 0.05) for law in careless] + [np.append(np.full(4, 0.02), 0.92)]
    assert find_loss(with_empty) > EPSILON


def test_a_text_becomes_a_passage_on_its_subject(bundle: Bundle):
    texts = [" ".join(words[:4]) for words in SUBJECTS.values()] * 500
    written = sanitise(record_sanitiser(bundle, POLICY), record_batch(texts)).column("text").to_pylist()
    passages = bundle.vocabulary.array.to_pylist()
    first = [passage.lower().rstrip(".").split()[0] for passage in passages]
    own = [passages[next(row for row, word in enumerate(first) if word in words)] for words in SUBJECTS.values()]
    assert set(written) == {*passages, ""}
    kept = np.mean([text == own[row % 4] for row, text in enumerate(written)])
    assert abs(kept - math.exp(EPSILON) / (math.exp(EPSILON) + 4)) < 0.04


def test_a_record_costs_epsilon_whatever_its_length(bundle: Bundle):
    texts = ["", "bank", "bank " * 5_000, "qwxzv unknown", "rain and a 4711 storm, a@b.org"]
    table = sanitise(record_sanitiser(bundle, POLICY), record_batch(texts))
    for row in table.to_pylist():
        assert row["status"] == "released"
        assert row["privacy"]["tokens"] == 1
        assert row["privacy"]["epsilon_pure"] == row["privacy"]["epsilon_bound"] == bundle.guarantee.pure
        assert (row["privacy"]["relation"], row["privacy"]["exposes"]) == ("any_text", ["presence"])
        assert set((row["text"] or "").lower().rstrip(".").split()) <= set(WORDS)


def test_two_columns_cost_two_texts(bundle: Bundle):
    policy = with_profile("passages", n_max=2)
    settings = RecordSettings("toy", "run", policy, (), columns=TextColumns(("subject", "body"), (1, 1)))
    sanitiser = RecordSanitiser(settings, bundle, record_sanitiser(bundle, POLICY)._keys)
    batch = record_batch(["rain snow"] * 300)
    batch = pa.RecordBatch.from_arrays(
        [batch.column(0), batch.column(1), pa.array(["bank loan"] * 300), batch.column(2)],
        names=["id", "__text", "__text_1", "__reason"],
    )
    rows = [row for part in sanitiser.sanitise(batch) for row in part.to_pylist()]
    assert {row["privacy"]["epsilon_pure"] for row in rows} == {2 * bundle.guarantee.pure}
    # Columns have noise of their own.
    moved = [row["subject"] != rows[0]["subject"] for row in rows], [row["body"] != rows[0]["body"] for row in rows]
    assert moved[0] != moved[1]


def test_an_edit_has_a_tag_and_noise_of_its_own(bundle: Bundle):
    """Another word of the same subject too: its cost is that of any edit."""
    before, after = (
        sanitise(record_sanitiser(bundle, POLICY), record_batch([text] * 400)) for text in ("rain storm", "rain cloud")
    )
    assert set(before.column("content_tag").to_pylist()).isdisjoint(after.column("content_tag").to_pylist())
    assert before.column("text").to_pylist() != after.column("text").to_pylist()


@pytest.mark.parametrize("settings", [{"n_max": 0}, {"length": "as_is"}, {"case": "restore"}, {"stop_words": "drop"}])
def test_a_policy_that_copies_or_shows_is_refused(settings: dict[str, Any]):
    if "stop_words" in settings:  # they are left out of what is read, and nothing shows it
        assert with_profile("passages", **settings, stop_word_list=("the",)).relation == "any_text"
        return
    with pytest.raises(ValueError, match=r"n_max|length|unit"):
        with_profile("passages", **settings)


def test_words_are_not_drawn_by_symbols_of_texts(bundle: Bundle, tmp_path: Path):
    words = laplace_bundle(tmp_path, random_embedding(20, 3), 1.0, padding=True)
    for one, policy in ((words, POLICY), (bundle, with_profile("strict", n_max=4))):
        for check in (partial(record_sanitiser, one), one.check_policy):
            with pytest.raises(BundleError, match=r"draws .* and text\.unit is"):
                check(policy)


def test_a_bundle_that_claims_too_little_is_refuted(bundle: Bundle):
    """What stands is not refuted, in words of texts; a table that loses more than the manifest says is."""
    audit = audit_bundle(bundle, draws=500)
    assert audit.refuted == ()
    said = "\n".join([f"{finding.claim} {finding.evidence}" for finding in audit.findings])
    assert re.search(r"the text's own subject: .* draws of subject \d \(\w+ \w+ \w+\)", said)
    assert re.findall(r"word itself|two words|pairs of words|padding|unknown word|a token", said) == []
    broken = replace(bundle, mechanism=bundle.mechanism.at_epsilon(EPSILON + 1))
    findings = {finding.test: finding.verdict for finding in audit_bundle(broken, draws=500).findings}
    assert findings["supremum"] == Verdict.REFUTED


@pytest.mark.parametrize(("loss", "candidates"), [(3.0, 2), (6.0, 10_000), (8.0, 10_000)])
def test_the_bound_on_linkage_is_that_of_bayes(loss: float, candidates: int):
    """Randomised response among as many symbols as candidates attains it, and more loss links more."""
    stays = math.exp(loss) / (math.exp(loss) + candidates - 1)
    assert bound_linkage(loss, candidates) == pytest.approx(stays)
    assert bound_linkage(loss + 0.5, candidates) > stays


TWO = "Rain and a storm. The bank raised the price of a loan!"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (TWO, ["Rain and a storm", "The bank raised the price of a loan!"]),
        ("One line\r\n\n two lines?! ", ["One line", " two lines"]),
        ("3.5 percent of a.b", ["3.5 percent of a.b"]),
        ("", []),
        (" \n ... ", [" "]),
    ],
)
def test_sentences_end_at_marks_and_lines(text: str, sentences: list[str]):
    found, offsets = cut_sentences(pa.array(["", text, "x"], pa.string()))
    assert found.to_pylist() == [*(sentence for sentence in sentences if sentence.strip()), "x"]
    assert offsets.tolist() == [0, 0, len(found) - 1, len(found)]


def test_sentences_cost_epsilon_each_and_their_number_is_hidden(bundle: Bundle):
    policy = with_profile("passages", unit="sentence", n_max=3)
    texts = [TWO, "", TWO * 5, "Rain."] * 300
    rows = sanitise(record_sanitiser(bundle, policy), record_batch(texts)).to_pylist()
    assert {row["privacy"]["epsilon_pure"] for row in rows} == {3 * bundle.guarantee.pure}
    assert {(row["privacy"]["relation"], row["privacy"]["tokens"]) for row in rows} == {("any_text", 3)}
    passages = bundle.vocabulary.array.to_pylist()
    written = [sum(passage in row["text"] for passage in passages) for row in rows]
    assert max(written) == 3
    # Two sentences and padding, five draws of four symbols.
    kept = [row["text"] for row in rows[::4]]
    assert np.mean([text.count(".") == 2 for text in kept]) > 0.6


def test_the_number_of_sentences_may_show(bundle: Bundle):
    policy = with_profile("passages", unit="sentence", length="as_is", n_max=None)
    rows = sanitise(record_sanitiser(bundle, policy), record_batch([TWO, "", "Rain."])).to_pylist()
    assert [row["privacy"]["tokens"] for row in rows] == [2, 0, 1]
    assert {(row["privacy"]["relation"], row["privacy"]["epsilon_pure"]) for row in rows} == {("same_length", None)}
    assert {tuple(row["privacy"]["exposes"]) for row in rows} == {("length", "presence")}


def test_a_preview_names_both_subjects(bundle: Bundle):
    shown = preview_sentence(bundle, POLICY, "A storm with snow and rain")
    assert set(shown.subjects["the subject of the sentence"].split()) == set(SUBJECTS["weather"])
    assert not shown.tokens
    assert preview_sentence(bundle, POLICY, "qwxzv").subjects["the subject of the sentence"].startswith("none")


@pytest.mark.parametrize(
    ("policy", "tokens"), [(POLICY, 3), (with_profile("passages", unit="sentence", length="as_is", n_max=None), 4)]
)
def test_a_sample_has_lengths_in_words_and_draws_of_texts(
    policy: TextPolicy, tokens: int, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
):
    """A record may have more words than draws are allowed."""
    monkeypatch.setattr(type(bundle.mechanism), "max_tokens", 4)
    texts = ["Rain. The bank and a loan.", "snow qwxzv", "song guitar piano melody band"]
    sample = inspect([record_batch(texts), record_batch(["", None], reasons=[None, "oversize"])], policy, bundle)
    assert (sample.records, sample.released, sample.tokens) == (5, 4, tokens + (policy is POLICY))
    assert (sample.words, sample.unknown) == (13, 4)
    assert sample.lengths == Quantiles(min=0, median=2, p95=6, max=6)
    assert sample.keep_rate == pytest.approx(math.exp(EPSILON) / (math.exp(EPSILON) + 4), abs=0.01)


def test_passages_that_name_someone_are_read_but_not_written(embedding: Embedding):
    named = ("Peter Smith: song, guitar, piano, melody", "The bank made 4711 dollar profit of the loan market")
    inputs = make_passages(embedding, named)
    passages = inputs.passages
    assert passages is not None
    assert not {*named} & {*passages.texts.to_pylist()}
    assert len(passages) - 20 < len(passages.texts) < len(passages)
    written = build(embedding, inputs, clusters=8).topics
    assert written is not None
    assert not {*named} & {*written.passages.to_pylist()}


def test_keywords_are_written_in_place_of_passages(embedding: Embedding):
    topics = build(embedding, output="keywords").topics
    assert topics is not None
    assert topics.passages.to_pylist() == topics.keywords.to_pylist()
    assert {frozenset(words.split()) for words in topics.keywords.to_pylist()} == {*map(frozenset, SUBJECTS.values())}


@pytest.mark.parametrize(("encoder", "is_empty"), [("passages", True), ("vectors", False), ("both", False)])
def test_a_word_that_no_passages_share_has_no_subject(encoder: str, is_empty: bool):
    """By what passages have together; its own vector gives it one."""
    words = [*WORDS, "zebra", "quagga"]
    embedding = toy_embedding(words, np.vstack([make_embedding().vectors, np.eye(2, 12)]))
    built = build(embedding, make_passages(embedding, ("Zebra rain storm.",)), encoder=encoder)
    symbols = Passages(built.parameters, built.arrays).encoder.encode(*ragged([[32], [33, 32], [32, 16], [16]]))
    assert (symbols[:2] == 4).tolist() == [is_empty] * 2
    assert symbols[3] < 4
    if is_empty:
        assert symbols[2] == symbols[3]


def test_a_build_needs_passages_for_its_clusters(embedding: Embedding):
    with pytest.raises(BundleError, match=r"mechanism.clusters = 70: there are 119 passages .* Set at most 59"):
        build(embedding, clusters=70)
    with pytest.raises(BundleError, match=r"text\.profile"):
        Passages.build(
            embedding,
            PassagesSettings(epsilon=1.0, passages="toy", clusters=4),
            padding=False,
            work=BuildContext(),
            inputs=make_passages(embedding),
        )


ROWS, RUNS, DELTA = 20, 10_000, 0.02


def draw_tables(bundle: Bundle, first: str, runs: int) -> np.ndarray:
    """Draw ``runs`` tables of a record about ``first`` and nineteen known ones: int ``(runs, rows)``."""
    others = [" ".join(words[:4]) for words in SUBJECTS.values()] * 5
    texts = [" ".join(SUBJECTS[first][:4]), *others[1:]] * runs
    settings = RecordSettings("shuffled", "run", POLICY, (), columns=TextColumns(symbols=True))
    ids = [f"{first}-{row}" for row in range(len(texts))]
    table = sanitise(RecordSanitiser(settings, bundle, make_throwaway_keys()), record_batch(texts, ids))
    return np.array(table.column("symbols").to_pylist()).reshape(runs, ROWS)


def show_loss(scores: np.ndarray, other: np.ndarray) -> float:
    """Find the loss that a test by a score shows at delta, in either direction, with an error of 1e-4 in all."""
    found = [0.0]
    thresholds = np.unique([scores, other])
    for one, two in ((scores, other), (other, scores), (-scores, -other), (-other, -scores)):
        for threshold in {*thresholds.tolist(), *(-thresholds).tolist()}:
            low = least_chance(int((one >= threshold).sum()), RUNS, 1e-4 / 400) - DELTA
            high = most_chance(int((two >= threshold).sum()), RUNS, 1e-4 / 400)
            found.append(math.log(low / high) if low > 0 else 0.0)
    return max(found)


def test_a_shuffled_table_shows_what_its_bound_allows(bundle: Bundle):
    """An attacker who knows all other records counts the symbols of a table; in input order, rows show far more."""
    one, two = (draw_tables(bundle, subject, RUNS) for subject in ("music", "money"))
    symbols = [int(np.bincount(drawn[:, 0]).argmax()) for drawn in (one, two)]
    counted = [(drawn == symbols[0]).sum(axis=1) - (drawn == symbols[1]).sum(axis=1) for drawn in (one, two)]
    bound = TableTerms(bundle.guarantee.pure, bundle.mechanism.responses, 1.0, DELTA).measure(ROWS).epsilon
    assert bound < 0.95 * EPSILON
    assert 0.35 * bound < show_loss(*counted) <= bound
    in_order = show_loss(*((drawn[:, 0] == symbols[0]).astype(int) for drawn in (one, two)))
    assert bound < in_order <= EPSILON, "rows in the order of the input are refuted"
    assert not TableTerms(bundle.guarantee.pure, bundle.mechanism.responses, bound, DELTA).holds_for(3)
