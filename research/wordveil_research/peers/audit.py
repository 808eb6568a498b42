"""Try to refute what other packages claim: their own code draws, in an environment of its own.

A package's process (:mod:`wordveil_research.peers.processes`) is a black box for the two-phase test. Where its
source says which outputs refute a claim, that event is fixed before anything is drawn, and every draw tests it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordveil.audit.findings import Audit, Finding, Verdict
from wordveil.audit.two_phase import Naming, OutputEvent, Sampler, WordPair, audit_pairs, measure_events, summarise
from wordveil.embeddings.embedding import check_embedding
from wordveil_research.peers.processes import Peer, PeerError, PeerSanitiser, make_environment, write_vectors

_PART = 4_096


@dataclass(frozen=True)
class Case:
    """A claim about words, and where to test it.

    Attributes
    ----------
    name
        of the case, as a directory may be called.
    words, vectors
        a public vocabulary: float32 ``(words, dimension)``.
    pairs
        words whose outputs are compared.
    bound
        the claimed loss between two words, in nats.
    claim
        the claim, in a sentence, and where it is stated.
    draws
        of each word, in either phase.
    """

    name: str
    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    pairs: tuple[tuple[str, str], ...]
    bound: Callable[[str, str], float]
    claim: str
    draws: int


@dataclass(frozen=True)
class PeerCase(Case):
    """A claim of another package. Words of its pairs may be missing from the vocabulary.

    Attributes
    ----------
    peer
        the package, with the script that serves its mechanisms.
    mechanism, options, epsilon
        which mechanism, with which parameters.
    event
        the outputs that are tested, by all draws; chosen by draws if left out. With ``is_rest`` all outputs but these.
    """

    peer: Peer
    mechanism: str
    epsilon: float
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    event: Collection[str] | None = None
    is_rest: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """The vocabulary, and what is missing from it but drawn."""
        return tuple(dict.fromkeys([*self.words, *(word for pair in self.pairs for word in pair)]))


@dataclass
class PeerSampler(Sampler):
    """What a package's process draws, as numbers.

    Attributes
    ----------
    process
        the process, started.
    words
        all inputs; the number of an output that is none of them comes after theirs.
    seed
        draws repeat under it, as far as the package draws from a seed.
    """

    process: PeerSanitiser
    words: tuple[str, ...]
    seed: int

    def __post_init__(self) -> None:
        self._numbers = {word: number for number, word in enumerate(self.words)}

    def draw(self, word: int, count: int, series: int) -> NDArray[np.int64]:
        """As :class:`wordveil.audit.two_phase.Sampler` has it. Raises :class:`PeerError`."""
        drawn: list[str] = []
        for start in range(0, count, _PART):
            name = b"%d %d %d %d" % (self.seed, word, series, start)
            asked = [self.words[word]] * min(_PART, count - start)
            drawn += self.process.draw(asked, int.from_bytes(sha256(name).digest()[:4], "big"))
        return np.array([self.number(output) for output in drawn], np.int64)

    def number(self, output: str) -> int:
        """Return the number of an output: a new one where it was not seen before."""
        return self._numbers.setdefault(output, len(self._numbers))

    def show(self, output: int) -> str:
        """Show an output for people."""
        return repr(list(self._numbers)[output])


def audit_peer(case: PeerCase, environments: Path, work: Path, *, alpha: float, seed: int) -> Audit:
    """Try to refute one claim of a package. One that cannot be installed or run is a finding that says so.

    Parameters
    ----------
    case
        the claim.
    environments
        a directory for packages' environments. Missing ones are made.
    work
        a directory for the vocabulary and what the package makes of it.
    alpha
        the probability that a true claim is refuted.
    seed
        see :class:`PeerSampler`.
    """
    about: Mapping[str, Any] = {}
    try:
        task = _write_task(case, work / case.name)
        with PeerSanitiser(case.peer, make_environment(case.peer, environments), task) as process:
            about = process.about
            finding = _test(case, process, alpha, seed)
    except PeerError as error:
        finding = Finding("two-phase", Verdict.NOT_TESTED, case.claim, str(error))
    facts = {
        "package": " ".join((case.peer.name, *(str(about[name]) for name in ("version",) if name in about))),
        "mechanism": case.mechanism,
        "options": ", ".join(f"{name}={value}" for name, value in case.options.items()) or "none",
        "epsilon": f"{case.epsilon:g}",
        "words": f"{len(case.words):,} of dimension {case.vectors.shape[1]}",
        "seed": str(seed),
    }
    return Audit("callable", case.name, case.name, facts, alpha, (finding,))


def _write_task(case: PeerCase, place: Path) -> dict[str, Any]:
    embedding = check_embedding(list(case.words), case.vectors, case.name)
    named = {"mechanism": case.mechanism, "options": dict(case.options), "errors": True}
    return {**write_vectors(embedding, place), "epsilon": case.epsilon, "kept": str(place / "kept"), **named}


def _test(case: PeerCase, process: PeerSanitiser, alpha: float, seed: int) -> Finding:
    sampler = PeerSampler(process, case.inputs, seed)
    naming = Naming(show=sampler.show)
    pairs = [WordPair(sampler.number(one), sampler.number(two), case.bound(one, two)) for one, two in case.pairs]
    if case.event is None:
        (found,) = audit_pairs(sampler, pairs, alpha=alpha, draws=case.draws, rounds=1, naming=naming)
    else:
        event = OutputEvent(np.unique([sampler.number(output) for output in case.event]), case.is_rest)
        drawn = {word: sampler.draw(word, case.draws, 0) for pair in pairs for word in (pair.first, pair.second)}
        tests = measure_events(pairs, [event] * len(pairs), drawn, alpha / (2 * len(pairs)))
        found = summarise("", tests, naming, case.draws * len(drawn), 0.0)
    return replace(found, claim=case.claim, seconds=found.seconds + process.seconds)
