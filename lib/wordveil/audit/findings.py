"""Findings of an audit, one for each test, its verdict, and the store in which a gate looks for it.

An audit can refute a guarantee. It cannot prove one: a finding that refutes nothing states which factor on the claim it
could have refuted.

An audit lies beside the bundles: ``<store>/.audits/<identity>/<kind>.json``. An audit by earlier tests
(:data:`TESTS_VERSION`) does not count, nor does one without power, or that could not have refuted much because of few
draws or a tiny ``alpha``. An audit that refutes something has a separate file, and no later one replaces it: otherwise
another seed would sooner or later pass (docs/auditing.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from wordveil.errors import BundleError
from wordveil.release.rules import AUDITS
from wordveil.scores.evaluation import replace_file, to_json

FORMAT_VERSION = 1
INFINITE = "Infinity"
_OF_LOSS = ("supremum", "metric", "radius", "two-phase")
"""Prefixes of tests that show a loss above the claim."""


class Verdict(StrEnum):
    """Verdict of a test on a claim."""

    REFUTED = "refuted"
    """The claim is false, except with a probability of at most the audit's ``alpha``."""

    NOT_REFUTED = "not refuted"
    """The draws agree with the claim. The power shows what they could have refuted."""

    NO_POWER = "no power"
    """The draws agree with the claim, but so few could not have refuted it: nothing follows."""

    HOLDS = "holds"
    """The claim was computed, not sampled, and is true."""

    NOT_TESTED = "not tested"
    """The test does not apply, or could not run, for the reason in the evidence."""


@dataclass(frozen=True)
class Finding:
    """Result of one test.

    ``test``: such as ``two-phase``, ``supremum`` or ``canary:length``. ``claim``: a sentence. ``evidence``: a sentence
    about the event that refutes the claim, or the reason why nothing was tested. It quotes public words at most, never
    a text of a corpus. ``claimed``: largest loss that the claim allows, in nats; None if it is not about a loss.
    ``observed``: lower bound on the true loss, in nats, or the loss itself if computed. ``p_value``: for the test
    alone, before correction for the number of tests; None if nothing was sampled. ``power``: least factor such that
    draws of a loss that many times the claim would have refuted it; infinite if none would have, and what is not
    refuted then has no power; None if the test has no such figure. ``seconds``: processor time.
    """

    test: str
    verdict: Verdict
    claim: str
    evidence: str
    claimed: float | None = None
    observed: float | None = None
    p_value: float | None = None
    power: float | None = None
    draws: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        """Mark a finding that nothing could have refuted as one without power, from any source."""
        if self.verdict is Verdict.NOT_REFUTED and self.power == math.inf:
            object.__setattr__(self, "verdict", Verdict.NO_POWER)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; infinity as the text ``"Infinity"``."""
        return {name: INFINITE if value == math.inf else value for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Audit:
    """Audit of one subject, with all findings.

    ``kind``: ``bundle``, ``release`` or ``callable``. ``subject``: its name for people. ``identity``: the bundle's
    fingerprint, the digest of what decides a release's outputs, or the name of the callable. ``facts``: mechanism,
    epsilon, words, seed and versions, in the order to show. ``alpha``: the probability that any true claim is refuted,
    over all tests. ``notes``: remarks for readers, in sentences.
    """

    kind: str
    subject: str
    identity: str
    facts: Mapping[str, str]
    alpha: float
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def refuted(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.REFUTED)

    @property
    def without_power(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.verdict is Verdict.NO_POWER)

    @property
    def verdict(self) -> Verdict:
        """Verdict of all findings together: nothing is refuted only if it could have been.

        For a bundle or a function, some test must have had the power to show a loss above the claim. For a release, all
        tests must have had the power to show undeclared exposures.
        """
        tests = {
            finding.test: finding.verdict for finding in self.findings if finding.verdict is not Verdict.NOT_TESTED
        }
        if self.refuted:
            return Verdict.REFUTED
        if not tests:
            return Verdict.NOT_TESTED
        canaries = [verdict for test, verdict in tests.items() if test.startswith("canary:")]
        decisive = canaries or [verdict for test, verdict in tests.items() if test.startswith(_OF_LOSS)]
        powerless = [verdict is Verdict.NO_POWER for verdict in decisive]
        return Verdict.NO_POWER if (any(powerless) if canaries else all(powerless)) else Verdict.NOT_REFUTED

    @property
    def is_passed(self) -> bool:
        """True if something could have been refuted and nothing was."""
        return self.verdict is Verdict.NOT_REFUTED

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; infinity as the text ``"Infinity"``."""
        values: dict[str, Any] = {"format_version": FORMAT_VERSION, **vars(self), "passed": self.is_passed}
        return {
            **values,
            "verdict": self.verdict,
            "facts": dict(self.facts),
            "findings": [finding.to_dict() for finding in self.findings],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what :meth:`to_dict` returned. Raises :class:`ValueError`; :class:`AttributeError` for no mapping."""
        if values.get("format_version") != FORMAT_VERSION:
            raise ValueError(f"format_version = {values.get('format_version')}: expected {FORMAT_VERSION}.")
        return TypeAdapter(cls).validate_python(values)


BUNDLE, RELEASE = AUDITS
TESTS_VERSION = "1"
"""Version of the tests, raised when tests are added or become stricter: a gate then requires a new audit."""
TESTS_FACT, DRAWS_FACT = "tests", "draws"
"""Facts of an audit that decide, with its alpha, whether it counts."""
LEAST_DRAWS = {BUNDLE: 1_000, RELEASE: 30}
"""Draws of a symbol, or copies of a document, that an audit needs to count for a gate."""
ALPHAS = 1e-4, 0.05
"""Range of alpha of an audit that counts."""

_FOLDER, _SHARED = ".audits", 0o644


def audit_path(store: Path, kind: str, identity: str, *, is_refuted: bool = False) -> Path:
    """Return the file of an audit. ``store``: the directory of bundles."""
    return store / _FOLDER / identity / f"{kind}{'-refuted' if is_refuted else ''}.json"


def save_audit(store: Path, audit: Audit) -> Path:
    """Store an audit, replace an earlier one with the same outcome, and return its file.

    Raises :class:`BundleError` if the store cannot be written.
    """
    path = audit_path(store, audit.kind, audit.identity, is_refuted=bool(audit.refuted))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, to_json(audit.to_dict()), _SHARED)
    except OSError as error:
        raise BundleError(
            f"{path}: the audit cannot be kept ({error.strerror}). Run it as a user who may write to the bundle store."
        ) from None
    return path


def load_audit(store: Path, kind: str, identity: str, *, is_refuted: bool = False) -> Audit | None:
    """Load the audit of this kind and identity, by default the one that refutes nothing, if there is one."""
    try:
        path = audit_path(store, kind, identity, is_refuted=is_refuted)
        audit = Audit.from_dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, AttributeError):
        return None
    return audit if (audit.kind, audit.identity) == (kind, identity) else None


def counts(audit: Audit) -> bool:
    """Return whether an audit passed the tests of this version and could have refuted something."""
    draws = audit.facts.get(DRAWS_FACT, "").replace(",", "")
    return (
        audit.is_passed
        and audit.facts.get(TESTS_FACT) == TESTS_VERSION
        and draws.isdecimal()
        and int(draws) >= LEAST_DRAWS[audit.kind]
        and ALPHAS[0] <= audit.alpha <= ALPHAS[1]
    )


def find_passed(store: Path, identities: Mapping[str, str]) -> tuple[str, ...]:
    """Find the kinds whose stored audit of the current identity counts, and that no audit refutes; sorted."""
    return tuple(sorted(kind for kind, identity in identities.items() if _has_passed(store, kind, identity)))


def _has_passed(store: Path, kind: str, identity: str) -> bool:
    if audit_path(store, kind, identity, is_refuted=True).exists():
        refuted = load_audit(store, kind, identity, is_refuted=True)
        # One that cannot be read may refute anything.
        if refuted is None or refuted.facts.get(TESTS_FACT) == TESTS_VERSION:
            return False
    audit = load_audit(store, kind, identity)
    return audit is not None and counts(audit)
