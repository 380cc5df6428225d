"""A real MCP server on the official SDK, on loopback, for tests: both protocol families, and it remembers what came.

::

    with McpServer({"add": lambda a, b: a + b}) as server:
        ...  # server.url, server.calls
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Message = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """One POST that came: the HTTP headers (lower case) and the JSON-RPC message."""

    headers: Mapping[str, str]
    message: Message = field(default_factory=dict)

    @property
    def method(self) -> str:
        """Its JSON-RPC method, "" for an answer to one of the server's requests."""
        return str(self.message.get("method", ""))

    @property
    def params(self) -> Message:
        """Its params."""
        return self.message.get("params") or {}

    @property
    def session(self) -> str | None:
        """The session it belongs to."""
        return self.headers.get("mcp-session-id")


class McpServer:
    """The server, in a thread of its own; enter it to start.

    `tools` and `resources` map names and URIs to functions (parameters and docstrings make the schemas). `family`:
    ``both`` revisions, or only ``session`` (initialize) or ``stateless`` (2026-07-28). `bearer` is the token it wants.
    `setup` gets the SDK's
    `MCPServer` for whatever else is wanted.
    """

    def __init__(
        self,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        resources: Mapping[str, Callable[..., Any]] | None = None,
        *,
        family: Literal["both", "session", "stateless"] = "both",
        json_response: bool = False,
        bearer: str | None = None,
        setup: Callable[[Any], None] | None = None,
    ) -> None:
        self.requests: list[Request] = []
        """Every POST, in order."""
        self._tools, self._resources, self._setup = tools or {}, resources or {}, setup
        self._family, self._json, self._bearer = family, json_response, bearer
        self._port = 0
        self._held: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Any = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self._port}/mcp"

    @property
    def calls(self) -> list[Message]:
        """The params of each `tools/call`: ``{name, arguments, _meta}``."""
        return [r.params for r in self.requests if r.method == "tools/call"]

    def methods(self) -> list[str]:
        """The methods asked, in order."""
        return [r.method for r in self.requests]

    def __enter__(self) -> McpServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._held is not None:
            self._held.close()
            self._held = None

    def start(self) -> None:
        """Listen; the port of an earlier start is kept, its sessions are not."""
        if self._held is None:
            # Bound and never listening: nobody else gets the port while we are down, and who calls is refused.
            self._held = _bind(0)
            self._port = self._held.getsockname()[1]
        listener = _bind(self._port)
        listener.listen(64)
        up = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(listener, up), name="mcp-server", daemon=True)
        self._thread.start()
        if not up.wait(30):
            raise RuntimeError("the MCP test server did not start")

    def stop(self) -> None:
        """Stop listening and cut every connection."""
        if self._thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._shut)
            self._thread.join(10)
            self._thread = None

    def _shut(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True

    def restart(self) -> None:
        """Stop and start again on the same port, as a deploy does."""
        self.stop()
        self.start()

    def _run(self, listener: socket.socket, up: threading.Event) -> None:
        import uvicorn

        class Announced(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                up.set()

        config = uvicorn.Config(
            self._app(), log_level="critical", lifespan="on", timeout_graceful_shutdown=1, ws="none"
        )
        self._server = Announced(config)

        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[listener])

        with asyncio.Runner() as runner:
            runner.run(serve())

    def _app(self) -> Callable[..., Any]:
        from mcp.server.mcpserver import MCPServer

        server = MCPServer("test", log_level="CRITICAL")
        for name, function in self._tools.items():
            server.add_tool(function, name=name)
        for uri, function in self._resources.items():
            server.resource(uri, name=uri)(function)
        if self._setup:
            self._setup(server)
        return self._recording(server.streamable_http_app(json_response=self._json))

    def _recording(self, app: Callable[..., Any]) -> Callable[..., Any]:
        async def wrapped(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            body = b""
            while True:
                part = await receive()
                body += part.get("body", b"")
                if not part.get("more_body"):
                    break
            headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
            request = Request(headers, json.loads(body))
            self.requests.append(request)
            if self._bearer and headers.get("authorization") != f"Bearer {self._bearer}":
                await _respond(send, 401, None)
                return
            if refusal := self._refusal(request):
                await _respond(send, 400, refusal)
                return
            replayed = False

            async def replay() -> Any:
                nonlocal replayed
                if replayed:
                    return await receive()
                replayed = True
                return {"type": "http.request", "body": body, "more_body": False}

            await app(scope, replay, send)

        return wrapped

    def _refusal(self, request: Request) -> Message | None:
        """What a server of the other family alone says."""
        if self._family == "session" and request.headers.get("mcp-protocol-version", "").startswith("2026"):
            error: Message = {"code": -32600, "message": "Bad Request: Missing session ID"}
        elif self._family == "stateless" and request.method == "initialize":
            error = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2026-07-28"]}}
        else:
            return None
        return {"jsonrpc": "2.0", "id": request.message.get("id"), "error": error}


def _bind(port: int) -> socket.socket:
    # The protocol is named because asyncio sets TCP_NODELAY only on sockets that name it: 40 ms a call without.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound


async def _respond(send: Any, status: int, message: Message | None) -> None:
    body = b"" if message is None else json.dumps(message).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
