"""The child's end of the frames: what it asks, tells and is told.

Everything is written in the order it was said, without waiting; only questions wait, for their answer. A supervisor
that is gone stops the turn at once: nobody is left to hear a result.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from typing import Any

from agentd.children.frames import Decoder, Frame, FrameError, encode
from agentd.errors import AgentdError
from agentd.ports.auth import OutboundRequest
from agentd.turn.stop import Stop

_LEVELS = {"debug": 0, "info": 1, "warn": 2, "error": 3}
_OURS = frozenset({"authorization", "cookie", "proxy-authorization"})
ELICIT = "elicit"
"""The internal tool that no model sees: a server asks its user."""
_SHOWN = 1000
"""Characters kept of a log field that is no JSON."""


class Channel(asyncio.Protocol):
    """The conversation with the supervisor. Log lines under `level` are not sent.

    `decoder` is the one that cut the first frame, and may hold the beginning of the next.
    """

    def __init__(self, stop: Stop, *, level: str = "info", decoder: Decoder | None = None) -> None:
        self._stop = stop
        self._least = _LEVELS.get(level, 1)
        self._decoder = decoder or Decoder()
        self._transport: asyncio.Transport | None = None
        self._answers: dict[str, asyncio.Future[Frame]] = {}
        self._asked = 0
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open(self, sock: socket.socket, early: Iterable[Frame] = ()) -> Channel:
        """Speak over `sock` from now on; `early` are frames that came along with the first one."""
        sock.setblocking(False)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=sock)
        for frame in early:
            self._receive(frame)
        return self

    # The protocol's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._decoder.feed(data)
        except FrameError:
            assert self._transport is not None
            self._transport.abort()
            return
        for frame in frames:
            self._receive(frame)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop.request("the supervisor is gone", now=True)
        for future in self._answers.values():
            future.cancel()
        if not self._gone.done():
            self._gone.set_result(None)

    def _receive(self, frame: Frame) -> None:
        if frame["t"] == "cancel":
            self._stop.request(str(frame.get("reason") or "cancelled"), now=bool(frame.get("now")))
            return
        future = self._answers.pop(str(frame.get("id", frame["t"])), None)
        if future is not None and not future.done():
            future.set_result(frame)

    # What a turn says.

    def send(self, frame: Frame) -> None:
        """Say `frame`. Silent when nobody listens any more."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(encode(frame))

    def log(self, event: str, /, *, level: str | None = None, msg: str = "", **fields: Any) -> None:
        """One event of the vocabulary, for the supervisor to write (:class:`agentd.ports.host.Log`)."""
        if _LEVELS.get(level or "error", 1) < self._least:
            return
        fields = {k: _plain(v) for k, v in fields.items()}
        frame = {"t": "log", "event": event, "level": level, "msg": msg, "fields": fields}
        try:
            self.send(frame)
        except (TypeError, ValueError, FrameError):
            self.send({**frame, "fields": {k: repr(v)[:_SHOWN] for k, v in fields.items()}})

    def message(self, message: Frame) -> None:
        """One more message of the conversation, as the transcript keeps it."""
        self.send({"t": "message", "message": message})

    def usage(self, tokens_in: int, tokens_out: int, *, reported: bool) -> None:
        """The cost of one model call; an estimate where the provider said nothing."""
        self.send({"t": "usage", "tokens_in": tokens_in, "tokens_out": tokens_out, "reported": reported})

    # What a turn asks.

    async def catalogue(self, servers: dict[str, Any]) -> tuple[bool, str]:
        """Tell what the servers offer; whether to go on, and why not."""
        answer = await self._ask("proceed", {"t": "catalogue", "servers": servers})
        return bool(answer.get("ok")), str(answer.get("msg") or "")

    async def permit(self, *, call: str, tool: str, args: dict[str, Any], digest: str, key: str) -> tuple[bool, str]:
        """Ask leave for one tool call; whether it was given, and why not."""
        question = {"t": "permit", "call": call, "tool": tool, "args": args, "digest": digest, "key": key}
        answer = await self._ask(None, question)
        return bool(answer.get("ok")), str(answer.get("reason") or "")

    async def tool(self, name: str, args: dict[str, Any], *, key: str) -> tuple[Any, bool]:
        """Have the supervisor serve an internal tool; its value and whether that is an error."""
        answer = await self._ask(None, {"t": "tool", "name": name, "args": args, "key": key})
        return answer.get("value"), bool(answer.get("is_error"))

    async def auth(
        self, target: str, request: OutboundRequest, *, challenge: str | None = None
    ) -> tuple[dict[str, str], bool]:
        """Headers for `request` to `target`; after a 401 with this challenge also whether to try again.

        Raises AgentdError with the supervisor's reason when there is no credential.
        """
        question = {"t": "auth", "target": target, "method": request.method, "url": request.url,
                    "headers": {k: v for k, v in request.headers.items() if k.lower() not in _OURS},
                    "unauthorized": challenge is not None, "challenge": challenge or ""}  # fmt: skip
        answer = await self._ask(None, question)
        if answer.get("err"):
            raise AgentdError(str(answer["err"]))
        return dict(answer.get("headers") or {}), bool(answer.get("retry"))

    async def _ask(self, slot: str | None, frame: Frame) -> Frame:
        if slot is None:
            self._asked += 1
            slot = frame["id"] = f"q{self._asked}"
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._answers[slot] = future
        try:
            self.send(frame)
            if self._gone.done():
                future.cancel()
            return await future
        finally:
            self._answers.pop(slot, None)

    async def flush(self, timeout: float = 5.0) -> None:
        """Wait until all that was said has left this process, or nobody listens, or `timeout` seconds."""
        if self._transport is None:
            return
        self._transport.close()
        await asyncio.wait([self._gone], timeout=timeout)


def _plain(value: Any) -> Any:
    """An exception as the data a log line takes; anything else as it is."""
    if isinstance(value, AgentdError):
        return {"code": value.code, "message": value.message}
    return {"type": type(value).__name__, "message": str(value)} if isinstance(value, BaseException) else value
