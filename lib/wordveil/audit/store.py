"""Where audits are kept, so that a gate can require them.

An audit lies beside the bundles, by what it is about: ``<store>/.audits/<identity>/<kind>.json``. Another bundle, or
another way to make the output, has another identity, so that no audit of it counts. Nor does one that earlier tests
made (:data:`TESTS_VERSION`), or one that could not have refuted much: with few draws, or a tiny ``alpha``. It is not
signed: whoever can write it can also change the gate.

An audit that refutes something lies in a file of its own, and no later one replaces it: otherwise another seed would
sooner or later pass. It must be looked at and deleted by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from wordveil.audit.findings import Audit
from wordveil.errors import BundleError
from wordveil.release.rules import AUDITS
from wordveil.scores.files import replace_file, to_json

BUNDLE, RELEASE = AUDITS
TESTS_VERSION = "1"
"""Raised when tests are added or become stricter: a gate then asks for a new audit."""
TESTS_FACT, DRAWS_FACT = "tests", "draws"
"""The facts of an audit that decide, with its alpha, whether it counts."""
LEAST_DRAWS = {BUNDLE: 1_000, RELEASE: 30}
"""How many draws of a symbol, or copies of a document, an audit must have to count for a gate."""
ALPHAS = 1e-4, 0.05
"""Between which numbers its alpha must be."""

_FOLDER, _SHARED = ".audits", 0o644
_REFUTED = "-refuted"


def place_of(store: Path, kind: str, identity: str, *, is_refuted: bool = False) -> Path:
    """The file of an audit. ``store``: the directory of bundles."""
    return store / _FOLDER / identity / f"{kind}{_REFUTED if is_refuted else ''}.json"


def save_audit(store: Path, audit: Audit) -> Path:
    """Keep an audit, in place of an earlier one of the same kind and identity that refuted, or passed, like it.

    Returns its file. Raises :class:`BundleError` where the store cannot be written.
    """
    place = place_of(store, audit.kind, audit.identity, is_refuted=bool(audit.refuted))
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, to_json(audit.to_dict()), _SHARED)
    except OSError as error:
        raise BundleError(
            f"{place}: the audit cannot be kept ({error.strerror}). Run it as a user who may write to the bundle store."
        ) from None
    return place


def load_audit(store: Path, kind: str, identity: str, *, is_refuted: bool = False) -> Audit | None:
    """The kept audit of this kind and identity, by default the one that refutes nothing; None where there is none, or
    where another version wrote it.
    """
    place = place_of(store, kind, identity, is_refuted=is_refuted)
    try:
        audit = Audit.from_dict(json.loads(place.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return audit if (audit.kind, audit.identity) == (kind, identity) else None


def counts(audit: Audit) -> bool:
    """Whether an audit passed, by the tests of this version, and could have refuted something."""
    draws = audit.facts.get(DRAWS_FACT, "").replace(",", "")
    return (
        audit.is_passed
        and audit.facts.get(TESTS_FACT) == TESTS_VERSION
        and draws.isdecimal()
        and int(draws) >= LEAST_DRAWS[audit.kind]
        and ALPHAS[0] <= audit.alpha <= ALPHAS[1]
    )


def find_passed(store: Path, identities: Mapping[str, str]) -> tuple[str, ...]:
    """The kinds whose kept audit counts, and that no kept audit by the tests of this version refutes; sorted.

    ``identities``: the current identity of each kind: of a bundle its fingerprint.
    """
    return tuple(sorted(kind for kind, identity in identities.items() if _has_passed(store, kind, identity)))


def _has_passed(store: Path, kind: str, identity: str) -> bool:
    refuted = load_audit(store, kind, identity, is_refuted=True)
    if refuted is not None and refuted.facts.get(TESTS_FACT) == TESTS_VERSION:
        return False
    audit = load_audit(store, kind, identity)
    return audit is not None and counts(audit)
