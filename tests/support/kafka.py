"""Kafka on this machine: its own server in a process group of its own, and messages by Spark's writer."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark

from support.repository import load_script
from support.servers import find_ports, run_server
from wordveil.spark.input.topic import ARTIFACT
from wordveil.spark.platform.delta import find_fetched, ivy_home

PARTITIONS = 2
_HOME = ivy_home() / "kafka"
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={home}/logs
num.partitions={partitions}
offsets.topic.replication.factor=1
"""


def missing() -> str | None:
    """What the tests on Kafka lack here."""
    broker = load_script("scripts/delta_jars.py").BROKER
    has_jars = find_fetched([ARTIFACT, broker], str(_HOME))
    return None if has_jars else "Kafka's jars were never fetched: make kafka fetches them"


def find_connector() -> list[Path]:
    """The jars that a session needs; none where they were not fetched."""
    if not find_fetched([ARTIFACT], str(_HOME)):
        return []
    names = ("org.apache.spark_*", "org.apache.kafka_kafka-clients-*", "org.apache.commons_commons-pool2-*")
    return [file for name in names for file in sorted((_HOME / "jars").glob(name))]


@contextmanager
def serve(home: Path) -> Iterator[str]:
    """Run a broker with its storage in ``home``. Yields its address, on the loopback interface."""
    broker, controller = find_ports(2)
    home.mkdir()
    settings = home / "server.properties"
    settings.write_text(_SETTINGS.format(home=home, broker=broker, controller=controller, partitions=PARTITIONS))
    # Ivy leaves out the library of Scala, which Spark has.
    scala = Path(str(pyspark.__file__)).parent / "jars" / "scala-library-*.jar"
    paths = [f"{_HOME}/jars/*", *map(str, scala.parent.glob(scala.name))]
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(paths)]
    format_storage = [*java, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(settings)]
    subprocess.run(format_storage, check=True, capture_output=True, timeout=60)
    with run_server([*java, "kafka.Kafka", str(settings)], broker, home / "out"):
        yield f"127.0.0.1:{broker}"


def send(spark: Any, servers: str, topic: str, messages: Sequence[str | bytes | None]) -> None:
    """Append messages to a topic, which is made where there is none, in turn to each partition."""
    rows = [(one.encode() if isinstance(one, str) else one, number % PARTITIONS) for number, one in enumerate(messages)]
    frame = spark.createDataFrame(rows, "value BINARY, partition INT").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", servers).option("topic", topic).save()
