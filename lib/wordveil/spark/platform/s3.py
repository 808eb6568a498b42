"""S3A in a Spark session: Hadoop's file system for S3, and the modules of Amazon's SDK that it uses.

Hadoop names the SDK as one bundle of 641 MB. These modules are 13 MB, and Spark itself has their other dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from wordveil.errors import PlatformError
from wordveil.spark.platform.delta import find_fetched
from wordveil.spark.platform.versions import VERSION

_SDK = "software.amazon.awssdk"
_SDK_VERSION = "2.29.52"
# Ivy is asked for these, ...
_ASKED = (
    "org.apache.hadoop:hadoop-aws:3.4.2",
    *(f"{_SDK}:{name}:{_SDK_VERSION}" for name in ("s3", "s3-transfer-manager", "sts")),
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.2.1",
    "org.wildfly.openssl:wildfly-openssl:2.1.4.Final",
)
# ... which need these modules of the SDK, ...
_MODULES = (
    *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol"),
    *("checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth", "http-auth-aws"),
    *("http-auth-aws-eventstream", "http-auth-spi", "http-client-spi", "identity-spi", "json-utils"),
    *("metrics-spi", "netty-nio-client", "profiles", "protocol-core", "regions", "retries", "retries-spi"),
    *("sdk-core", "third-party-jackson-core", "utils"),
)
JARS = (
    *_ASKED,
    *(f"{_SDK}:{name}:{_SDK_VERSION}" for name in _MODULES),
    "software.amazon.eventstream:eventstream:1.0.1",
    "org.reactivestreams:reactive-streams:1.0.4",
)
# ... and neither the bundle nor modules that Spark has in other versions.
_EXCLUDED = (
    f"{_SDK}:bundle",
    *("org.slf4j:slf4j-api", "commons-logging:commons-logging", "commons-codec:commons-codec"),
    *("org.apache.httpcomponents:httpclient", "org.apache.httpcomponents:httpcore", "io.netty:*"),
)


def s3_options(given: Mapping[str, str], *, submitted: bool) -> dict[str, str]:
    """Return the options that bring S3A to a new session, in addition to those ``given``.

    They name jars that Ivy has fetched, or will fetch. None if spark-submit started its Java process, which takes no
    more jars.

    Raises :class:`PlatformError` before Spark 4.1, which has an older Hadoop.
    """
    if submitted:
        return {}
    if VERSION < (4, 1):
        raise PlatformError(
            "spark.s3 = true: it brings hadoop-aws 3.4.2, which needs Spark 4.1 or newer. Name the jars of hadoop-aws "
            "that fit this Spark in spark.jars, or give them to spark-submit by --packages."
        )
    if files := fetched_s3_jars(given.get("spark.jars.ivy")):
        return {"spark.jars": _join(given.get("spark.jars"), *map(str, files))}
    return {
        "spark.jars.packages": _join(given.get("spark.jars.packages"), *_ASKED),
        "spark.jars.excludes": _join(given.get("spark.jars.excludes"), *_EXCLUDED),
    }


def fetched_s3_jars(ivy: str | None = None) -> list[Path]:
    """Find the jars, as :func:`find_fetched` does; none before Spark 4.1."""
    return find_fetched(JARS, ivy) if VERSION >= (4, 1) else []


def _join(*parts: str | None) -> str:
    return ",".join(part for part in parts if part)
