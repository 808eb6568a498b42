"""Audits of a configuration's results: their place, and the identity of what they cover."""

from __future__ import annotations

import hashlib

from wordveil.artifacts.content_store import encode_canonical
from wordveil.assembly.remote import open_store
from wordveil.audit.findings import BUNDLE, RELEASE, Audit, audit_path, find_passed, save_audit
from wordveil.config.load import Config


def keep_audit(bundle_store: str, audit: Audit) -> tuple[str, str | None]:
    """Keep an audit beside the bundles. Return its location, and that of a refutation of the same thing, or None."""
    kept = open_store(bundle_store)
    path = save_audit(kept.root, audit)
    kept.save(path)
    refuted = audit_path(kept.root, audit.kind, audit.identity, is_refuted=True)
    return kept.locate(path), kept.locate(refuted) if refuted.exists() else None


def identify_release(config: Config, fingerprint: str) -> str:
    """Identify what decides the outputs of a release except for its input, key and name: 64 hexadecimal digits.

    ``fingerprint``: that of the bundle. An audit of a release counts as long as the identity stays: mechanism, text
    policy, text columns, kept columns, condition, and the exposures of the output's form.
    """
    terms = {
        "mechanism": fingerprint,
        "policy": config.record_settings("audit").policy_fingerprint,
        "format": config.output.format,
        "order": config.output.order,
        "directories": list(config.output.partition_by),
        "file": config.output.records_per_file or 0,
        "keep": [*config.source.keep, *map(str, config.source.pseudonyms)],
        "where": config.source.where or "",
        "shown": sorted({*config.form_shown, *config.source.shown}),
    }
    return hashlib.sha256(encode_canonical(terms)).hexdigest()


def find_audits(config: Config, fingerprint: str) -> tuple[str, ...]:
    """Find the kinds of audits that passed for what the bundle of that fingerprint would draw now, sorted."""
    identities = {BUNDLE: fingerprint, RELEASE: identify_release(config, fingerprint)}
    return find_passed(open_store(config.bundle_store).root, identities)
