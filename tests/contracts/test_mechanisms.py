"""What every mechanism of the registry keeps to. A new one needs its golden outputs and nothing else: the cases are the
examples of the mechanisms themselves.

A record's output depends on its ids, its context and the keys, and on nothing else: not on the batch around it, not on
threads. Golden outputs fix draws and whole pipelines for a fixed key, so that a change that alters what a mechanism
fingerprint promises fails here, and must raise ``sampler_version``. ``WORDVEIL_REGOLD=1`` writes them again.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

from support.intervals import least_chance, most_chance
from support.made_texts import load_examples
from support.toys import (
    KEYS,
    MASTER_KEY,
    RELEASE,
    build_artifact,
    counted_contexts,
    law_of_word,
    load_built,
    make_bundle,
    random_embedding,
    record_batch,
    record_sanitiser,
    sanitise,
    sequences,
    token_batch,
    toy_embedding,
)
from wordveil.artifacts.bundle import Bundle
from wordveil.crypto.keys import MasterKey
from wordveil.crypto.streams import KeyedStream, derive_contexts, frame_records, id_payload
from wordveil.embeddings.embedding import Embedding, load
from wordveil.errors import BundleError
from wordveil.geometry.spaces import SPACES
from wordveil.mechanisms.base import Mechanism, TokenBatch
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.mechanisms.settings import ComparisonTerms, Example, MechanismSettings
from wordveil.text.policy import TextPolicy, with_profile

# Every case of every mechanism, as the mechanism itself names them: "laplace", "laplace annoy", ...
CASES: dict[str, tuple[type[Mechanism[Any]], Example]] = {
    f"{name} {label}".strip(): (mechanism, example)
    for name, mechanism in MECHANISMS.items()
    for label, example in mechanism.examples().items()
}

GOLDEN = Path(os.environ.get("WORDVEIL_GOLDEN", Path(__file__).parents[1] / "golden"))
SIZE, PAD, UNKNOWN = 300, 300, 301
TOY = random_embedding(SIZE, 12)


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Skip a case whose extra is not installed."""
    extra = CASES[name][1].extra
    missing = bool(extra) and find_spec(extra) is None
    return [pytest.mark.skipif(missing, reason=f"pip install 'wordveil[{extra}]'")]


EVERY = pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in CASES])
REGISTERED = pytest.mark.parametrize("name", sorted(MECHANISMS))


def pads(name: str) -> bool:
    return CASES[name][0].supports_padding


def paddings(name: str) -> tuple[bool, ...]:
    """With and without padding, if it may have it; symbols of whole texts always have an empty one."""
    return (False, True)[CASES[name][0].draws_texts : 1 + pads(name)]


def each_padding(names: Iterable[str]) -> Any:
    """Each case with and without padding, if it may have it."""
    cases = [(name, padding) for name in names for padding in paddings(name)]
    return pytest.mark.parametrize(("name", "padding"), [pytest.param(*case, marks=marks(case[0])) for case in cases])


EVERY_PADDED = each_padding(CASES)
EPSILON_PADDED = each_padding([name for name, (kind, _) in CASES.items() if kind.settings_type.has_epsilon()])
STOP_WORDS = ("and", "for", "in", "is", "of", "the", "to")
# What the profiles were before they told typed tokens apart: those releases draw as they did.
POLICIES = {
    "strict": with_profile("strict", n_max=12, types={}),
    "readable": with_profile("readable", controls="keep", stop_word_list=STOP_WORDS, types={}, names="words"),
    "bag": with_profile("strict", n_max=12, output="bag", types={}),
    "sampled": TextPolicy(length="sample", n_max=8),
}
TEXTS: list[str | None] = [
    "The President said the city is ready for Winter.",
    "don\u2019t; 42 QUICKLY-grown qwxzv cafe\u0301s!",
    "",
    "?!",
    "a " * 20 + "b",
    None,
    "the same text",
    "the same text",
]


@pytest.fixture(scope="module")
def demo() -> Embedding:
    return load("demo")


def has_epsilon(name: str) -> bool:
    return CASES[name][0].settings_type.has_epsilon()


def fit(name: str, embedding: Embedding) -> Embedding:
    """The embedding, or for cases of hyperbolic space its vectors so much shorter that they lie in the ball."""
    if CASES[name][1].small.terms.metric != "hyperbolic":
        return embedding
    longest = float(np.linalg.norm(embedding.vectors, axis=1).max())
    return replace(embedding, vectors=embedding.vectors * np.float32(0.6 / longest))


def build(
    name: str,
    embedding: Embedding,
    settings: MechanismSettings | None = None,
    *,
    padding: bool,
    kept: Path | None = None,
) -> Any:
    """What the mechanism of a case puts into a bundle, by its small example unless other settings are given."""
    mechanism, example = CASES[name]
    return build_artifact(mechanism, embedding, settings or example.small, padding=padding, kept=kept)


@cache
def build_toy(name: str, *, padding: bool) -> Any:
    return build(name, fit(name, TOY), padding=padding)


@cache
def toy_mechanism(name: str, *, padding: bool | None = None) -> Mechanism[Any]:
    built = build_toy(name, padding=pads(name) if padding is None else padding)
    return load_built(CASES[name][0], SIZE, built)


def symbols(size: int, *, padding: bool) -> NDArray[np.int64]:
    """Every input symbol; padding is one only where texts are padded."""
    return np.array([symbol for symbol in range(size + 2) if padding or symbol != size])


def records(*, padding: bool = True, size: int = SIZE) -> list[list[int]]:
    """Records of 0 to 30 random symbols, every symbol among them, some records empty and some equal."""
    rng = np.random.default_rng(0)
    lengths = [0, 1, 30, 0, 7, 2, *rng.integers(0, 30, 34), 0]
    drawn = [rng.choice(symbols(size, padding=padding), length).tolist() for length in lengths]
    return [*drawn, drawn[2], symbols(size, padding=padding).tolist()]


def test_every_mechanism_has_settings_and_golden_outputs() -> None:
    assert {kind for kind, _ in CASES.values()} == set(MECHANISMS.values())
    assert set(CASES) >= set(MECHANISMS), "each mechanism has an example without a name, for its golden outputs"
    assert {file.stem for file in GOLDEN.glob("*.json")} >= set(MECHANISMS)


def test_a_mechanism_says_what_others_need_to_know_of_it() -> None:
    for name, mechanism in MECHANISMS.items():
        kind = mechanism.settings_type
        assert mechanism.name == name
        assert mechanism.sampler_version >= 1
        assert dataclasses.is_dataclass(kind)
        assert mechanism.supports_padding or mechanism.padding_advice
        for example in mechanism.examples().values():
            assert type(example.small) is type(example.large) is kind
            assert json.loads(json.dumps(example.large.recipe())) == example.large.recipe()
        for settings in mechanism.comparable_settings(ComparisonTerms("euclidean", 20, 3.0)):
            assert type(settings) is kind
            assert settings.terms.label(name).split(",")[0] == name


@REGISTERED
def test_a_mechanism_that_cannot_pad_refuses_to(name: str) -> None:
    if pads(name):
        assert build_toy(name, padding=True).parameters.get("padding", True)
        return
    with pytest.raises(BundleError, match=re.escape(MECHANISMS[name].padding_advice)):
        build_toy(name, padding=True)


@EVERY_PADDED
def test_draw_keeps_offsets_contexts_and_its_input(name: str, padding: bool) -> None:
    batch = token_batch(records(padding=padding))
    before = [array.copy() for array in (batch.ids, batch.offsets, batch.contexts)]
    mechanism = toy_mechanism(name, padding=padding)
    drawn = mechanism.draw(batch, KEYS)
    for after in (batch.ids, batch.offsets, batch.contexts), (before[0], drawn.offsets, drawn.contexts):
        assert all(np.array_equal(*pair) for pair in zip(before, after, strict=True))
    assert drawn.ids.dtype == np.int32
    assert drawn.ids.min() >= 0
    assert drawn.ids.max() < SIZE + padding
    assert sequences(mechanism.draw(token_batch([]), KEYS)) == []
    # Beyond it noise would repeat, so there must be room for any text; and it is finite.
    assert 2**20 <= mechanism.max_tokens <= 2**32


@EVERY_PADDED
def test_outputs_vary(name: str, padding: bool) -> None:
    """The other tests would mean little if every token came back, or every output were the same."""
    batch = token_batch([symbols(SIZE, padding=padding).tolist()] * 5)
    drawn = toy_mechanism(name, padding=padding).draw(batch, KEYS)
    kept = np.mean(drawn.ids == batch.ids)
    assert kept < 0.99
    assert kept > 0.01 or not has_epsilon(name)
    assert len(np.unique(drawn.ids)) > SIZE / 4


@EVERY
def test_batch_size_does_not_matter(name: str) -> None:
    """Nor do order, empty records, and more tokens than any inner chunk holds."""
    mechanism, ids = toy_mechanism(name), records(padding=pads(name))
    context = counted_contexts(len(ids))
    whole = sequences(mechanism.draw(token_batch(ids, context), KEYS))
    rows = np.arange(len(ids))
    for size in (1, 2, 7, len(ids) - 1):
        parts = np.split(rows, range(size, len(ids), size))
        drawn = [mechanism.draw(token_batch([ids[row] for row in part], context[part]), KEYS) for part in parts]
        assert list(chain.from_iterable(map(sequences, drawn))) == whole, size
    full = [row for row, record in enumerate(ids) if record]
    for order in (np.random.default_rng(1).permutation(len(ids)), np.array(full), np.tile(rows, 12)):
        drawn = mechanism.draw(token_batch([ids[row] for row in order], context[order]), KEYS)
        assert sequences(drawn) == [whole[row] for row in order]


@EVERY
def test_threads_do_not_matter(name: str, demo: Embedding) -> None:
    """Neither in what is built of so many words that a product takes two, nor in draws."""
    some = toy_embedding(demo.words[:3000].to_pylist(), demo.vectors[:3000])
    batch = token_batch(records(size=20, padding=pads(name))[:-2])
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"), TemporaryDirectory() as kept:
            built = build(name, fit(name, some), CASES[name][1].large, padding=pads(name), kept=Path(kept))
            drawn = sequences(load_built(CASES[name][0], some.size, built).draw(batch, KEYS))
            found.append((drawn, built.parameters, {key: array.tobytes() for key, array in built.arrays.items()}))
    assert found[0] == found[1]


@EVERY
def test_noise_follows_key_context_and_release(name: str) -> None:
    mechanism, ids = toy_mechanism(name), records(padding=pads(name))
    drawn = mechanism.draw(token_batch(ids), KEYS).ids

    def share_of_equals(batch: TokenBatch, keys: Any) -> float:
        return float(np.mean(mechanism.draw(batch, keys).ids == drawn))

    by_chance = share_of_equals(token_batch(ids, counted_contexts(len(ids), series=1)), KEYS)
    assert share_of_equals(token_batch(ids), MASTER_KEY.for_release(RELEASE)) == 1.0
    assert by_chance < 0.9
    assert share_of_equals(token_batch(ids), MASTER_KEY.for_release("another")) < 0.9
    assert share_of_equals(token_batch(ids), MasterKey(bytes(range(32))).for_release(RELEASE)) < 0.9


@EVERY
def test_positions_and_records_have_their_own_noise(name: str) -> None:
    drawn = sequences(toy_mechanism(name).draw(token_batch([[5] * 40] * 2), KEYS))
    assert len(set(drawn[0])) > 5
    assert drawn[0] != drawn[1]


@EPSILON_PADDED
def test_epsilon_must_be_positive_and_finite(name: str, padding: bool) -> None:
    for epsilon in (math.nan, math.inf, -math.inf, 0.0, -1.0):
        with pytest.raises(ValueError, match="epsilon"):
            build(name, fit(name, TOY), CASES[name][1].small.at_epsilon(epsilon), padding=padding)


@EPSILON_PADDED
def test_another_epsilon_is_the_mechanism_built_with_it(name: str, padding: bool) -> None:
    """Mechanisms that offer it draw what one built at that epsilon draws."""
    (kind, example), mechanism = CASES[name], toy_mechanism(name, padding=padding)
    settings = example.small.at_epsilon(1.5 * example.small.nominal_epsilon)
    if (changed := mechanism.at_epsilon(settings.nominal_epsilon)) is None:
        return
    built = load_built(kind, SIZE, build(name, fit(name, TOY), settings, padding=padding))
    batch, words = token_batch(records(padding=padding)), np.arange(SIZE, dtype=np.int32)
    assert (changed.draw(batch, KEYS).ids == built.draw(batch, KEYS).ids).all()
    if (stays := built.stay_probabilities(words)) is not None:
        assert mechanism.stays_at([settings.nominal_epsilon], words)[0] == pytest.approx(stays, rel=1e-6)
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="epsilon"):
            changed.at_epsilon(wrong)


@EVERY_PADDED
def test_guarantee(name: str, padding: bool) -> None:
    mechanism, example = CASES[name]
    built = build_toy(name, padding=padding)
    guarantee = built.guarantee
    assert guarantee.nominal_epsilon == example.small.nominal_epsilon
    # Where any two words differ by 1, what is true is computed and may be less.
    assert guarantee.nominal_epsilon <= guarantee.epsilon < math.inf or guarantee.metric.is_discrete
    assert 0 <= guarantee.slack < math.inf
    assert 0 <= guarantee.delta <= 1e-12
    assert (guarantee.delta == 0) == mechanism.is_exact
    assert guarantee.bound(0.0) == guarantee.slack
    assert guarantee.pure == guarantee.bound(math.inf) <= guarantee.epsilon * guarantee.diameter + guarantee.slack
    assert 0 < guarantee.diameter < math.inf
    assert type(guarantee).from_dict(json.loads(json.dumps(asdict(guarantee)))) == guarantee
    assert json.loads(json.dumps(built.parameters)) == built.parameters


@EVERY_PADDED
def test_laws_that_are_known_are_those_of_the_draws(name: str, padding: bool) -> None:
    """One word's probabilities, the laws of all words at once, and what is drawn."""
    mechanism = toy_mechanism(name, padding=padding)
    law, laws = mechanism.probabilities(7), mechanism.word_laws()
    if law is None:
        assert laws is None
        return
    assert law.shape == (SIZE + padding,)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    drawn = mechanism.draw(token_batch([[7] * DRAWS]), KEYS).ids
    counts, expected = np.bincount(drawn, minlength=len(law)), DRAWS * law
    rare = expected < 5
    seen = np.append(counts[~rare], counts[rare].sum())
    likely = np.append(expected[~rare], expected[rare].sum())
    fine = likely > 0
    assert counts[law == 0].sum() == 0
    assert stats.chisquare(seen[fine], likely[fine] / likely.sum() * seen.sum()).pvalue > 1e-6 or fine.sum() == 1
    if laws is None:
        return
    for word in range(0, SIZE, 37):
        assert law_of_word(laws, word) == pytest.approx(mechanism.probabilities(word), rel=1e-9, abs=1e-15)


@EVERY
def test_metric_is_named_by_its_points(name: str) -> None:
    """Epsilons of two embeddings, or with and without padding, must never be added as if of one metric."""
    toy, other = fit(name, TOY), fit(name, random_embedding(SIZE, 12, seed=1))
    cases = [(of, padding) for of in (toy, other) for padding in paddings(name)]
    metrics = [build(name, of, padding=padding).guarantee.metric for of, padding in cases]
    assert len(set(metrics)) == len(cases)
    if has_epsilon(name):
        settings = CASES[name][1].small.at_epsilon(19.0)
        assert metrics[0] == build(name, toy, settings, padding=cases[0][1]).guarantee.metric


DRAWS = 25_000


@EVERY_PADDED
def test_two_words_distinguished_no_better_than_the_bound(name: str, padding: bool) -> None:
    """The likeliest sign of a word is that it stays: it is compared with its nearest neighbour and a far word."""
    embedding, built, mechanism = fit(name, TOY), build_toy(name, padding=padding), toy_mechanism(name, padding=padding)
    metric = built.guarantee.metric.name.removesuffix("-capped")
    word = 7
    if metric in SPACES:
        points = SPACES[metric].points(embedding.vectors)
        apart = SPACES[metric].distances(points[word], points)
    else:
        apart = np.full(SIZE, built.guarantee.diameter)
    apart[word] = np.inf
    near, far = int(apart.argmin()), int(np.where(np.isinf(apart), 0, apart).argmax())
    drawn = {
        each: mechanism.draw(token_batch([[each] * DRAWS], counted_contexts(1, series=each)), KEYS).ids
        for each in {word, near, far}
    }
    stays = least_chance(int((drawn[word] == word).sum()), DRAWS, 1e-9)
    for other in (near, far):
        becomes = most_chance(int((drawn[other] == word).sum()), DRAWS, 1e-9)
        bound = built.guarantee.bound(float(apart[other]))
        assert stays <= math.exp(min(bound, 700.0)) * becomes + built.guarantee.delta


# Golden outputs.


def golden_stream() -> list[str]:
    """Uniforms of a keyed stream at positions 0 to 4, in hexadecimal."""
    content = [id_payload(np.array([1, 2], np.int32), np.array([0, 2]))]
    context = derive_contexts(KEYS.context, b"golden", frame_records([b"r"], content))
    uniforms = KeyedStream(KEYS.noise, 3).uniforms(np.repeat(context, 5, axis=0), np.arange(5))
    return [float(value).hex() for value in uniforms.ravel()]


def forms(name: str) -> dict[str, bool]:
    """The bundles whose outputs are golden: whether each is padded."""
    return {("padded" if padding else "plain"): padding for padding in paddings(name)}


def golden_draws(bundle: Bundle, size: int, *, padding: bool) -> list[list[int]]:
    fill = size * padding
    ids = [[], list(range(10)), [size - 1, size + 1, 7, 7], [fill] * 6, list(range(0, size, size // 40))]
    return sequences(bundle.mechanism.draw(token_batch(ids), KEYS))


def draw_rows(bundle: Bundle, policy: TextPolicy, texts: list[str | None]) -> list[dict[str, Any]]:
    reasons = ["null_text" if text is None else None for text in texts]
    table = sanitise(record_sanitiser(bundle, policy), record_batch(texts, reasons=reasons))
    rows = table.select(["id", "status", "reason", "text", "content_tag"]).to_pylist()
    return [{**row, "content_tag": row["content_tag"] and row["content_tag"].hex()} for row in rows]


def golden(name: str, embedding: Embedding, store: Path) -> dict[str, Any]:
    example, embedding = CASES[name][1].large, fit(name, embedding)
    defaults = {field.name: field.default for field in dataclasses.fields(example)}
    settings = {key: value for key, value in vars(example).items() if value != defaults[key]}
    bundles = {
        form: make_bundle(store, embedding, settings, padding=padding, mechanism=name)
        for form, padding in forms(name).items()
    }
    sizes = {form: bundle.vocabulary.size for form, bundle in bundles.items()}
    drawn = {
        "sampler_version": MECHANISMS[name].sampler_version,
        "settings": settings,
        "stream": golden_stream(),
        "draws": {form: golden_draws(bundles[form], sizes[form], padding=pad) for form, pad in forms(name).items()},
    }
    if MECHANISMS[name].draws_texts:
        # Which subjects there are depends on the last digits of a decomposition: its encoder has goldens of its own.
        return drawn
    policies = {
        form: (bundles["padded" if policy.pads else "plain"], policy)
        for form, policy in POLICIES.items()
        if pads(name) or not policy.pads
    }
    night = [*TEXTS, *load_examples(1000)]
    return {
        **drawn,
        "fingerprints": {form: bundle.fingerprint for form, bundle in bundles.items()},
        "records": {form: draw_rows(*drawn, TEXTS) for form, drawn in policies.items()},
        # On every machine the same: near ties, and numbers that a product rounds otherwise, come with many words.
        "night": {
            form: sha256(json.dumps(draw_rows(*drawn, night)).encode()).hexdigest() for form, drawn in policies.items()
        },
    }


def regold(file: Path, found: dict[str, Any]) -> None:
    """Write golden outputs, each innermost list of numbers on one line."""
    lines = json.dumps(found, indent=1, ensure_ascii=True)
    file.write_text(re.sub(r"(?<=\d,)\s+(?=\d)|(?<=\[)\s+(?=\d)|(?<=\d)\s+(?=\])", " ", lines) + "\n", "ascii")


@REGISTERED
def test_golden_outputs(name: str, demo: Embedding, tmp_path: Path) -> None:
    file = GOLDEN / f"{name}.json"
    found = golden(name, demo, tmp_path)
    if os.environ.get("WORDVEIL_REGOLD") == "1":
        regold(file, found)
    expected = json.loads(file.read_text("ascii"))
    for part in expected:
        assert found[part] == expected[part], part
    assert set(found) == set(expected)
