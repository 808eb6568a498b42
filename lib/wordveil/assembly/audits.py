"""The audits of what a configuration makes: where they are kept, and what identifies it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from wordveil.artifacts import bundle as bundles
from wordveil.artifacts.content_store import encode_canonical
from wordveil.audit import store
from wordveil.config.load import Config


def audit_store(config: Config) -> Path:
    """The store of bundles, beside which audits are kept."""
    return bundles.find_store(Path(config.bundle_store))


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
    return store.find_passed(audit_store(config), identities)
