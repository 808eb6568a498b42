"""Java's classes, where PySpark has no Python for what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    """Return the class of a full name, such as ``org.apache.hadoop.fs.Path``; ``$`` precedes the name of a nested
    class.

    By attributes (``jvm.org.apache``) Py4J would ask Java for a class of each package's name, and Java would search
    every jar for it.
    """
    return getattr(gateway(spark).jvm, name)


def java_array(spark: SparkSession, kind: Any, *items: Any) -> Any:
    """Return a Java array of the class ``kind``."""
    array = gateway(spark).new_array(kind, len(items))
    for place, item in enumerate(items):
        array[place] = item
    return array


def gateway(spark: SparkSession) -> Any:
    """Return the session's Py4J gateway."""
    line = spark.sparkContext._gateway  # noqa: SLF001 - the only way to Java
    assert line is not None
    return line
