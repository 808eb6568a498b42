"""The audit of another package, by a made one: what it claims, what it draws, and what it does when it fails."""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from wordveil.audit.findings import Audit, Verdict
from wordveil_research.peers import audit
from wordveil_research.peers import processes as peers
from wordveil_research.peers.audit import PeerCase, PeerSampler, audit_peer
from wordveil_research.peers.processes import SCRIPTS, Peer, PeerError, PeerSanitiser

# Randomised response: the word itself with odds exp(epsilon) : 1 to each other one. Unknown words are copied.
SCRIPT = """
import math, random
from serve import serve, tell_errors
def load(task):
    words = open(task["words"], encoding="utf-8").read().split("\\n")
    odds = math.exp(task["epsilon"])
    def sanitise(texts, seed):
        own = random.Random(seed)
        def respond(word):
            if word == "boom":
                return 1 / 0
            if word not in words:
                return word
            if own.random() < odds / (odds + len(words) - 1):
                return word
            return own.choice([other for other in words if other != word])
        draw = tell_errors(respond, task)
        return [[draw(word) for word in text] for text in texts]
    return sanitise, {"version": "1.0", "mechanism": task["mechanism"]}
serve(load)
"""
WORDS = ("the", "cat", "sat", "on")
LOSS = 1.0


def bound(loss, first, second):
    """Bound the same claim for all words."""
    return loss


@pytest.fixture
def case(tmp_path, monkeypatch):
    """Return a claim that is true: randomised response with a loss of 1."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    shutil.copy(SCRIPTS / "serve.py", scripts)
    (scripts / "made.py").write_text(SCRIPT)
    monkeypatch.setattr(peers, "SCRIPTS", scripts)
    monkeypatch.setattr(audit, "make_environment", lambda _peer, _home: Path(sys.executable))
    vectors = np.eye(len(WORDS), dtype=np.float32)
    pairs, claim = (("the", "cat"),), partial(bound, LOSS)
    return PeerCase(
        "made", WORDS, vectors, pairs, claim, "stated", 4_000, Peer("made", (), "made.py"), "response", LOSS
    )


def find(case, tmp_path, alpha=1e-3):
    found = audit_peer(case, tmp_path, tmp_path / "work", alpha=alpha, seed=3)
    assert Audit.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    return found, found.findings[0]


def test_a_true_claim_is_not_refuted_and_a_smaller_one_is(case, tmp_path):
    found, finding = find(case, tmp_path)
    assert finding.verdict is Verdict.NOT_REFUTED
    assert finding.claim == "stated"
    assert 0.6 < finding.observed < LOSS
    assert 1 < finding.power < 2
    assert found.facts["package"] == "made 1.0"
    _, finding = find(replace(case, bound=partial(bound, 0.6)), tmp_path)
    assert finding.verdict is Verdict.REFUTED


def test_an_event_that_is_fixed_is_tested_by_all_draws(case, tmp_path):
    _, finding = find(replace(case, event=("the",), bound=partial(bound, 0.6)), tmp_path)
    assert finding.verdict is Verdict.REFUTED
    assert finding.draws == 2 * case.draws
    assert "the output 'the'" in finding.evidence
    _, finding = find(replace(case, event=("sat",), bound=partial(bound, 0.6)), tmp_path)
    assert finding.verdict is Verdict.NOT_REFUTED


def test_a_copied_unknown_word_is_an_output_of_its_own(case, tmp_path):
    _, finding = find(replace(case, pairs=(("zebra", "gnu"),), bound=partial(bound, 5.0)), tmp_path)
    assert finding.verdict is Verdict.REFUTED
    assert re.search("'zebra'|'gnu'", finding.evidence)


def test_a_draw_that_fails_is_an_outcome(case, tmp_path):
    _, finding = find(replace(case, pairs=(("boom", "the"),), event=("<ZeroDivisionError>",)), tmp_path)
    assert finding.verdict is Verdict.REFUTED
    assert "4,000 of 4,000 draws of 'boom', 0 of 4,000" in finding.evidence


def test_a_package_that_cannot_run_is_told(case, tmp_path, monkeypatch):
    def refuse(_peer, _home):
        raise PeerError("made: its environment could not be made: no network.")

    monkeypatch.setattr(audit, "make_environment", refuse)
    found, finding = find(case, tmp_path)
    assert finding.verdict is Verdict.NOT_TESTED
    assert "no network" in finding.evidence
    assert not found.is_passed


def test_series_and_words_have_draws_of_their_own(case, tmp_path):
    task = audit._write_task(case, tmp_path / "work")
    with PeerSanitiser(case.peer, Path(sys.executable), task) as process:
        sampler = PeerSampler(process, case.inputs, 1)
        first, again = sampler.draw(0, 5_000, 0), sampler.draw(0, 5_000, 0)
        np.testing.assert_array_equal(first, again)
        assert first.dtype == np.int64
        assert (first != sampler.draw(0, 5_000, 1)).any()
        # Parts of one series do not repeat each other.
        assert (first[:800] != first[4_096:4_896]).any()
        kept = (first == 0).mean()
    assert abs(kept - math.e / (math.e + 3)) < 0.03
