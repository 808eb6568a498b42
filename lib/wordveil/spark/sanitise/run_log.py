"""Runs of code that is not the job: recorded before they can draw, or drawn with a key that is thrown away."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from wordveil.artifacts.bundle import Bundle
from wordveil.config.arguments import parse_release
from wordveil.config.schema import ColumnsSection
from wordveil.crypto.keys import KEY_BYTES, MasterKey, ReleaseKeys, load_key
from wordveil.errors import ConfigError, Fault
from wordveil.spark.platform.filesystem import Files
from wordveil.text.policy import TextPolicy
from wordveil.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORD_VERSION = 1


def new_run_id() -> str:
    """Time (UTC) and eight random hexadecimal digits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


@dataclass(frozen=True)
class Run:
    """Under which release and key :func:`wordveil.spark.sanitise` draws. Made by :meth:`recorded` or
    :meth:`throwaway`.
    """

    release: str
    run_id: str
    key_fingerprint: str
    keys: ReleaseKeys = field(repr=False)
    run_log_dir: str | None

    @classmethod
    def recorded(
        cls,
        *,
        release: str,
        run_log_dir: str,
        key_file: str | None = None,
        key_env: str | None = None,
        run_id: str | None = None,
    ) -> Self:
        """A run of ``release`` with its key, which leaves a file ``<run_log_dir>/<release>/<run id>.json`` before it
        draws.

        The file tells the run id, when it began, fingerprints of bundle, policy and key, and columns; nothing secret. A
        release keeps the bundle and the policy of its first record. Raises :class:`ConfigError` or
        :class:`KeyMaterialError`.
        """
        parse_release(release)
        master = load_key(key_file, key_env)
        return cls(release, run_id or new_run_id(), master.fingerprint, master.for_release(release), run_log_dir)

    @classmethod
    def throwaway(cls) -> Self:
        """A run with a random key that is kept nowhere: to look at results, never to release them.

        What it draws from private text is internal. Each one draws other noise, under a release name of its own.
        """
        release = f"throwaway-{secrets.token_hex(8)}"
        master = MasterKey(secrets.token_bytes(KEY_BYTES))
        return cls(release, new_run_id(), master.fingerprint, master.for_release(release), None)

    def record(self, session: SparkSession, bundle: Bundle, policy: TextPolicy, columns: ColumnsSection) -> None:
        """Write down what is about to be drawn; nothing for a throwaway key. Raises :class:`ConfigError`."""
        if self.run_log_dir is None:
            return
        terms = {
            "mechanism_fingerprint": bundle.fingerprint,
            "policy_fingerprint": policy.fingerprint,
            "key_fingerprint": self.key_fingerprint,
        }
        files = Files(session, f"{self.run_log_dir.rstrip('/')}/{self.release}/{self.run_id}.json")
        for other in files.list_matching("*.json"):
            self._check_terms(terms, json.loads(files.read(other)))
        if files.exists():
            return  # the same run in the same terms, once more
        files.write_new(json.dumps(self._content(terms, columns), indent=1))

    def _check_terms(self, terms: dict[str, str], other: dict[str, Any]) -> None:
        if other.get("record_version") != RECORD_VERSION:
            problem = f"its record {other.get('run_id')} has record_version {other.get('record_version')}, not {RECORD_VERSION}."
            raise ConfigError(
                "run record", [Fault("release", self.release, problem, "Take the wordveil that wrote it.")]
            )
        faults = [
            Fault(
                "release",
                self.release,
                f"{name} is {value[:16]} now and {str(other[name])[:16]} in its record {other['run_id']}.",
                "A release has one bundle, one text policy and one key: go on with them, or take another release name.",
            )
            for name, value in terms.items()
            if other[name] != value
        ]
        if faults:
            raise ConfigError("run record", faults)

    def _content(self, terms: dict[str, str], columns: ColumnsSection) -> dict[str, Any]:
        return {
            "record_version": RECORD_VERSION,
            "run_id": self.run_id,
            "release": self.release,
            "recorded": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "wordveil": __version__,
            **terms,
            "columns": columns.model_dump(),
        }
