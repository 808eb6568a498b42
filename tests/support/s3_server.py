"""Serve S3 from memory and print the port; buckets named ``ignores...`` ignore conditions (moto, `make s3`)."""

from __future__ import annotations

import sys
import threading

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

_CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH")


class Store:
    """The store as a WSGI application."""

    def __init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()

    def __call__(self, environ, start_response):
        """Answer a request. One request at a time: moto looks for an object and creates it in two steps."""
        if environ["PATH_INFO"].startswith("/ignores"):
            for name in _CONDITIONS:
                environ.pop(name, None)
        with self._lock:
            return [b"".join(self._moto(environ, start_response))]


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, Store(), threaded=True, request_handler=MotoRequestHandler)
    print(server.server_port, flush=True)
    sys.stdin.close()
    server.serve_forever()
