"""Options that commands share, and Spark sessions that start when they are needed."""

from __future__ import annotations

import atexit
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

from typer import Option

from wordveil.errors import ConfigError, Fault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wordveil.config.load import Config
    from wordveil.config.schema import SparkSection

ConfigOption = Annotated[Path, Option("--config", "-c", help="The YAML configuration file.")]
SetOption = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Override one setting, e.g. mechanism.epsilon=15. Repeatable."),
]
ParamOption = Annotated[
    list[str] | None,
    Option("--param", metavar="NAME=VALUE", help="The value of :NAME in input.where, a string. Repeatable."),
]
SnapshotOption = Annotated[
    bool,
    Option(
        "--full-snapshot", help="The input is the whole corpus: withdraw records of the release that it does not have."
    ),
]
SkipOption = Annotated[
    bool, Option("--skip-empty", help="Do nothing if the input, or the slice that input.where selects, has no record.")
]
JsonOption = Annotated[
    bool, Option("--json", rich_help_panel="Output", help="Print the result as JSON on standard output.")
]
DebugOption = Annotated[
    bool,
    Option(
        "--debug",
        rich_help_panel="Output",
        help="Print log messages of wordveil on standard error, without values of records: `wordveil docs debugging`.",
    ),
]
JarsOption = Annotated[
    str | None,
    Option(
        "--delta-jars",
        metavar="DIR",
        rich_help_panel="Spark",
        help="A directory with Delta's jars, for machines that cannot download them.",
    ),
]


def absolute_path(path: str | None) -> str | None:
    """Resolve a relative path from the working directory; a callback of options whose path Spark reads."""
    from wordveil.input.locations import make_absolute

    return None if path is None else make_absolute(path)


def _check_run_id(run_id: str | None) -> str | None:
    if run_id is None:
        return None
    from wordveil.config.arguments import parse_run_id

    return parse_run_id(run_id, "command line", "--run-id")


RunOption = Annotated[
    str | None,
    Option("--run-id", callback=_check_run_id, help="The name of this run in the output; generated if left out."),
]


def terminate(number: int, _: FrameType | None) -> None:
    """Exit through the ``finally`` blocks, so that an unfinished output is removed."""
    sys.exit(128 + number)


def read_config(source: Path, overrides: Sequence[str] | None) -> Config:
    """Read the configuration of a file with its overrides. Raises :class:`ConfigError`."""
    from wordveil.config.load import load_config

    return load_config(source, overrides or ())


def read_release_config(source: Path, overrides: Sequence[str] | None) -> Config:
    """Read the configuration of a release. Raises :class:`ConfigError` for that of a Parquet output, too."""
    config = read_config(source, overrides)
    if config.output.format != "delta":
        problem = "this command needs a release, and a Parquet output is not a release. Set output.format: delta."
        raise ConfigError(str(source), [Fault("output.format", config.output.format, problem)])
    return config


def prepare_session(config: Config, *, is_short: bool | None = None) -> Callable[[], SparkSession]:
    """Return a function that starts the session of a configuration.

    ``is_short``: the command has few rows to work on; None: it has if the configuration's tables are small.
    """
    from wordveil.assembly.local_paths import is_small

    is_few = (lambda: is_small(config)) if is_short is None else lambda: is_short
    return _prepare(config.spark, delta=config.needs_delta, is_short=is_few)


def prepare_plain_session(
    jars: str | None = None, *, delta: bool = True, is_short: bool = False
) -> Callable[[], SparkSession]:
    """Return a function that starts a session with default settings; with Delta, from ``jars`` if given."""
    from wordveil.config.schema import SparkSection

    return _prepare(SparkSection(delta_jars=jars), delta=delta, is_short=lambda: is_short)


def _prepare(section: SparkSection, *, delta: bool, is_short: Callable[[], bool]) -> Callable[[], SparkSession]:
    from wordveil.spark.platform.session import build_session

    def start() -> SparkSession:
        # Spark makes this directory for tables of its own. Commands write no such tables.
        if not (unused := Path("spark-warehouse").absolute()).exists():
            atexit.register(_remove_empty, unused)
        session = build_session(section, delta=delta, is_short=is_short())
        # PySpark's own handler calls into the JVM from inside a call and breaks it.
        signal.signal(signal.SIGINT, terminate)
        return session

    return start


def _remove_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()
