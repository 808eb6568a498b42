"""Places where no table may be created: inside a release that is there already, or inside a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from wordveil.config.schema import LedgerSection, OutputSection
from wordveil.errors import ConfigError, Fault
from wordveil.spark.platform.delta import DELTA_LOG
from wordveil.spark.platform.filesystem import Files

DRAWS, JOURNAL = "draws", "journal"
"""The directories of a release's tables, by which its own directory is recognised."""


def require_free_places(spark: SparkSession | None, output: OutputSection, ledger: LedgerSection | None) -> None:
    """Raise :class:`ConfigError` where a table would be created inside a release or a Delta table: their clean-up and
    their removal would take it along. Tables of the configuration that exist already stay where they are.

    Without a session only places on this machine's disk are looked at.
    """
    faults = [
        Fault(setting, place, f"is {owner}, or inside it.", "Choose another place.")
        for setting, place in _list_new_tables(spark, output, ledger)
        if (owner := _find_owner(spark, place))
    ]
    if faults:
        raise ConfigError("configuration", faults)


def _list_new_tables(
    spark: SparkSession | None, output: OutputSection, ledger: LedgerSection | None
) -> Iterator[tuple[str, str]]:
    """The settings whose tables a run would create, with their places."""
    if output.format != "delta":
        yield "output.path", output.path
        return
    tables = (
        ("output.path", output.path, f"{DRAWS}/{DELTA_LOG}"),
        ("output.public", output.public, DELTA_LOG),
        ("ledger.path", ledger and ledger.path, DELTA_LOG),
    )
    for setting, place, sign in tables:
        if place and not _exists(spark, f"{place.rstrip('/')}/{sign}"):
            yield setting, place


def _find_owner(spark: SparkSession | None, place: str) -> str:
    """What has ``place``: the release or the Delta table that is there or above; empty where there is none."""
    with suppress(Py4JError):  # a file system that cannot be reached; opening the table says how
        for here in _list_ancestors(spark, place):
            shown = here.removeprefix("file:")
            if all(_exists(spark, f"{here}/{name}/{DELTA_LOG}") for name in (JOURNAL, DRAWS)):
                return f"the directory of a release, {shown}"
            if _exists(spark, f"{here}/{DELTA_LOG}"):
                return f"the Delta table {shown}"
    return ""


def _list_ancestors(spark: SparkSession | None, place: str) -> Iterator[str]:
    """``place`` and the directories above it, without a slash at the end."""
    if spark is None:
        local = Path(place.removeprefix("file:"))
        yield from (str(path).rstrip("/") for path in (local, *local.parents))
        return
    at: Any = Files(spark, place).path
    while at is not None:
        yield str(at).rstrip("/")
        at = at.getParent()


def _exists(spark: SparkSession | None, place: str) -> bool:
    """Whether there is something; not where it cannot be looked for."""
    if spark is None:
        local = Path(place.removeprefix("file:"))
        return local.is_absolute() and local.exists()
    try:
        return Files(spark, place).exists()
    except Py4JError:
        return False
