"""Sessions of Spark Connect: replacements for what such a session lacks."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from wordveil.errors import PlatformError
from wordveil.spark.platform.filesystem import quote_glob
from wordveil.spark.platform.versions import VERSION

SERVED_ALONE = (
    "Spark Connect sessions serve wordveil.sanitise and wordveil.register alone. Run jobs and releases in a classic "
    "session, in a process without SPARK_REMOTE: `wordveil sanitise`, `wordveil release night`, or spark-submit."
)
_SPARK = (4, 1)
_ANALYSED, _OPTIMISED = "== Analyzed Logical Plan ==\n", "\n== Optimized Logical Plan ==\n"
_CUT = re.compile(r"(\.\.\. \d+ more characters|Truncated plan of \d+ characters)\s*\Z")
_archives: defaultdict[str, set[str]] = defaultdict(set)


def is_connect(session: SparkSession) -> bool:
    """Return whether a session has no Java of its own."""
    return not hasattr(session, "_jsparkSession")


def check_server(session: SparkSession, *, allow_unencrypted: bool) -> None:
    """Raise :class:`PlatformError` unless client and server are of Spark 4.1 and the connection is safe.

    PySpark's functions must be those of Spark Connect, and the connection must be encrypted or stay on this machine,
    unless ``allow_unencrypted`` is set.
    """
    if VERSION != _SPARK or not session.version.startswith(".".join(map(str, _SPARK))):
        raise PlatformError(
            f"Spark Connect needs Spark 4.1 on both sides. Here is PySpark {pyspark.__version__}, and the server runs "
            f"Spark {session.version}. Use a classic session, or Spark 4.1."
        )
    if not is_remote():
        raise PlatformError(
            "the Spark Connect session was built beside classic PySpark, whose functions make no columns for it. Build "
            "it with pyspark.sql.SparkSession.builder.remote(...)."
        )
    builder = _find_builder(session)
    is_encrypted = builder is not None and bool(builder.secure)
    if not (allow_unencrypted or is_beside(session) or is_encrypted):
        raise PlatformError(
            "the connection to the Spark Connect server may be unencrypted, and a release's subkeys cross it. Connect "
            "to sc://HOST:PORT/;use_ssl=true, where the server, or a proxy before it, has TLS. To allow it, pass "
            "allow_unencrypted=True."
        )


def is_beside(session: SparkSession) -> bool:
    """Return whether the server is on this machine. A caller's own channel may lead anywhere."""
    if (builder := _find_builder(session)) is None:
        return False
    try:
        return builder.host == "localhost" or ip_address(builder.host.strip("[]")).is_loopback
    except ValueError:  # a name
        return False


def _find_builder(session: Any) -> Any:
    """Find PySpark's own builder of the channel, which has its settings; None for any other."""
    from pyspark.sql.connect.client import DefaultChannelBuilder

    builder = session.client._builder  # noqa: SLF001 - PySpark has no way to ask
    return builder if type(builder) is DefaultChannelBuilder else None


def ask_worker(session: SparkSession, question: Callable[[Iterable[str]], Any], given: Iterable[str]) -> Any:
    """Return a worker's answer as JSON values. Both functions travel as code: the worker need not have this module."""

    def answer(batches: Iterator[Any]) -> Iterator[Any]:
        import json

        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"answer": [json.dumps(question(given))]})

    asked: Any = session.range(0, 1, 1, 1)
    (row,) = asked.mapInArrow(answer, "answer string").collect()
    return json.loads(row["answer"])


def list_archives(session: Any) -> set[str]:
    """List the names of the archives that this process has sent to the session."""
    return _archives[session.session_id]


def send_archive(session: Any, path: Path) -> None:
    """Send an archive to the executors. The server refuses another one of the same name."""
    session.addArtifacts(str(path), archive=True)
    list_archives(session).add(path.name)


def list_plan_lines(frame: Any) -> list[str] | None:
    """List the lines of the analysed plan, or more, which may quote records. Return None if the plan's text is cut.

    A literal can have line breaks, and headings in it. The whole plan is between the first heading and the last.
    """
    text = str(frame._explain_string(extended=True))  # noqa: SLF001 - explain() prints it
    start, end = text.find(_ANALYSED), text.rfind(_OPTIMISED)
    if start < 0 or end < start or _CUT.search(text):
        return None
    return text[start + len(_ANALYSED) : end].split("\n")[1:]  # the first line has the names of columns


def read_texts(session: SparkSession, directory: str, name: str) -> list[str]:
    """Read the text of each file, or directory of one file, in ``directory`` whose name matches the glob ``name``."""
    paths = f"{quote_glob(directory)}/{name}"
    try:
        return [row["value"] for row in session.read.text(paths, wholetext=True).collect()]
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return []


def write_text(session: SparkSession, path: str, text: str) -> None:
    """Write a text as a directory of one file; fails if the path exists."""
    session.createDataFrame([(text,)], "value string").coalesce(1).write.mode("error").text(path)
