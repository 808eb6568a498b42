"""The exam of labelled sentences, over made ones and on a small embedding: what it counts, and that it runs."""

from __future__ import annotations

import importlib
import json
import lzma
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from wordveil_research.peers import processes as peers
from wordveil_research.peers.processes import PeerError

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
WORDS = ["met", "the", "boss", "of", "in", "paris", "danish", "cook", "call", "her", "austrian", "mister", "zorblax"]
SENTENCES = [
    ("Austrian cooks met Mister Quentin Zorblax in Paris.", {"PERSON": "Mister Quentin Zorblax", "LOCATION": "Paris"}),
    ("Call the French boss of Danish Dynamics, Mr: +1 617-867-5309!", {"ORGANIZATION": "Danish Dynamics"}),
    ("Mail quentin@zorblax.com.", {"EMAIL_ADDRESS": "quentin@zorblax.com", "PREFIX": "."}),
]


@pytest.fixture
def exam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the benchmark, on a small embedding; what it writes goes into a directory of its own."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("exam")
    vectors = np.random.default_rng(3).standard_normal((len(WORDS), 4))
    rows = zip(WORDS, vectors, strict=True)
    (tmp_path / "words.txt").write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    small = {"clusters": [4], "least": 1, "classes": None, "embedding": str(tmp_path / "words.txt")}
    monkeypatch.setattr("common.MECHANISM", {**importlib.import_module("common").MECHANISM, **small})
    monkeypatch.setattr("common.RESULTS", tmp_path / "results")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    return module


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a set of made sentences."""
    rows = []
    for text, labels in SENTENCES:
        spans = [
            {"type": kind, "start": text.index(value), "end": text.index(value) + len(value)}
            for kind, value in labels.items()
        ]
        rows.append(json.dumps({"text": text, "spans": spans}))
    path = tmp_path / "set.jsonl.xz"
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(rows) + "\n")
    return path


def test_spans_are_read_with_nationalities_outside_of_them(exam, data):
    texts, spans = exam.read_set(data, None)
    assert texts == [text for text, _ in SENTENCES]
    assert [(span.sentence, span.kind, " ".join(span.words)) for span in spans] == [
        *((0, "PERSON", "mister quentin zorblax"), (0, "LOCATION", "paris"), (0, "nationality", "austrian")),
        *((1, "ORGANIZATION", "danish dynamics"), (1, "nationality", "french")),
        (2, "EMAIL_ADDRESS", "quentin zorblax com"),  # a point alone has no word
    ]
    assert spans[-1].telling == {"quentin", "zorblax"}
    assert exam.Span(0, "PREFIX", ("mr", "the", "18")).telling == frozenset()
    assert exam.list_kinds(spans)[-2:] == ["all labelled", "nationality"]


def test_what_comes_out_is_counted(exam, data):
    _, spans = exam.read_set(data, None)
    first = ["MISTER Quentin-Zorblax and an austrian", "Dynamics, Danish dynamic", "com"]
    second = ["Quentin and mister Zorblax", "", "x@zorblax.org"]
    rows = exam.mark([first, second], spans)
    shares = {kind: [row[name].get("share") for name in ("whole", "part")] for kind, row in rows.items()}
    assert shares == {
        "EMAIL_ADDRESS": [0.0, 0.5],
        "LOCATION": [0.0, 0.0],
        "ORGANIZATION": [0.0, 0.5],
        "PERSON": [0.5, 1.0],
        "all labelled": [0.125, 0.5],
        "nationality": [0.25, 0.25],
    }
    assert rows["all labelled"]["whole"]["spans"] == 4
    # None of one span: the exact bound of one trial.
    assert rows["LOCATION"]["whole"] == pytest.approx({"spans": 1, "share": 0.0, "low": 0.0, "high": 0.975})
    assert exam.show(exam.summarise(np.zeros(0), [])) == "-"


def test_a_span_without_telling_words_counts_for_whole_alone(exam):
    rows = exam.mark([["Mr X"]], [exam.Span(0, "PREFIX", ("mr",))])
    assert rows["PREFIX"]["whole"]["share"] == 1.0
    assert rows["PREFIX"]["part"] == rows["PREFIX"]["whole_telling"] == {"spans": 0}


def test_a_smallest_run(exam, data, tmp_path, capsys):
    exam.main(["--smallest", "--data", str(data)])
    assert not (tmp_path / "results").exists()
    shown = capsys.readouterr().out
    assert "| `EMAIL_ADDRESS` | 1 | 1 | 0.00 " in shown
    assert "| nationality | " in shown
    assert "Presidio" not in shown


def test_presidio_stands_beside_or_says_why_not(exam, data, tmp_path, monkeypatch, capsys):
    def make(peer, environments):
        if peer is exam.PRESIDIO_MODEL:
            raise PeerError("presidio-model: its environment could not be made")
        return environments / "python"

    class Copying:
        def __init__(self, peer, python, task):
            self.about = {"mechanism": "none"}
            assert (peer, task["mechanism"]) == (peers.PRESIDIO, "patterns")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def sanitise(self, texts):
            return list(texts)

    monkeypatch.setattr(exam, "make_environment", make)
    monkeypatch.setattr(exam, "PeerSanitiser", Copying)
    monkeypatch.setattr(exam, "KEYS", 3)
    exam.main(["--data", str(data), "--environments", str(tmp_path)])
    systems = json.loads((tmp_path / "results" / "exam.json").read_text("utf-8"))["systems"]
    assert systems["Presidio, patterns"]["classes"]["all labelled"]["whole"]["share"] == 1.0
    assert systems["Presidio, patterns and model"] == {"error": "presidio-model: its environment could not be made"}
    assert systems["wordveil"]["keys"] == 3
    shown = capsys.readouterr().out
    assert "could not be made" in shown
    assert "| `PERSON` | 1 | 1 | 0.00 (0.0-97.5) |" in shown
    exam.main(["--table"])
    assert capsys.readouterr().out == shown
