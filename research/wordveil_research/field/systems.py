"""Build what a row needs in a block, once: the epsilon is looked for and kept, and so is the bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.artifacts.bundle import open_bundle
from wordveil.embeddings.embedding import load
from wordveil.evaluation.redrawn import BundleSanitiser
from wordveil.geometry.euclidean import diameter
from wordveil.measures.recovery import guess_outputs
from wordveil.measures.search import find_epsilon
from wordveil.mechanisms.base import Mechanism
from wordveil.neighbours.blocks import BuildContext
from wordveil.scores.evaluation import replace_file
from wordveil_research.field.matching import Matched, Matcher
from wordveil_research.field.rows import AS_IT_IS, DEMO, ORIGINAL, Block, Row, find_row
from wordveil_research.mechanisms.random import RandomSettings
from wordveil_research.papers.rows import Untouched
from wordveil_research.papers.systems import WORDS_ALONE, TextSanitiser, write_bundle
from wordveil_research.peers.laws import (
    epsilon_of_line,
    line_recovery,
    list_laws,
    list_nearest,
)
from wordveil_research.peers.processes import (
    DIFFRACTOR,
    PRESIDIO,
    PYPANTERA,
    Peer,
    PeerSanitiser,
    make_environment,
    write_vectors,
)
from wordveil_research.runner.base import Surroundings

INFINITE = float("inf")
COPIES = "words that it does not know are copied, so two texts that differ in one are distinguished for certain"
LISTS = "a word becomes one of its own ten nearest words and nothing else, so most pairs of words share no output"
KEEPS = "all that its patterns do not find stays as it is"
NEAREST = 10


@dataclass(frozen=True)
class System:
    """A row in a block, as it was built.

    Attributes
    ----------
    epsilon
        the mechanism's; None where it has none, or none was found.
    worst_loss
        the largest loss of a token between any two inputs, in nats; infinite where :attr:`reason` says why.
    known_loss
        the same between two words that the mechanism knows.
    reason
        why a loss is infinite, or why there is no such system.
    bundle
        the directory of the bundle; empty where there is none.
    is_there
        whether there is such a system.
    """

    epsilon: float | None
    worst_loss: float
    known_loss: float
    reason: str = ""
    bundle: str = ""
    is_there: bool = True


class NoRealisation(ValueError):  # noqa: N818 - not a failure
    """A row has no epsilon with what a block asks for."""


class Laboratory:
    """Finds and builds the systems of one run, and keeps them under ``around.work``."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.home = around.work / "field"
        self.home.mkdir(parents=True, exist_ok=True)

    @property
    def environments(self) -> Path:
        """Where other packages' environments are."""
        return self._around.work / "environments"

    def laplace_at(self, system: System, block: Block) -> Mechanism[Any]:
        """Return this package's Laplace at the epsilon of a system."""
        found = self.find(find_row("laplace"), block)
        changed = open_bundle(Path(found.bundle)).mechanism.at_epsilon(system.epsilon or 1.0)
        assert changed is not None  # Laplace can
        return changed

    def matcher(self, name: str) -> Matcher:
        """Return the matcher of an embedding by its name."""
        draws = 5_000 if self._around.is_quick else 50_000
        return _open_matcher(name, self.home / "lists", draws)

    def find(self, row: Row, block: Block) -> System:
        """Find the system of a row in a block: the kept one, or a new one.

        Raises :class:`wordveil_research.peers.processes.PeerError` where another package cannot run.
        """
        key = json.dumps([row.label, asdict(block), self._around.is_quick, row.peer.digest if row.peer else ""])
        place = self.home / "systems" / f"{sha256(key.encode()).hexdigest()[:24]}.json"
        if place.exists():
            return System(**json.loads(place.read_text("utf-8")))
        try:
            made = self._make(row, block)
        except NoRealisation as error:
            made = System(None, INFINITE, INFINITE, str(error), is_there=False)
        place.parent.mkdir(exist_ok=True)
        replace_file(place, json.dumps(asdict(made)))
        return made

    def _make(self, row: Row, block: Block) -> System:
        if row.peer is not None:
            return self._make_peer(row.peer, block)
        if row.candidate is None:
            return System(None, INFINITE, INFINITE, "nothing is hidden")
        matcher = self.matcher(row.embedding)
        if block == AS_IT_IS:
            found: Matched | None = Matched(0.0, matcher.build(row.candidate, 0.0))
        elif block.kind == "loss":
            found = matcher.at_loss(row.candidate, block.value)
        else:
            found = matcher.at_recovery(row.candidate, block.prior, block.value)
        if found is None:
            before = 0.0 if block.kind == "loss" else float(matcher.law(block.prior).max())
            known = f": who never looks is right in {before:.1%} of the cases" if before > block.value else ""
            raise NoRealisation(f"no epsilon that can be built gives {block.name}{known}")
        embedding = matcher.embedding
        settings = row.candidate.settings(found.epsilon)
        bundle = write_bundle(embedding, row.candidate.mechanism, settings, found.built, self.home / "bundles")
        loss = found.built.guarantee.pure
        epsilon = None if isinstance(settings, RandomSettings) else found.epsilon
        return System(epsilon, loss, loss, bundle=str(bundle))

    def _make_peer(self, peer: Peer, block: Block) -> System:
        python = make_environment(peer, self.environments)
        if peer == PRESIDIO:
            return System(None, INFINITE, INFINITE, KEEPS)
        if peer == PYPANTERA and block.kind == "loss":
            raise NoRealisation(f"no epsilon has a finite loss: {LISTS}")
        if peer == PYPANTERA:
            return System(self._match_lists(block), INFINITE, INFINITE, LISTS)
        if peer == DIFFRACTOR:
            words = self.matcher(DEMO).embedding.size
            epsilon = epsilon_of_line(words, block.value) if block.kind == "loss" else self._match_line(block, python)
            return System(epsilon, INFINITE, epsilon * (words - 1), COPIES)
        largest = self._diameter()
        if block.kind == "loss":
            return System(block.value / largest, INFINITE, block.value, COPIES)
        # The law is laplace's, except for the approximate search.
        like = self.find(find_row("laplace"), block)
        if like.epsilon is None:
            raise NoRealisation(like.reason)
        return System(like.epsilon, INFINITE, like.epsilon * largest, COPIES)

    def _diameter(self) -> float:
        return diameter(self.matcher(DEMO).embedding.vectors)

    def _match_lists(self, block: Block) -> float:
        matcher = self.matcher(DEMO)
        ids, distances = self.nearest()
        prior = matcher.law(block.prior)

        def recover(epsilon: float) -> float:
            return float(guess_outputs(list_laws(ids, distances, epsilon), prior)[1].sum())

        crossing = find_epsilon(recover, block.value, 1.0, 1e-3, 200.0)
        if not crossing.is_near:
            least = recover(1e-3)
            raise NoRealisation(f"no epsilon gives {block.name}: at least {least:.0%} are recovered at any epsilon")
        return crossing.epsilon

    def _match_line(self, block: Block, python: Path) -> float:
        prior = self.matcher(DEMO).law(block.prior)[self.order(python)]
        crossing = find_epsilon(lambda epsilon: line_recovery(prior, epsilon), block.value, 0.01, 1e-5, 5.0)
        if not crossing.is_near:
            raise NoRealisation(f"no epsilon gives {block.name}")
        return crossing.epsilon

    def nearest(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the ten nearest words of each word of the demo embedding, itself first, and their distances."""
        return _find_nearest()

    def order(self, python: Path) -> NDArray[np.int64]:
        """Return the word at each place of dp-diffractor's line, which its own code makes."""
        place = self._task(DIFFRACTOR, 1.0)
        line = Path(place["kept"]) / "line.json"
        if not line.exists():
            with PeerSanitiser(DIFFRACTOR, python, place):
                pass
        numbers = {word: row for row, word in enumerate(self.matcher(DEMO).embedding.words.to_pylist())}
        return np.array([numbers[word] for word in json.loads(line.read_text("utf-8"))], np.int64)

    def _task(self, peer: Peer, epsilon: float | None) -> dict[str, Any]:
        shared = write_vectors(self.matcher(DEMO).embedding, self.home / "vectors")
        kept = self.home / "peers" / f"{peer.name}-{peer.digest}"
        kept.mkdir(parents=True, exist_ok=True)
        return {**shared, "epsilon": epsilon, "kept": str(kept)}

    @contextmanager
    def open(self, row: Row, system: System) -> Iterator[TextSanitiser]:
        """Open the system, ready to sanitise texts. Its process, if it has one, ends with the ``with`` statement."""
        if row.peer is not None:
            python = make_environment(row.peer, self.environments)
            with PeerSanitiser(row.peer, python, self._task(row.peer, system.epsilon)) as peer:
                yield peer
        elif row.label.startswith(ORIGINAL):
            yield Untouched()
        else:
            yield BundleSanitiser(open_bundle(Path(system.bundle)), WORDS_ALONE)


@cache
def _open_matcher(name: str, kept: Path, draws: int) -> Matcher:
    return Matcher(load(name), work=BuildContext(kept=kept), draws=draws)


@cache
def _find_nearest() -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    return list_nearest(load(DEMO).vectors, NEAREST)
