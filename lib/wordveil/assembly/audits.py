"""The audits of what a configuration makes: where they are kept, and what identifies it."""

from __future__ import annotations

import hashlib

from wordveil.artifacts.content_store import encode_canonical
from wordveil.assembly.remote import open_store
from wordveil.audit import store
from wordveil.audit.findings import Audit
from wordveil.config.load import Config


def keep_audit(config: Config, audit: Audit) -> tuple[str, str | None]:
    """Keep an audit beside the bundles. Returns where it lies, and one that refutes the same thing, if any."""
    kept = open_store(config.bundle_store)
    path = store.save_audit(kept.root, audit)
    kept.save(path)
    refuted = store.audit_path(kept.root, audit.kind, audit.identity, is_refuted=True)
    return kept.locate(path), kept.locate(refuted) if refuted.exists() else None


def identify_release(config: Config, fingerprint: str) -> str:
    """What decides the outputs of a release but for its input, its key and its name: 64 hexadecimal digits.

    ``fingerprint``: of the bundle. An audit of a release counts as long as this stays: with the mechanism, the text
    policy, the text columns, what is kept and selected, and what the output's form shows.
    """
    terms = {
        "mechanism": fingerprint,
        "policy": config.record_settings("audit").policy_fingerprint,
        "format": config.output.format,
        "order": config.output.order,
        "directories": list(config.output.partition_by),
        "file": config.output.records_per_file or 0,
        "keep": list(config.source.keep),
        "where": config.source.where or "",
        "shown": sorted({*config.form_shown, *config.source.shown}),
    }
    return hashlib.sha256(encode_canonical(terms)).hexdigest()


def find_audits(config: Config, fingerprint: str) -> tuple[str, ...]:
    """The kinds of audits that passed and count for what the configuration makes now, sorted.

    ``fingerprint``: of the bundle that drew.
    """
    identities = {store.BUNDLE: fingerprint, store.RELEASE: identify_release(config, fingerprint)}
    return store.find_passed(open_store(config.bundle_store).root, identities)
