"""The mock model: a script served over loopback HTTP with the openai dialect, so that the whole path is real.

A small server of its own, in a thread or on a loop: it costs no import of a web framework.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

from agentd.testing.mock_script import Script, answer, load


class MockModel:
    """A mock model that serves: `url` is its endpoint, `requests` the bodies it was sent (the last 1000)."""

    def __init__(self, script: Script) -> None:
        self.requests: deque[dict[str, Any]] = deque(maxlen=1000)
        self._script, self._errors, self._number = script, dict[int, int](), 0
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._serving = threading.Event()

    def __enter__(self) -> MockModel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def start(self) -> MockModel:
        """Serve from a daemon thread."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve()), name="mock-model", daemon=True)
        self._thread.start()
        self._serving.wait()
        return self

    async def serve(self) -> None:
        """Serve on this loop until :meth:`close`."""
        self._loop, self._done = asyncio.get_running_loop(), asyncio.Event()
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await self._converse(reader, writer)
            except asyncio.CancelledError:
                pass  # asyncio's stream protocol asks the task for its exception, and a cancelled one raises
            finally:
                connections.discard(task)

        server = await asyncio.start_server(connected, sock=self._socket)
        self._serving.set()
        try:
            await self._done.wait()
        finally:
            server.close()
            for task in list(connections):
                task.cancel()
            await asyncio.gather(*connections, return_exceptions=True)

    def close(self) -> None:
        """Stop serving; from any thread, any number of times."""
        if self._loop is None or self._done is None:
            self._socket.close()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._done.set)
        if self._thread is not None:
            self._thread.join(5)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The requests of one connection, which is kept alive."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.lower().split(b"\r\n")
                        if line.startswith(b"content-length:")
                    ),
                    0,
                )
                status, body, headers = await self._answer(head, await reader.readexactly(length))
                writer.write(_response(status, body, headers))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: bytes, body: bytes) -> tuple[int, dict[str, Any], dict[str, str]]:
        if not head.split(b" ", 2)[1].endswith(b"/chat/completions"):
            return _error(404, "the mock model serves /chat/completions only")
        request = json.loads(body)
        self.requests.append(request)
        self._number += 1
        index = self._script.pick(request.get("messages") or [])
        if index is None:
            return _error(400, "no round of the mock script fits this request")
        entry = self._script.rounds[index]
        if entry.delay:
            await asyncio.sleep(entry.delay)
        if (failure := entry.error) is not None:
            given = self._errors[index] = self._errors.get(index, 0) + 1
            if failure.times is None or given <= failure.times:
                wait = failure.retry_after
                headers = {} if wait is None else {"Retry-After": f"{wait:g}"}
                return _error(failure.status, failure.message, failure.code, headers)
        return 200, answer(entry, request, self._number), {}


def _error(
    status: int, message: str, code: str | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any], dict[str, str]]:
    return status, {"error": {"message": message, "type": "mock", "code": code}}, headers or {}


def _response(status: int, body: Any, headers: Mapping[str, str]) -> bytes:
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    lines = [
        f"HTTP/1.1 {status} Mock",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        *(f"{k}: {v}" for k, v in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def start_mock(spec: str | Mapping[str, Any]) -> MockModel:
    """Serve ``mock:final``, ``mock:FILE.yaml`` or a script given as a document, from a thread of its own.

    Raises :class:`agentd.errors.ConfigError` for a script that cannot be read.
    """
    return MockModel(load(spec)).start()
