"""A plain HTTP server on loopback that says what a test wants and remembers what came.

::

    with Site() as site:
        site.answers["/things"] = [(201, {}, b"{}")]
        ...  # site.url, site.requests
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
"""``(status, headers, body)``."""
Request = tuple[str, str, dict[str, str], bytes]
"""``(method, path with query, headers in lower case, body)``."""


class Site:
    """`answers` holds by path what is said, in order; the last is said for ever, and 200 where there is none."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[Request] = []
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Site:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, site: Site) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site = site


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _serve(self) -> None:
        site = self.server.site
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        site.requests.append((self.command, self.path, headers, body))
        script = site.answers.get(self.path.partition("?")[0]) or [(200, {}, b"")]
        status, more, content = script.pop(0) if len(script) > 1 else script[0]
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
