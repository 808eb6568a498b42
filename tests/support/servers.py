"""Servers that tests start on this machine, each in a process group of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

_PATIENCE = 60


def find_ports(count: int) -> list[int]:
    """Free ports of the loopback interface."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def run_server(command: Sequence[str], port: int, log: Path, **options: Any) -> Iterator[None]:
    """Run a server until the block ends, which begins once the port answers. ``options``: further ones of ``Popen``."""
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True, **options)
    try:
        end = time.monotonic() + _PATIENCE
        while not _answers(port):
            assert process.poll() is None, f"the server has ended: {log.read_text()[-3000:]}"
            assert time.monotonic() < end, f"the server does not answer: {log.read_text()[-3000:]}"
            time.sleep(0.1)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0
