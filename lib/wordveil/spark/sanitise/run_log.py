"""Runs of code other than the job: recorded before they can draw, or drawn with a key that is thrown away."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from pyspark.sql import SparkSession

from wordveil.artifacts.bundle import Bundle
from wordveil.config.arguments import parse_release, parse_run_id
from wordveil.crypto.keys import KEY_BYTES, MasterKey, ReleaseKeys, load_key
from wordveil.errors import ConfigError, Fault
from wordveil.input.columns import Columns
from wordveil.records.columns import ONE_TEXT, TextColumns
from wordveil.records.fixed_settings import explain_change, list_settings
from wordveil.spark.platform.connect import is_connect, read_texts, write_text
from wordveil.spark.platform.errors import job_errors
from wordveil.spark.platform.filesystem import Files
from wordveil.text.policy import TextPolicy
from wordveil.version import __version__

RECORD_VERSION = 1


def new_run_id() -> str:
    """Make a run id: the time (UTC) and eight random hexadecimal digits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"


@dataclass(frozen=True)
class Run:
    """Release and key under which :func:`wordveil.sanitise` and :func:`wordveil.register` draw.

    Make one with :meth:`recorded` or :meth:`throwaway`. The key itself is never shown.

    Attributes
    ----------
    release : str
        The name of the release.
    run_id : str
        The name of this run, in the column ``run_id`` of the result.
    key_fingerprint : str
        The fingerprint of the master key.
    keys : ReleaseKeys
        The release's subkeys, hidden from ``repr``.
    run_log_dir : str or None
        The directory of the files that record runs; None for a throwaway key.

    Examples
    --------
    >>> run = wordveil.Run.throwaway()
    >>> run.run_log_dir is None
    True
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
        """Make a run of a release with the release's key.

        The run leaves a file ``<run_log_dir>/<release>/<run id>.json`` before it draws: run id, start, fingerprints of
        bundle, policy and key, settings of bundle and policy, and columns; nothing secret. A release keeps the bundle,
        the policy and the key of its first run.

        Parameters
        ----------
        release : str
            The name of the release: 1 to 128 letters, digits, ``.``, ``_`` or ``-``.
        run_log_dir : str
            The directory of the runs' files, on any file system that the session reaches.
        key_file : str, optional
            The file that holds the master key. Name exactly one of ``key_file`` and ``key_env``.
        key_env : str, optional
            The environment variable that holds the master key.
        run_id : str, optional
            The name of the run. Left out, the time and eight random digits.

        Returns
        -------
        Run
            The run. Nothing is written before :func:`wordveil.sanitise` or :func:`wordveil.register` takes it.

        Raises
        ------
        wordveil.errors.ConfigError
            If the release's name is not allowed.
        wordveil.errors.KeyMaterialError
            If the key is missing, unsafe or malformed.

        Examples
        --------
        >>> run = wordveil.Run.recorded(
        ...     release="support-mail", run_log_dir="/lake/runs", key_env="WORDVEIL_KEY"
        ... )
        """
        parse_release(release)
        master = load_key(key_file, key_env)
        name = parse_run_id(run_id) if run_id else new_run_id()
        return cls(release, name, master.fingerprint, master.for_release(release), run_log_dir)

    @classmethod
    def throwaway(cls) -> Self:
        """Make a run with a random key that is kept nowhere: to look at results, never to release them.

        What it draws from private text is internal. Each such run draws other noise, under its own release name.

        Returns
        -------
        Run
            The run, which records nothing.

        Examples
        --------
        >>> wordveil.Run.throwaway().release.startswith("throwaway-")
        True
        """
        release = f"throwaway-{secrets.token_hex(8)}"
        master = MasterKey(secrets.token_bytes(KEY_BYTES))
        return cls(release, new_run_id(), master.fingerprint, master.for_release(release), None)

    def record(
        self,
        session: SparkSession,
        bundle: Bundle,
        policy: TextPolicy,
        columns: Columns,
        texts: TextColumns | None = None,
    ) -> None:
        """Record what is about to be drawn, unless the key is a throwaway one.

        :func:`wordveil.sanitise` and :func:`wordveil.register` call it.

        Parameters
        ----------
        session : pyspark.sql.SparkSession
            The session that reaches the file system of ``run_log_dir``.
        bundle : Bundle
            The bundle to draw with.
        policy : TextPolicy
            The text policy.
        columns : Columns
            The columns of the input.
        texts : TextColumns, optional
            The text columns of the output. Left out, there is one, ``text``.

        Raises
        ------
        wordveil.errors.ConfigError
            If the release's other runs had another bundle, policy or key.
        wordveil.errors.SparkJobError
            If a record cannot be read or written.
        """
        if self.run_log_dir is None:
            return
        texts = texts or ONE_TEXT
        terms = {
            "mechanism_fingerprint": bundle.fingerprint,
            "policy_fingerprint": texts.fingerprint(policy),
            "key_fingerprint": self.key_fingerprint,
        }
        directory = f"{self.run_log_dir.rstrip('/')}/{self.release}"
        path = f"{directory}/{self.run_id}.json"
        settings = list_settings(policy, bundle, texts)
        with job_errors(f"the run is not recorded in {path}"):
            others = [json.loads(text) for text in _read_records(session, directory)]
            for other in others:
                self._check_terms(terms, settings, other)
            if any(other["run_id"] == self.run_id for other in others):
                return  # the same run again, in the same terms
            content = json.dumps(self._content(terms, settings, columns), indent=1)
            write_text(session, path, content) if is_connect(session) else Files(session, path).write_new(content)

    def _check_terms(self, terms: dict[str, str], settings: dict[str, str], other: dict[str, Any]) -> None:
        if other.get("record_version") != RECORD_VERSION:
            problem = (
                f"its record {other.get('run_id')} has record_version {other.get('record_version')}, "
                f"and this wordveil reads {RECORD_VERSION}."
            )
            hint = "Use the wordveil version that wrote it."
            raise ConfigError("run record", [Fault("release", self.release, problem, hint)])
        faults = [
            Fault(
                "release",
                self.release,
                f"{explain_change(name, value, str(other[name]), settings, other['settings'])} "
                f"(in its record {other['run_id']}).",
                "A release has one bundle, one text policy and one key. Use those, or choose another release name.",
            )
            for name, value in terms.items()
            if other[name] != value
        ]
        if faults:
            raise ConfigError("run record", faults)

    def _content(self, terms: dict[str, str], settings: dict[str, str], columns: Columns) -> dict[str, Any]:
        return {
            "record_version": RECORD_VERSION,
            "run_id": self.run_id,
            "release": self.release,
            "recorded": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "wordveil": __version__,
            **terms,
            "settings": settings,
            "columns": asdict(columns),
        }


def _read_records(session: SparkSession, directory: str) -> list[str]:
    """Read the records of a release: files, or directories of one file if a session of Spark Connect wrote them."""
    if is_connect(session):
        return read_texts(session, directory, "*.json")
    files = Files(session, f"{directory}/NAME")
    found = [path for names in ("*.json", "*.json/part-*") for path in files.list_matching(names)]
    return [files.read(path) for path in found if files.is_file(path)]
