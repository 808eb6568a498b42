"""A server of Spark Connect on this machine, in a process of its own, and TLS before it."""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyspark
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from support.processes import find_ports, run_server
from support.workspaces import clean_environment
from wordveil.spark.platform.jvm import java_class

HOST = "wordveil.localhost"
"""A name of this machine for gRPC, and none that says so, as an address does."""


@contextmanager
def serve(home: Path, options: Mapping[str, str]) -> Iterator[int]:
    """Run the server, with two cores, until the block ends. Yields its port. ``home``: where its files are."""
    (port,) = find_ports(1)
    chosen = {
        **options,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(home / "scratch"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.ui.enabled": "false",
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    command += [part for name, value in chosen.items() for part in ("--conf", f"{name}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = {**clean_environment(), "PYSPARK_PYTHON": sys.executable}
    with run_server(command, port, home / "server.log", cwd=home, env=environment):
        yield port


@contextmanager
def serve_within(spark: Any) -> Iterator[int]:
    """Let the Java process of a classic session serve until the block ends. Yields its port."""
    (port,) = find_ports(1)
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.connect.grpc.binding.address", "127.0.0.1")
    conf.set("spark.connect.grpc.binding.port", str(port))
    service = java_class(spark, "org.apache.spark.sql.connect.service.SparkConnectService")
    service.start(spark.sparkContext._jsc.sc())
    try:
        yield port
    finally:
        nothing = java_class(spark, "scala.Option").empty()
        service.stop(nothing, nothing)


@contextmanager
def encrypt(port: int, certificate: Path) -> Iterator[int]:
    """Put TLS before a port and yield the proxy's port; ``certificate``: the file to write that clients must trust."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_write_certificate(certificate))
    context.set_alpn_protocols(["h2"])
    loop = asyncio.new_event_loop()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while sent := await reader.read(2**16):
                writer.write(sent)
                await writer.drain()
        writer.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, inner_writer), pump(inner_reader, writer))

    proxy = loop.run_until_complete(asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield proxy.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


def _write_certificate(path: Path) -> tuple[Path, Path]:
    """A certificate that signs itself, and the file of its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    built = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now - timedelta(hours=1), now + timedelta(days=1)
    ).add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=True)
    path.write_bytes(built.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    secret = path.with_suffix(".key")
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return path, secret
