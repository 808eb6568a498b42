"""A topic of Kafka as a stream of rows, by Spark's own connector."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType, StructField, StructType

from wordveil.config.schema import StreamSection
from wordveil.errors import PlatformError
from wordveil.input.formats import CORRUPT_COLUMN
from wordveil.records.schema import MALFORMED_COLUMN
from wordveil.spark.input.reading import check_environment, parse_columns
from wordveil.spark.platform.columns import column
from wordveil.spark.platform.errors import input_errors
from wordveil.spark.platform.jvm import java_class
from wordveil.spark.platform.versions import SCALA, VERSION

ARTIFACT = f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{VERSION[0]}.{VERSION[1]}.1"
"""The Maven coordinates of the connector for this Spark, whose last number need not be Spark's own."""
MESSAGE_COLUMN = "__message"
"""Topic, partition and offset: no two rows are alike, so that each malformed message counts."""
_PROVIDER = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def read_topic(spark: SparkSession, stream: StreamSection) -> DataFrame:
    """Stream the messages of ``stream.topic`` from the earliest one on.

    Raises :class:`PlatformError` without the connector, :class:`ConfigError` for columns that Spark cannot read and
    missing environment variables, and :class:`InputError` for options that the connector refuses.
    """
    assert stream.topic is not None
    assert stream.columns is not None
    columns = parse_columns(spark, "stream", stream.columns)
    check_environment("stream", stream.options_env)
    if not java_class(spark, "org.apache.spark.util.Utils").classIsLoadable(_PROVIDER):
        raise PlatformError(
            f"stream.topic = {stream.topic}: the Spark session has no connector to Kafka. Add {ARTIFACT} to "
            "spark.jars.packages in spark.options, or give it to spark-submit by --packages."
        )
    options = {
        "kafka.isolation.level": "read_committed",  # what a producer took back is no record
        **stream.options,
        **{name: os.environ[variable] for name, variable in stream.options_env.items()},
        "kafka.bootstrap.servers": str(stream.servers),
        "subscribe": stream.topic,
        # Spark's own default leaves out what was there before the first start.
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        **({"maxOffsetsPerTrigger": str(stream.max_rows)} if stream.max_rows else {}),
    }
    with input_errors("stream.topic", stream.topic, "topic of Kafka"):
        return parse_messages(spark.readStream.format("kafka").options(**options).load(), columns)


def parse_messages(messages: DataFrame, columns: StructType) -> DataFrame:
    """The fields of messages that are JSON objects, with ``__malformed`` and ``__message``. Of a malformed one nothing
    is left.
    """
    # Inside another object: Spark would not see what follows the first value of a message.
    wrapped = F.concat(F.lit('{"message":'), F.col("value").cast("string"), F.lit("}"))
    schema = StructType([StructField("message", columns), StructField(CORRUPT_COLUMN, StringType())])
    parsed = F.from_json(wrapped, schema, {"columnNameOfCorruptRecord": CORRUPT_COLUMN})
    place = F.concat_ws("/", "topic", "partition", "offset")
    frame = messages.select(parsed.alias("__parsed"), place.alias(MESSAGE_COLUMN))
    is_sound = F.col(f"__parsed.{CORRUPT_COLUMN}").isNull() & F.col("__parsed.message").isNotNull()
    fields = F.when(is_sound, F.col("__parsed.message"))
    rows = frame.select(fields.alias("__fields"), (~is_sound).alias(MALFORMED_COLUMN), MESSAGE_COLUMN)
    return rows.select("__fields.*", *map(column, (MALFORMED_COLUMN, MESSAGE_COLUMN)))


def is_cut_off(query: StreamingQuery) -> bool:
    """Whether the connector ended a query after a batch that was begun before it. Spark has committed such a batch, and
    then the connectors of Spark 4.1 fail to count what is left to read (SPARK-55271): another query goes on.
    """
    error = query._jsq.exception()  # noqa: SLF001 - PySpark has no way to ask
    cause = error.get().getCause() if error.isDefined() else None
    frames = cause.getStackTrace() if cause is not None else []
    return len(frames) > 0 and "KafkaMicroBatchStream$.metrics" in str(frames[0])
