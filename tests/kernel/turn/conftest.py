"""A supervisor for one turn: it runs the turn in a thread, over a real socket pair, and answers its frames."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentd.children.frames import Decoder, encode
from agentd.ports.model import Message, ModelReply, ModelRequest, ToolCall, ToolSchema, Usage
from agentd.turn.main import run
from agentd.turn.offers import Observation, Offer


def says(text: str = "", *calls: tuple[str, dict[str, Any] | None], finish: Any = None, reason: str = "",
         usage: Usage | None = None, n: int = 1) -> ModelReply:  # fmt: skip
    """An answer of the model."""
    made = tuple(
        ToolCall(id=f"c{n}_{i}", name=name, arguments=args, problem=None if args is not None else "cut")
        for i, (name, args) in enumerate(calls)
    )
    finish = finish or ("calls" if made else "stop" if text else "empty")
    usage = usage or Usage(tokens_in=10, tokens_out=5, reported=True)
    return ModelReply(
        message=Message(role="assistant", text=text, calls=made), finish=finish, usage=usage, reason=reason
    )


class ScriptedModel:
    """Gives the answers of `script` in order; the last one for ever. A coroutine function stands for a slow one."""

    def __init__(self, script: Sequence[Any]) -> None:
        self.script = list(script)
        self.requests: list[ModelRequest] = []
        self.closed = False

    async def call(self, request: ModelRequest, deadline: float | None = None) -> ModelReply:
        self.requests.append(request)
        item = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(item, BaseException):
            raise item
        return await item() if callable(item) else item

    async def close(self) -> None:
        self.closed = True

    @property
    def health(self) -> list[list[Any]]:
        return []


class FakeServers:
    """Tools `fs.put`, `fs.get` (reads only), `fs.stat` (reads only), served by `serve`."""

    def __init__(self, serve: Callable[..., Any] | None = None) -> None:
        self.calls: list[tuple[str, dict[str, Any], str]] = []
        self.serve = serve
        self.closed = False

    def offers(self) -> Sequence[Offer]:
        parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
        return [
            Offer(
                server="fs",
                tool=tool,
                full=f"fs.{tool}",
                schema=ToolSchema(name=f"fs_{tool}", description=tool, parameters=parameters),
                read_only=read_only,
            )
            for tool, read_only in (("put", False), ("get", True), ("stat", True))
        ]

    async def call(self, offer: Offer, args: dict[str, Any], *, key: str) -> Observation:
        self.calls.append((offer.tool, args, key))
        if self.serve is not None:
            return await self.serve(offer.tool, args)
        return Observation(text="ok")

    async def close(self) -> None:
        self.closed = True


class Supervisor:
    """Runs one turn and keeps what it said. `on` answers a frame of a kind; the default says yes to everything."""

    def __init__(self, work: dict[str, Any], on: dict[str, Callable[[dict[str, Any]], Any]], **parts: Any) -> None:
        self.frames: list[dict[str, Any]] = []
        self.result: dict[str, Any] | None = None
        self._ours, theirs = socket.socketpair()
        self._ours.settimeout(20)
        self._on = on
        self._thread = threading.Thread(target=run, args=(theirs, work), kwargs=parts, daemon=True)

    def send(self, frame: dict[str, Any]) -> None:
        self._ours.sendall(encode(frame))

    def vanish(self) -> None:
        self._ours.shutdown(socket.SHUT_RDWR)

    def drive(self) -> dict[str, Any] | None:
        """Answer frames until the turn closes its end; its result."""
        self._thread.start()
        decoder = Decoder()
        while data := self._ours.recv(65536):
            for frame in decoder.feed(data):
                self.frames.append(frame)
                self._answer(frame)
        self.join()
        return self.result

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()
        self._ours.close()

    def _answer(self, frame: dict[str, Any]) -> None:
        kind = frame["t"]
        custom = self._on[kind](frame) if kind in self._on else None
        if kind == "result":
            assert self.result is None
            self.result = frame
        elif kind == "permit":
            self.send({"t": "permit", "id": frame["id"], "ok": True, "reason": None, **(custom or {})})
        elif kind == "catalogue":
            self.send({"t": "proceed", "ok": True, **(custom or {})})
        elif kind == "tool":
            self.send({"t": "tool", "id": frame["id"], "value": "served", "is_error": False, **(custom or {})})

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [f for f in self.frames if f["t"] == kind]

    def messages(self) -> list[dict[str, Any]]:
        return [f["message"] for f in self.said("message")]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [f["fields"] for f in self.said("log") if f["event"] == name]


class Turn:
    """What a test looks at: the result, the supervisor's view, the model's and the servers' requests."""

    def __init__(self, supervisor: Supervisor, model: ScriptedModel, servers: FakeServers) -> None:
        self.supervisor, self.model, self.servers = supervisor, model, servers
        self.result = supervisor.result

    def answers(self) -> dict[str, dict[str, Any]]:
        """The tool messages by call id, after a check that each call has exactly one."""
        messages = self.supervisor.messages()
        asked = [c["id"] for m in messages for c in m.get("calls", ())]
        told = [m["call_id"] for m in messages if m["role"] == "tool"]
        assert sorted(asked) == sorted(told)
        return {m["call_id"]: m for m in messages if m["role"] == "tool"}


@pytest.fixture
def turn() -> Callable[..., Turn]:
    """``turn(script, on=…, serve=…, **work)`` runs a turn with a scripted model to its end."""

    def go(script: Sequence[Any], *, on: Any = None, serve: Any = None, hold: Any = None, **work: Any) -> Turn:
        model, servers = ScriptedModel(script), FakeServers(serve)

        async def opened(*_: Any) -> FakeServers:
            return servers

        frame = {"t": "work", "run": "r1", "step": "s1", "turn": "t1", "instruction": "do it", "model": {"model": "m"}}
        supervisor = Supervisor({**frame, **work}, on or {}, model=lambda *_: model, servers=opened)
        if hold is not None:
            hold.append(supervisor)
        supervisor.drive()
        return Turn(supervisor, model, servers)

    return go


@pytest.fixture
def reply() -> Callable[..., ModelReply]:
    return says


@pytest.fixture
def never() -> Callable[[], Any]:
    """A coroutine function that does not come back."""

    async def wait() -> Any:
        await asyncio.Event().wait()

    return wait


class Loopback:
    """A server on loopback that answers each POST with what `answer(path, body)` gives: status and a JSON body."""

    def __init__(self, answer: Callable[[str, Any], tuple[int, Any]]) -> None:
        outer = self
        self.requests: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(body)
                status, reply = answer(self.path, body)
                data = b"" if reply is None else json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                self.send_error(405)

            do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def replayed(steps: Sequence[Any], then: str) -> Callable[[str, Any], tuple[int, Any]]:
    """The answers of a replay file: one step a request, the last one for ever."""
    left = list(steps)

    def answer(_path: str, _body: Any) -> tuple[int, Any]:
        step = left.pop(0) if len(left) > 1 else left[0]
        return step.get("status", 200), step["json"]

    return answer


def scripted(scenario: Any) -> Callable[[str, Any], tuple[int, Any]]:
    """An MCP server of the session family that lists the tools of `scenario` and answers calls as it says."""

    def answer(_path: str, body: Any) -> tuple[int, Any]:
        method, number = body.get("method"), body.get("id")
        if number is None:
            return 202, None
        if method == "initialize":
            version = body["params"]["protocolVersion"]
            about = {"name": "scripted", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        elif method == "tools/list":
            result = {"tools": scenario["pages"][0]["tools"]}
        elif method == "tools/call":
            calls = scenario.get("calls", {})
            result = (calls.get(body["params"]["name"]) or calls["*"])[0]["result"]
        else:
            return 200, {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "Method not found"}}
        return 200, {"jsonrpc": "2.0", "id": number, "result": result}

    return answer


class Real:
    """A turn with the real clients against loopback servers."""

    def __init__(self, supervisor: Supervisor, model: Loopback, mcp: Loopback) -> None:
        self.supervisor, self.result = supervisor, supervisor.result
        self.requests: list[Any] = model.requests
        self.calls = [r["params"] for r in mcp.requests if r.get("method") == "tools/call"]


@pytest.fixture
def play() -> Iterator[Callable[..., Real]]:
    """``play(steps, scenario, **work)`` runs a turn against a replayed model and a scripted MCP server `fs`."""
    opened: list[Loopback] = []

    def go(
        steps: Any, scenario: Any, *, on: Any = None, dialect: str = "openai", extra: Any = None, **work: Any
    ) -> Real:
        model, mcp = Loopback(replayed(steps["steps"], "last")), Loopback(scripted(scenario))
        opened.extend([model, mcp])
        frame = {
            "t": "work",
            "run": "r1",
            "step": "s1",
            "turn": "t1",
            "instruction": "Use the tools, then answer.",
            "model": {"model": "m", "dialect": dialect, "endpoints": [{"url": f"{model.url}/v1"}]},
            "servers": [{"name": "fs", "endpoint": f"{mcp.url}/mcp"}, *([extra] if extra else [])],
            "meta": {"run_id": "r1", "instance": "me"},
        }
        supervisor = Supervisor({**frame, **work}, on or {})
        supervisor.drive()
        return Real(supervisor, model, mcp)

    yield go
    for server in opened:
        server.close()
