"""A scripted HTTP server: one step per request, and every request kept. For what no honest server does.

A step is a mapping: `status`, `headers`, the body as `json`, `text` or `b64`; `cut` sends only so many bytes and
closes, `end` is `keep`, `close`, `rst` or `close_after`, `chunked` sends a chunked body, `endless` blanks for so many
bytes before it. After the last step the last is repeated. A header whose value is None is left out.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

Step = Mapping[str, Any]


class Recorded(NamedTuple):
    """A request as it came; `connection` numbers the connection it came on."""

    connection: int
    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Replay:
    """Serves `steps` on loopback from threads; a context manager."""

    def __init__(self, steps: Sequence[Step] | Path) -> None:
        if isinstance(steps, Path):
            steps = cast(Sequence[Step], json.loads(steps.read_text(encoding="utf-8"))["steps"])
        self._steps, self._lock, self._connections = steps, threading.Lock(), 0
        self.requests: list[Recorded] = []
        self.sent = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Replay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._connections += 1
                threading.Thread(target=self._serve, args=(connection, self._connections), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError, ValueError):
            while (request := _read(stream, number)) is not None:
                with self._lock:
                    step = self._steps[min(len(self.requests), len(self._steps) - 1)]
                    self.requests.append(request)
                if not self._answer(connection, step):
                    return

    def _answer(self, connection: socket.socket, step: Step) -> bool:
        """Play `step`; False when the connection is over."""
        body, chunked = _body(step), bool(step.get("chunked"))
        headers: dict[str, Any] = {"Content-Type": "application/json", **step.get("headers", {})}
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
        elif "Content-Length" not in headers:
            headers["Content-Length"] = str(len(body) + step.get("endless", 0))
        lines = [f"HTTP/1.1 {step.get('status', 200)} X", *(f"{k}: {v}" for k, v in headers.items() if v is not None)]
        connection.sendall("\r\n".join(lines).encode("utf-8") + b"\r\n\r\n")
        for _ in range(0, step.get("endless", 0), 65536):
            self._send(connection, b" " * 65536, chunked)
        if part := body[: step.get("cut", len(body))]:
            self._send(connection, part, chunked)
        if chunked and "cut" not in step:
            connection.sendall(b"0\r\n\r\n")
        end = step.get("end", "close" if "cut" in step else "keep")
        if end == "rst":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return bool(end == "keep")

    def _send(self, connection: socket.socket, data: bytes, chunked: bool) -> None:
        connection.sendall(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
        self.sent += len(data)


def _body(step: Step) -> bytes:
    if "b64" in step:
        return base64.b64decode(step["b64"])
    if "json" in step:
        return json.dumps(step["json"], ensure_ascii=False).encode()
    return str(step.get("text", "")).encode()


def _read(stream: BinaryIO, number: int) -> Recorded | None:
    first = stream.readline()
    if not first:
        return None
    method, target, _ = first.decode("latin-1").split(" ", 2)
    headers = {}
    while (line := stream.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return Recorded(number, method, target, headers, stream.read(int(headers.get("content-length", "0"))))
