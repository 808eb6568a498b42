"""Public functions of ``import wordveil``. They take a path or a configuration and return plain results.

Import these names from :mod:`wordveil`, not from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wordveil.artifacts.bundle import Bundle
from wordveil.assembly import bundles as artifacts
from wordveil.config import load
from wordveil.config.arguments import parse_run_id
from wordveil.config.credential_checks import check_location
from wordveil.config.load import Config
from wordveil.config.schema import SparkSection
from wordveil.config.yaml_file import set_key
from wordveil.errors import ConfigError, Fault, WordveilError
from wordveil.input.locations import make_absolute
from wordveil.input.parameters import NO_PARAMS
from wordveil.neighbours.blocks import BuildContext
from wordveil.release.budgets import PURE, Budget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from wordveil.assembly.run_report import RunReport
    from wordveil.spark.plan.plan import Plan
    from wordveil.spark.platform.session import start_session
    from wordveil.spark.sanitise.frames import register, sanitise
    from wordveil.spark.sanitise.run_log import Run

__all__ = [
    "Run",
    "WordveilError",
    "build_bundle",
    "load_config",
    "make_plan",
    "open_bundle",
    "read_ledger",
    "register",
    "run_job",
    "sanitise",
    "start_session",
]
ConfigSource = Config | Mapping[str, Any] | str | Path
"""Configuration, its settings as a mapping, or the path of its file."""
# Functions import Spark's room when they use it: a configuration or a bundle is opened without PySpark.
_OF_SPARK = {
    "Run": "sanitise.run_log",
    "register": "sanitise.frames",
    "sanitise": "sanitise.frames",
    "start_session": "platform.session",
}


def __getattr__(name: str) -> Any:
    if name not in _OF_SPARK:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"wordveil.spark.{_OF_SPARK[name]}"), name)


def load_config(source: ConfigSource, overrides: Sequence[str] = ()) -> Config:
    """Read and check a configuration.

    Parameters
    ----------
    source : str or pathlib.Path or mapping or Config
        The path of a YAML file, its settings as a mapping, or a checked configuration, which takes no overrides.
    overrides : sequence of str, default ()
        Settings to change, as ``key=value`` with a dotted key and a YAML value: ``mechanism.epsilon=15``.

    Returns
    -------
    Config
        The configuration. Its sections are attributes: ``config.input``, ``config.text``, ``config.spark``.

    Raises
    ------
    wordveil.errors.ConfigError
        If the file cannot be read or a setting is wrong; with every fault.

    Examples
    --------
    >>> config = wordveil.load_config("conf/job.yaml", ["mechanism.epsilon=15"])
    """
    if isinstance(source, Config):
        if overrides:
            problem = "a checked configuration takes no overrides. Pass them when you load its file."
            raise ConfigError("arguments", [Fault("overrides", overrides[0].partition("=")[0][:80], problem)])
        return source
    if isinstance(source, Mapping):
        settings = deepcopy(dict(source))
        faults = [fault for override in overrides for fault in set_key(settings, override)]
        return load.parse_config(settings, "configuration", faults)
    return load.load_config(Path(source), overrides)


def build_bundle(config: ConfigSource, *, session: SparkSession | None = None) -> Bundle:
    """Build the configuration's bundle, or return the one that is in its bundle store already.

    A build that was interrupted continues where it stopped.

    Parameters
    ----------
    config : str or pathlib.Path or mapping or Config
        The configuration, or the path of its YAML file.
    session : pyspark.sql.SparkSession, optional
        The session whose executors find neighbours and add up pairs of hypernyms. Left out, this machine does it.

    Returns
    -------
    Bundle
        The verified bundle, with ``path``, ``fingerprint``, ``guarantee``, ``vocabulary`` and ``manifest``.

    Raises
    ------
    wordveil.errors.ConfigError
        If the configuration is wrong; with every fault.
    wordveil.errors.EmbeddingError
        If the embedding cannot be read or must not be used.
    wordveil.errors.PublicFileError
        If another public file is missing, cannot be read or does not fit the embedding.
    wordveil.errors.BundleError
        If the bundle cannot be built.
    wordveil.errors.PlatformError
        If the session or its Python workers cannot be used.
    wordveil.errors.SparkJobError
        If a job of the session failed.

    Examples
    --------
    >>> wordveil.build_bundle("conf/job.yaml").fingerprint
    """
    settings = load_config(config)
    if session is None:
        return artifacts.build_bundle(settings)
    from wordveil.spark.builds.hypernyms import read_on_executors
    from wordveil.spark.builds.neighbours import compute_on_executors
    from wordveil.spark.platform.workers import require_workers

    chosen = _open_session(session, settings.spark, delta=False)

    def start() -> SparkSession:
        require_workers(chosen)
        return chosen

    work = BuildContext(compute=compute_on_executors(start))
    return artifacts.build_bundle(settings, work, read_on_executors(start))


def open_bundle(path: str | Path) -> Bundle:
    """Open a bundle and verify its files against their checksums.

    Parameters
    ----------
    path : str or pathlib.Path
        The bundle's directory, as ``wordveil build`` prints it, or a store with no other bundle. A URI is text.

    Returns
    -------
    Bundle
        The verified bundle, its arrays mapped into memory.

    Raises
    ------
    wordveil.errors.BundleError
        If there is no bundle, or more than one, or it is damaged or of a format that this version does not read.

    Examples
    --------
    >>> wordveil.open_bundle("/lake/bundles/FINGERPRINT").guarantee.epsilon
    """
    return artifacts.open_bundle(path)


def make_plan(
    config: ConfigSource,
    *,
    session: SparkSession | None = None,
    params: Mapping[str, str] = NO_PARAMS,
) -> Plan:
    """Show what a run would release and what a record would cost, before anything is drawn.

    The configuration is checked against the input's schema; no row is read.

    Parameters
    ----------
    config : str or pathlib.Path or mapping or Config
        The configuration, or the path of its YAML file.
    session : pyspark.sql.SparkSession, optional
        The session to use as it is. Left out, the active session with wordveil's options set on it, or a new one.
    params : mapping of str to str, default {}
        The values of the parameters of ``input.where``.

    Returns
    -------
    Plan
        The plan: ``epsilon_bound``, ``epsilon_pure`` and ``delta`` of a record of ``tokens`` tokens, ``exposes``, and
        ``bundle_problem``. Prices are None while there is no bundle.

    Raises
    ------
    wordveil.errors.ConfigError
        If the configuration is wrong or does not fit the input; with every fault.
    wordveil.errors.InputError
        If the input cannot be read.
    wordveil.errors.PlatformError
        If the session cannot be used.

    Examples
    --------
    >>> wordveil.make_plan("conf/job.yaml").epsilon_bound
    """
    from wordveil.spark.plan import plan

    settings = load_config(config)
    start = partial(_open_session, session, settings.spark, delta=settings.needs_delta)
    return plan.make_plan(settings, start, params=params)


def run_job(
    config: ConfigSource,
    *,
    session: SparkSession | None = None,
    params: Mapping[str, str] = NO_PARAMS,
    run_id: str | None = None,
    overwrite: bool = False,
    full_snapshot: bool = False,
) -> RunReport:
    """Run the configured job, as ``wordveil sanitise`` does.

    With ``output.format: parquet`` the table of the whole corpus is written atomically. With ``output.format: delta``
    the release is updated incrementally and the ledger charged.

    Parameters
    ----------
    config : str or pathlib.Path or mapping or Config
        The configuration, or the path of its YAML file.
    session : pyspark.sql.SparkSession, optional
        The session to use as it is. Left out, the active session with wordveil's options set on it, or a new one.
    params : mapping of str to str, default {}
        The values of the parameters of ``input.where``.
    run_id : str, optional
        The name of the run. Left out, the time and eight random digits. A finished run of a release is reported and not
        repeated.
    overwrite : bool, default False
        Replace an existing output; only for ``output.format: parquet``.
    full_snapshot : bool, default False
        The input is the whole corpus, so that records not in it leave the release; only for a release.

    Returns
    -------
    RunReport
        Counts of released and quarantined records, the range of their prices, and fingerprints.

    Raises
    ------
    wordveil.errors.WordveilError
        If anything is wrong; subclasses name the fault. The output is then unchanged; a release's run can be finished.

    Examples
    --------
    >>> wordveil.run_job("conf/job.yaml").released
    """
    from wordveil.spark.platform.workers import require_workers
    from wordveil.spark.release.run import run_release
    from wordveil.spark.sanitise.job import run_sanitise

    settings = load_config(config)
    is_release = settings.output.format == "delta"
    if run_id is not None:
        parse_run_id(run_id)
    if overwrite and is_release:
        problem = "a release (output.format: delta) is never overwritten, because its draws are charged. Leave it out."
        raise ConfigError("arguments", [Fault("overwrite", "True", problem)])
    if full_snapshot and not is_release:
        problem = "is only for a release (output.format: delta): a Parquet output has the whole input. Leave it out."
        raise ConfigError("arguments", [Fault("full_snapshot", "True", problem)])

    def start() -> SparkSession:
        chosen = _open_session(session, settings.spark, delta=settings.needs_delta)
        require_workers(chosen)
        return chosen

    if is_release:
        return run_release(settings, start, params=params, run_id=run_id, full_snapshot=full_snapshot)
    return run_sanitise(settings, start, params=params, run_id=run_id, overwrite=overwrite)


def read_ledger(
    config: ConfigSource | None = None,
    *,
    path: str | None = None,
    by: Literal["release", "record", "author", "context"] = "release",
    release: str | None = None,
    author: str | None = None,
    record: str | None = None,
    session: SparkSession | None = None,
) -> DataFrame:
    """Read what is spent, reserved and left, as ``wordveil ledger`` does. Confidential: reveals who has records.

    Parameters
    ----------
    config : str or pathlib.Path or mapping or Config, optional
        The configuration of a release, whose ``budgets`` decide the unit of costs and what is left. Name exactly one of
        ``config`` and ``path``.
    path : str, optional
        A ledger's directory. Costs are then pure epsilons under the widest relation for which all are finite, and no
        limit applies.
    by : {"release", "record", "author", "context"}, default "release"
        The sum in a row; under ``context`` there is one row for each context that is charged or reserved.
    release : str, optional
        Read only the entries of this release.
    author : str, optional
        Read only the entries of this author.
    record : str, optional
        Read only the entries of this record id.
    session : pyspark.sql.SparkSession, optional
        The session to use as it is, with Delta. Left out, the active one with wordveil's options set, or a new one.

    Returns
    -------
    pyspark.sql.DataFrame
        One row for each release, record or author: its key, ``contexts``, ``tokens``, ``spent``, ``reserved``,
        ``delta`` and ``left``; for a release also ``corpus``, the most that one author has used. By context: the key,
        ``tokens``, ``epsilon``, ``cost``, ``delta``, ``metric``, ``relation`` and ``state``. A cost that is unbounded
        for the budget's relation is infinite. ``left`` is null if no limit applies.

    Raises
    ------
    wordveil.errors.ConfigError
        If arguments or the configuration are wrong; with every fault.
    wordveil.errors.ReleaseError
        If there is no ledger, or this version does not read it.
    wordveil.errors.PlatformError
        If the session cannot be used.
    wordveil.errors.SparkJobError
        If a job of the session failed.

    Examples
    --------
    >>> wordveil.read_ledger("conf/release.yaml", by="author").show()
    """
    from wordveil.spark.platform.errors import job_errors
    from wordveil.spark.release import ledger_report

    settings = _check_ledger(config, path, by, ledger_report.KEYS)
    named = settings.ledger.path if settings and settings.ledger else None
    location = named or make_absolute(check_location("path", path or "", "arguments"))
    selection = ledger_report.Selection(release, author, record)
    spark = _open_session(session, settings.spark if settings else SparkSection(), delta=True)
    with job_errors("nothing was changed"):
        entries = ledger_report.read_ledger(spark, location, selection)
        budget = settings.ledger_budget if settings else Budget(PURE, ledger_report.relation_of(entries))
        if by == "context":
            return ledger_report.list_contexts(entries, budget)
        return ledger_report.sum_costs(
            entries, by, budget, release=settings.release if settings else None, limited=not selection.cuts(by)
        )


def _check_ledger(config: ConfigSource | None, path: str | None, by: str, keys: Iterable[str]) -> Config | None:
    allowed = (*keys, "context")
    faults = []
    if (config is None) == (path is None):
        faults.append(Fault("config", "", "name exactly one of config and path."))
    if by not in allowed:
        faults.append(Fault("by", str(by)[:80], f"allowed: {', '.join(allowed)}."))
    if faults:
        raise ConfigError("arguments", faults)
    settings = None if config is None else load_config(config)
    if settings is not None and settings.ledger is None:
        problem = "the configuration names no ledger. Set output.format: delta and ledger.path, or name one by path."
        raise ConfigError("arguments", [Fault("ledger", "", problem)])
    return settings


def _open_session(session: SparkSession | None, section: SparkSection, *, delta: bool) -> SparkSession:
    """Check the given session, which is used as it is; without one, take or start that of the configuration."""
    from wordveil.spark.platform.delta import require_delta
    from wordveil.spark.platform.session import build_session, check_session

    if session is None:
        return build_session(section, delta=delta)
    check_session(session, allow_unencrypted=section.allow_unencrypted)
    if delta:
        require_delta(session)
    return session
