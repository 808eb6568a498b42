"""How scripts/airflow_demo.py waits for DAG runs: it repeats calls that the server could not answer."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any
from urllib.error import HTTPError

import pytest

from support.repository import load_script

NIGHT, NEXT = "scheduled__2026-11-21", "asset_triggered__2"
DAYS = [date(2026, 11, 20)]


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    """The script as a module."""
    return load_script("scripts/airflow_demo.py")


class Server(ThreadingHTTPServer):
    """An API that answers what ``answer`` returns for a path and the number of its call: a status and a value."""

    def __init__(self, answer: Callable[[str, int], tuple[int, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.calls: Counter[str] = Counter()

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        self.server.calls[path] += 1
        status, value = self.server.answer(path, self.server.calls[path])
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Start servers; they end with the test."""
    servers: list[Server] = []

    def start(answer: Callable[[str, int], tuple[int, Any]]) -> Server:
        server = Server(answer)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_call_is_repeated_while_the_server_fails(demo, serve):
    server = serve(lambda _, call: (500 if call < 3 else 200, {"dag_runs": [{"state": "success"}]}))
    assert demo.Api(server.base, (0.01, 0.01)).runs("a") == [{"state": "success"}]
    assert set(server.calls.values()) == {3}


def test_a_server_that_keeps_failing_is_given_up(demo, serve):
    server = serve(lambda *_: (503, {}))
    with pytest.raises(HTTPError, match="503"):
        demo.Api(server.base, (0.01, 0.01)).runs("a")
    assert set(server.calls.values()) == {3}


def test_a_call_that_the_server_refuses_is_not_repeated(demo, serve):
    server = serve(lambda *_: (404, {}))
    with pytest.raises(HTTPError, match="404"):
        demo.Api(server.base, (0.01, 0.01)).runs("a")
    assert set(server.calls.values()) == {1}


def test_the_pauses_are_bounded_and_grow(demo):
    assert list(demo.RETRY_PAUSES) == sorted(set(demo.RETRY_PAUSES))
    assert 10 < sum(demo.RETRY_PAUSES) < 120


def test_publication_is_analysed_once_its_events_run_has_ended(demo, serve):
    """As Airflow answers meanwhile: no run yet, a run in the queue, one that runs, one of another event, the last."""
    started = [(1, "queued", 0), (1, "running", 0), (1, "success", 1), (2, "running", 1), (2, "failed", 2)]

    def answer(path: str, call: int) -> tuple[int, Any]:
        count, state, consumed = ([(0, "", 0), *started])[min(len(asked), len(started))]
        if path.endswith(f"{demo.NIGHTLY}/dagRuns"):
            runs = [{"dag_run_id": NIGHT, "data_interval_start": "2026-11-20T00:00:00Z", "state": "success"}] * 2
            # A night that Airflow added at midnight, which waits for its records.
            late = {"dag_run_id": "late", "data_interval_start": "2026-11-21T00:00:00Z", "state": "running"}
            return 200, {"dag_runs": [*runs, late]}
        if path.endswith(f"{demo.ANALYTICS}/dagRuns"):
            asked.append(path)
            runs = [{"dag_run_id": f"{number}", "state": "success"} for number in range(count - 1)]
            return 200, {"dag_runs": [*runs, {"dag_run_id": NEXT, "state": state}] if count else []}
        if path.endswith("/taskInstances"):
            return 200, {"task_instances": [{"task_id": "publish", "state": "success"}]}
        assert path.endswith("/upstreamAssetEvents"), path
        # Airflow 3.3.2 fails here while the run has no start date.
        return (500, {}) if call == 1 else (200, {"asset_events": [{"id": number} for number in range(consumed)]})

    asked: list[str] = []
    server = serve(answer)
    api = demo.Api(server.base, (0.01,))
    assert demo.poll(lambda: demo.are_analysed(api, DAYS), 30, is_alive=lambda: True, pause=0.01)
    assert len(asked) == 6
    assert not any(path.endswith("/assets/events") for path in server.calls)


def test_waiting_ends_in_time_and_when_airflow_does(demo):
    assert not demo.poll(lambda: False, 0.05, is_alive=lambda: True, pause=0.01)
    assert not demo.poll(lambda: False, 60, is_alive=lambda: False)
    assert demo.poll(lambda: True, 0, is_alive=lambda: False)
