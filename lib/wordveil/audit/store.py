"""Store of audits, so that a gate can require them.

An audit lies beside the bundles: ``<store>/.audits/<identity>/<kind>.json``. Another bundle, or another way to make the
output, has another identity and needs its own audit. An audit by earlier tests (:data:`TESTS_VERSION`) does not count,
nor does one without power, or that could not have refuted much because of few draws or a tiny ``alpha``. Audits are not
signed: anyone who can write them can also change the gate.

An audit that refutes something has a file of its own, and no later one replaces it: otherwise another seed would sooner
or later pass. It must be read and deleted by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from wordveil.audit.findings import Audit
from wordveil.errors import BundleError
from wordveil.release.rules import AUDITS
from wordveil.scores.evaluation import replace_file, to_json

BUNDLE, RELEASE = AUDITS
TESTS_VERSION = "1"
"""Raised when tests are added or become stricter: a gate then asks for a new audit."""
TESTS_FACT, DRAWS_FACT = "tests", "draws"
"""The facts of an audit that decide, with its alpha, whether it counts."""
LEAST_DRAWS = {BUNDLE: 1_000, RELEASE: 30}
"""The draws of a symbol, or copies of a document, that an audit needs to count for a gate."""
ALPHAS = 1e-4, 0.05
"""The range of its alpha."""

_FOLDER, _SHARED = ".audits", 0o644


def audit_path(store: Path, kind: str, identity: str, *, is_refuted: bool = False) -> Path:
    """Return the file of an audit. ``store``: the directory of bundles."""
    return store / _FOLDER / identity / f"{kind}{'-refuted' if is_refuted else ''}.json"


def save_audit(store: Path, audit: Audit) -> Path:
    """Keep an audit, and replace an earlier one of the same kind and identity with the same outcome.

    Returns its file. Raises :class:`BundleError` if the store cannot be written.
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
    """Load the audit of this kind and identity, by default the one that refutes nothing.

    None if there is none, or if another version wrote it.
    """
    try:
        path = audit_path(store, kind, identity, is_refuted=is_refuted)
        audit = Audit.from_dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
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
    """Find the kinds whose kept audit counts, and that no kept audit by the tests of this version refutes; sorted.

    ``identities``: the current identity of each kind: of a bundle its fingerprint.
    """
    return tuple(sorted(kind for kind, identity in identities.items() if _has_passed(store, kind, identity)))


def _has_passed(store: Path, kind: str, identity: str) -> bool:
    if audit_path(store, kind, identity, is_refuted=True).exists():
        refuted = load_audit(store, kind, identity, is_refuted=True)
        # One that cannot be read may refute anything.
        if refuted is None or refuted.facts.get(TESTS_FACT) == TESTS_VERSION:
            return False
    audit = load_audit(store, kind, identity)
    return audit is not None and counts(audit)
