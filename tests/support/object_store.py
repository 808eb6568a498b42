"""S3 on this machine: a server in a process of its own, and sessions that know where it is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from support.repository import ROOT
from wordveil.spark.platform.session import fetched_s3_jars

HOME = ROOT / ".venv-s3"
BUCKETS = ("lake", "ignores-conditions")


def missing() -> str | None:
    if not (HOME / ".installed").exists():
        return "there is no S3 server: make s3 installs one"
    return None if fetched_s3_jars() else "S3A's jars were never fetched: make s3 fetches them"


@contextmanager
def serve() -> Iterator[str]:
    """Run the server, with two empty buckets. Yields its address, on the loopback interface."""
    command = [str(HOME / "bin" / "python"), str(Path(__file__).with_name("s3_server.py"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
            for bucket in BUCKETS:
                urlopen(Request(f"{endpoint}/{bucket}", method="PUT"), timeout=30).close()  # noqa: S310 - loopback
            yield endpoint
        finally:
            process.kill()


def options(endpoint: str) -> dict[str, str]:
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "fs.s3a.access.key": "any",
        "fs.s3a.secret.key": "any",
        # A store that is gone is an error of the test, and no reason to wait.
        "fs.s3a.attempts.maximum": "2",
        "fs.s3a.retry.limit": "2",
    }


def session_options(endpoint: str) -> dict[str, str]:
    """Spark's options for the server, without the credentials: those are in :func:`environment`."""
    hidden = ("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.aws.credentials.provider")
    return {f"spark.hadoop.{name}": value for name, value in options(endpoint).items() if name not in hidden}


def environment(endpoint: str) -> dict[str, str]:
    """The variables by which readers without Spark find the server."""
    given = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    return {**given, "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}


def connect(spark: Any, endpoint: str) -> None:
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in options(endpoint).items():
        conf.set(name, value)


def append(spark: Any, path: str, writer: str, count: int) -> None:
    """Append one row to a Delta table, in each of ``count`` commits."""
    for number in range(count):
        frame = spark.range(number, number + 1, 1, 1).selectExpr(f"'{writer}' AS writer", "id")
        frame.write.format("delta").mode("append").option("userMetadata", writer).save(path)
