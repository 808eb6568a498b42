"""The column of symbols: a function of the written words, and the number of padding."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.toys import KEYS, make_bundle, random_embedding, record_batch, sanitise
from wordveil.artifacts.bundle import Bundle
from wordveil.assembly.bundles import describe_symbols
from wordveil.errors import BundleError
from wordveil.records.columns import TextColumns
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings
from wordveil.text.policy import TextPolicy

EMBEDDING = random_embedding(90, 5)
WORDS = EMBEDDING.words.to_pylist()
TEXTS = [" ".join(WORDS[:9]), "waaa waab waaa waaa", "", "zzunknown " * 3]
PADDED = TextPolicy(length="pad", n_max=6)
SHOWN = TextPolicy(punctuation="keep", stop_words="keep", stop_word_list=("waab",))


@pytest.fixture(scope="module", params=["representative", "member"])
def bundles(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Bundle]:
    """Bundles of nine clusters, by padding."""
    settings = {"epsilon": 3.0, "clusters": (9,), "least": 3, "output": request.param}
    store = tmp_path_factory.mktemp("store")
    return {pads: make_bundle(store, EMBEDDING, settings, padding=pads, mechanism="tree") for pads in (False, True)}


def run(policy: TextPolicy, bundle: Bundle, *, symbols: bool = True, texts: list[str] = TEXTS) -> pa.Table:
    settings = RecordSettings("toy", "run-1", policy, (), columns=TextColumns(symbols=symbols))
    return sanitise(RecordSanitiser(settings, bundle, KEYS), record_batch(texts))


def find_symbols(bundle: Bundle, text: str) -> list[int]:
    symbols: Any = bundle.mechanism.symbols
    return sorted(int(symbols.written[WORDS.index(word)]) for word in text.split())


@pytest.mark.parametrize("output", ["sequence", "bag"])
def test_symbols_follow_from_the_text_and_change_nothing(bundles: dict[bool, Bundle], output: str):
    policy = replace(PADDED, output=output)
    table = run(policy, bundles[True])
    assert table.drop(["symbols"]) == run(policy, bundles[True], symbols=False)
    for text, symbols in zip(table["text"].to_pylist(), table["symbols"].to_pylist(), strict=True):
        known = find_symbols(bundles[True], text)
        assert symbols == known + [9] * (6 - len(known)), "rising, and the last is padding"


def test_copied_words_have_no_symbol(bundles: dict[bool, Bundle]):
    table = run(SHOWN, bundles[False])
    rows = zip(table["text"].to_pylist(), table["symbols"].to_pylist(), TEXTS, strict=True)
    for text, symbols, original in rows:
        drawn = [word for word, before in zip(text.split(), original.split(), strict=True) if before != "waab"]
        assert symbols == find_symbols(bundles[False], " ".join(drawn))


def test_words_drawn_once_have_one_symbol(bundles: dict[bool, Bundle]):
    table = run(TextPolicy(repeat="same"), bundles[False])
    assert [len(symbols) for symbols in table["symbols"].to_pylist()] == [9, 2, 0, 1]
    assert [row["tokens"] for row in table["privacy"].to_pylist()] == [9, 2, 0, 1]
    assert set(table["symbols"][1].as_py()) == set(find_symbols(bundles[False], table["text"][1].as_py()))


def test_refused_records_have_no_symbols(bundles: dict[bool, Bundle]):
    table = run(TextPolicy(unknown="quarantine"), bundles[False])
    assert [symbols is None for symbols in table["symbols"].to_pylist()] == [False, False, False, True]


def test_meanings_name_the_words_of_each_cluster(bundles: dict[bool, Bundle]):
    symbols: Any = bundles[True].mechanism.symbols
    described: Any = describe_symbols(bundles[True])
    *meanings, last = described["meanings"]
    assert last == {"written": "", "keywords": "padding", "size": 0}
    assert sum(row["size"] for row in meanings) == 90
    for number, row in enumerate(meanings):
        members = [WORDS[word] for word in np.flatnonzero(symbols.read == number)]
        assert row["size"] == len(members) >= 3
        assert row["keywords"] == " ".join(members[:8])
        assert symbols.written[WORDS.index(row["written"])] == number


def test_symbols_without_clusters_are_refused(tmp_path: Path):
    bundle = make_bundle(tmp_path, EMBEDDING, {"epsilon": 1.0, "gamma": 2.0}, padding=False, mechanism="exponential")
    with pytest.raises(BundleError, match=r"output\.symbols = true: the mechanism exponential draws no numbered"):
        run(TextPolicy(), bundle)
    assert describe_symbols(bundle) is None
