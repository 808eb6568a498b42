"""The command ``wordveil verify``, also ``wordveil release verify``: the only one for readers of a table."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from typer import Option

from wordveil.cli.options import JarsOption, absolute_path, prepare_plain_session
from wordveil.cli.output import show_status
from wordveil.cli.release_tables import verified_facts
from wordveil.cli.scaffold import Call, Result, command
from wordveil.cli.tables import left_out_facts, recovery_facts
from wordveil.errors import PlatformError

if TYPE_CHECKING:
    from wordveil.release.verify import Verified

_UNPINNED = (
    "no public key was pinned, so this check finds damage but not forgery: the manifest was checked with the key "
    "that it contains. Pin the release's key with --public-key; its owner prints it with `wordveil key fingerprint "
    "--release NAME`."
)
_SPARK = "pip install 'wordveil[spark]'"


@command(report=True)
def verify(
    _: Call,
    table: Annotated[str, Option("--table", metavar="PATH", callback=absolute_path, help="The published table.")],
    manifest: Annotated[
        str | None,
        Option(
            "--manifest",
            metavar="FILE",
            callback=absolute_path,
            help="The table's manifest; by default the one inside the table.",
        ),
    ] = None,
    public_key: Annotated[
        str | None,
        Option("--public-key", metavar="HEX", help="The release's public key, from a source other than the table."),
    ] = None,
    at_least: Annotated[
        int,
        Option(
            "--at-least",
            min=0,
            metavar="N",
            help="The smallest number of the publication: the last one that you have seen. Without it, an older "
            "publication that somebody has put back passes.",
        ),
    ] = 0,
    table_epsilon: Annotated[
        float | None,
        Option(
            "--max-epsilon-table",
            min=0,
            metavar="E",
            help="The largest epsilon that the rows of a shuffled table may have for one record.",
        ),
    ] = None,
    jars: JarsOption = None,
    *,
    on_spark: Annotated[
        bool,
        Option(
            "--on-spark",
            rich_help_panel="Spark",
            help="Read the table with Spark. Otherwise deltalake reads it where it can.",
        ),
    ] = False,
) -> Result:
    """Check that readers of a published table see what its owner signed.

    Needs neither a key nor a configuration.

    Example: `wordveil verify --table published/reviews --public-key 6f1c... --at-least 12`
    """
    with show_status() as progress:
        checks = (manifest, public_key, at_least, table_epsilon)
        verified, reader = _verify(table, checks, jars, progress, on_spark=on_spark)
    facts = verified_facts(verified, pinned=public_key is not None)
    shown = {name: value for name, value in facts.items() if name not in ("pinned", "recovery", "refused")}
    shown |= left_out_facts(verified.manifest.refused)
    shown |= recovery_facts(verified.manifest.recovery) if verified.manifest.recovery else {}
    return Result.of(
        "Verified",
        {"verified": True, "table": table, **facts, "reader": reader},
        {"table": table, **shown, "reader": reader},
        [] if public_key else [_UNPINNED],
    )


def _verify(
    table: str,
    checks: tuple[str | None, str | None, int, float | None],
    jars: str | None,
    progress: Callable[[str], None],
    *,
    on_spark: bool,
) -> tuple[Verified, str]:
    """Verify a table by the ``checks`` of :func:`verify_table`, and return the manifest with the reader's name.

    deltalake reads it, unless Spark has to: because of an option, the settings of a cluster, the scheme of its path, or
    its content. Raises :class:`PlatformError` if the reader's package is not installed.
    """
    from wordveil.assembly.local_paths import is_spark_configured
    from wordveil.release.lake_table import INSTALL, LakeTable, UnusualTableError, find_obstacle, is_installed
    from wordveil.release.verify import verify_table

    has_spark = find_spec("pyspark") is not None
    if on_spark or jars or (has_spark and is_spark_configured()):
        reason = "you asked for Spark."
    elif not is_installed():
        reason = f"deltalake is not installed. Install it with: {INSTALL}. Spark reads the table, too."
    elif not (reason := find_obstacle(table) or find_obstacle(checks[0] or "")):
        progress("hashing files")
        try:
            return verify_table(LakeTable(table), *checks), "deltalake"
        except UnusualTableError as error:
            reason = f"deltalake does not show all that readers of this table see ({error})."
    if not has_spark:
        raise PlatformError(f"table {table}: {reason} Install Spark with: {_SPARK}")
    from wordveil.spark.release.verify import verify_by_spark

    progress("starting Spark")
    spark = prepare_plain_session(jars)()
    progress("hashing files")
    return verify_by_spark(spark, table, *checks), "spark"
