"""A scripted MCP server on loopback: says exactly what a scenario tells it to, right or wrong, and logs what comes.

A scenario is a JSON object, every key optional::

    protocol, capabilities            of the `initialize` answer
    pages: [{tools, nextCursor, cursor?, http?}]   the first page, then the one whose `cursor` came ("*" is any)
    calls: {tool | "*": [REPLY, …]}   one for each call, the last repeats
    resources: {uri: [content]}
    session: {forget_after: N, status: 404}        forgets its sessions once, after N requests
    get: {mode: hold | 405 | close, close_s}       the stream of the server's own messages
    server_requests: [{method, params?}]           sent on that stream as soon as it opens
    pushes: [message, …]                           other messages sent there
    initialize: REPLY                              instead of an answer

    REPLY = {result} | {error} | {http: {status, type, body}} | {hang_s} | {drop: true} | {sse: [text]}
          | {wrong_id, result}
"""

from __future__ import annotations

import json
import socket
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
_OK: Json = {"result": {"content": [{"type": "text", "text": "ok"}]}}
_CAPABILITIES: Json = {"tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}}


@dataclass(frozen=True)
class Entry:
    """One request that came: `kind` is post, get or delete."""

    kind: str
    session: str | None
    headers: Mapping[str, str]
    message: Json = field(default_factory=dict)

    @property
    def method(self) -> str | None:
        """The JSON-RPC method, None for an answer to the server."""
        return self.message.get("method")

    @property
    def params(self) -> Json:
        """The params."""
        return self.message.get("params") or {}


class ScriptedMcpServer:
    """The server, listening from its creation until :meth:`close`; also a context manager."""

    def __init__(self, scenario: Json) -> None:
        self.scenario = scenario
        self.log: list[Entry] = []
        self.changed = threading.Condition()
        self.sessions: set[str] = set()
        self.streams: list[_Handler] = []
        self.calls: dict[str, int] = {}
        self.closing = threading.Event()
        self._forgot = False
        self._posts = 0
        server = self

        class Handler(_Handler):
            owner = server

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self._http.server_port}/mcp"

    def __enter__(self) -> ScriptedMcpServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and cut every connection."""
        if not self.closing.is_set():
            self.closing.set()
            self._http.shutdown()
            self._http.server_close()
            self._http.cut()
            self._thread.join(5)

    def posts(self, method: str) -> list[Entry]:
        """The POSTs of one method, in order."""
        return [e for e in self.log if e.method == method]

    def replies(self) -> dict[Any, Json]:
        """What the client answered to the server's own requests, by id."""
        return {e.message.get("id"): e.message for e in self.log if e.kind == "post" and e.method is None}

    def wait_for(self, condition: Callable[[ScriptedMcpServer], Any], timeout: float = 5.0) -> bool:
        """Whether `condition(self)` came true in time."""
        with self.changed:
            return bool(self.changed.wait_for(lambda: condition(self), timeout))

    def note(self, entry: Entry) -> None:
        """Log what came, and forget the sessions when the time has come."""
        with self.changed:
            self.log.append(entry)
            self._posts += entry.kind == "post"
            after = self.scenario.get("session", {}).get("forget_after")
            if after and self._posts > after and not self._forgot:
                self._forgot = True
                self.sessions.clear()
            self.changed.notify_all()

    def next_call(self, tool: str) -> Json:
        """The reply to the next call of `tool`."""
        table = self.scenario.get("calls", {})
        replies = table.get(tool) or table.get("*") or [_OK]
        with self.changed:
            index = self.calls.get(tool, 0)
            self.calls[tool] = index + 1
        reply: Json = replies[min(index, len(replies) - 1)]
        return reply

    def page(self, cursor: str | None) -> Json:
        """The page of tools for `cursor`."""
        pages: list[Json] = self.scenario.get("pages", [{"tools": []}])
        if cursor is None:
            return pages[0]
        return next((p for p in pages[1:] if p.get("cursor") in (cursor, "*")), {"tools": []})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def cut(self) -> None:
        """Break every connection that was ever accepted and still is."""
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *_: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    owner: ScriptedMcpServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def _note(self, kind: str, message: Json | None = None) -> None:
        headers = {k.lower(): v for k, v in self.headers.items()}
        self.owner.note(Entry(kind, headers.get("mcp-session-id"), headers, message or {}))

    def _send(self, status: int, body: bytes = b"", ctype: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        if body or status not in (202, 204):
            self.send_header("Content-Type", ctype)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def _json(self, message: Json, status: int = 200, **headers: str) -> None:
        self._send(status, json.dumps({"jsonrpc": "2.0", **message}).encode(), **headers)

    def _events(self, *texts: str) -> None:
        for text in texts:
            self.wfile.write(text.encode())
        self.wfile.flush()

    def _open_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True

    def do_DELETE(self) -> None:
        self._note("delete")
        self._send(200)

    def do_GET(self) -> None:
        scenario = self.owner.scenario
        get = scenario.get("get", {})
        self._note("get")
        if get.get("mode") == "405":
            self._send(405)
            return
        self._open_stream()
        asked = [{"id": f"srv-{i}", **r} for i, r in enumerate(scenario.get("server_requests", []))]
        for message in [*asked, *scenario.get("pushes", [])]:
            self._events(f"event: message\ndata: {json.dumps({'jsonrpc': '2.0', **message})}\n\n")
        self.owner.closing.wait(get.get("close_s", 0.2) if get.get("mode") == "close" else 60)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        self._note("post", message)
        method, session = message.get("method"), self.headers.get("mcp-session-id")
        if method == "initialize":
            self._initialize(message)
            return
        if session is not None and session not in self.owner.sessions:
            status = self.owner.scenario.get("session", {}).get("status", 404)
            self._json({"id": None, "error": {"code": -32001, "message": "Session not found"}}, status)
            return
        if method is None or "id" not in message:
            self._send(202)
            return
        self._answer(message, method, message.get("params") or {})

    def _initialize(self, message: Json) -> None:
        scenario = self.owner.scenario
        if reply := scenario.get("initialize"):
            self._reply(message, reply)
            return
        session = uuid.uuid4().hex
        self.owner.sessions.add(session)
        result = {
            "protocolVersion": scenario.get("protocol", message["params"]["protocolVersion"]),
            "capabilities": scenario.get("capabilities", _CAPABILITIES),
            "serverInfo": {"name": "scripted", "version": "1"},
        }
        self._json({"id": message["id"], "result": result}, mcp_session_id=session)

    def _answer(self, message: Json, method: str, params: Json) -> None:
        contents = {uri: texts[0] for uri, texts in self.owner.scenario.get("resources", {}).items()}
        if method == "tools/list":
            page = self.owner.page(params.get("cursor"))
            result = {k: page[k] for k in ("tools", "nextCursor") if page.get(k) is not None}
            self._reply(message, {"http": page["http"]} if "http" in page else {"result": result})
            return
        if method == "tools/call":
            self._reply(message, self.owner.next_call(params["name"]))
            return
        answers: Json = {
            "ping": {},
            "resources/subscribe": {},
            "resources/unsubscribe": {},
            "resources/list": {"resources": [{"uri": u, "name": u} for u in contents]},
            "resources/templates/list": {"resourceTemplates": []},
            "prompts/list": {"prompts": []},
            "resources/read": {
                "contents": [{"uri": params.get("uri"), "text": contents.get(params.get("uri", ""), "")}]
            },
        }
        known = method in answers
        self._reply(
            message,
            {"result": answers[method]} if known else {"error": {"code": -32601, "message": "Method not found"}},
        )

    def _reply(self, message: Json, reply: Json) -> None:
        if "hang_s" in reply or "drop" in reply:
            self.owner.closing.wait(reply.get("hang_s", 0))
            self.close_connection = True
        elif "http" in reply:
            told = reply["http"]
            self._send(told.get("status", 200), told.get("body", "").encode(), told.get("type", "text/plain"))
        elif "sse" in reply:
            self._open_stream()
            self._events(*(text.replace("$ID", json.dumps(message["id"])) for text in reply["sse"]))
        else:
            answer_id = f"not-{message['id']}" if reply.get("wrong_id") else message["id"]
            self._json({"id": answer_id, **{k: reply[k] for k in ("result", "error") if k in reply}})
