"""What a child does with its work: assemble the parts of a turn, run it, tell the result."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from agentd.children.frames import Decoder, Frame, FrameError
from agentd.errors import AgentdError, DeadlineExceeded
from agentd.ports.model import ToolSchema
from agentd.turn import work as first
from agentd.turn.answer import Answer
from agentd.turn.channel import Channel
from agentd.turn.loop import Loop
from agentd.turn.model import Model, open_model
from agentd.turn.offers import Servers
from agentd.turn.rules import Outcome, failed, failure
from agentd.turn.servers import open_servers
from agentd.turn.stop import Stop, Stopped
from agentd.turn.tools import Toolbox, routes
from agentd.turn.work import Work

OpenModel = Callable[[Work, Channel], Model]
OpenServers = Callable[[Work, Channel], Awaitable[Servers]]

_CLOSING = 0.5
"""Seconds that taking leave of the servers may take, after the result is told."""


def run(
    sock: socket.socket,
    work: Frame,
    *,
    early: Iterable[Frame] = (),
    decoder: Decoder | None = None,
    model: OpenModel = open_model,
    servers: OpenServers = open_servers,
) -> None:
    """Run the turn that `work` describes and tell its result over `sock`; returns when all is said.

    `early` are frames that came along with the work, `decoder` the one that cut them. A turn ends with exactly one
    `result` frame, unless the supervisor is gone.
    """
    asyncio.run(_Turn(first.read(work), model, servers).run(sock, early, decoder))


class _Turn:
    def __init__(self, work: Work, model: OpenModel, servers: OpenServers) -> None:
        self._work, self._open_model, self._open_servers = work, model, servers
        self._stop = Stop()
        self._loop: Loop | None = None
        self._tools: Toolbox | None = None
        self._opened: list[Model | Servers] = []
        self._model: Model | None = None

    async def run(self, sock: socket.socket, early: Iterable[Frame], decoder: Decoder | None) -> None:
        with contextlib.suppress(ValueError, RuntimeError):  # not the main thread: somebody else has the signals
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGTERM, lambda: self._stop.request("the process was told to end", now=True)
            )
        level = str((self._work.frame.get("log") or {}).get("level") or "info")
        channel = await Channel(self._stop, level=level, decoder=decoder).open(sock, early)
        outcome = await self._outcome(channel)
        try:
            channel.send(self._result(outcome))
        except FrameError as e:
            channel.send(self._result(failed("failed", "too_large", f"the answer is too large to be told: {e}")))
        await asyncio.gather(self._close(), channel.flush())

    async def _outcome(self, channel: Channel) -> Outcome:
        """The end of the turn; even a mistake of ours is one, told rather than lost with the process."""
        try:
            return await self._exchange(channel)
        except Stopped as e:
            return failed("cancelled", "cancelled", str(e))
        except DeadlineExceeded as e:
            return failed("deadline", e.code, e.message)
        except AgentdError as e:
            return failure(e)
        except Exception as e:
            return failed("failed", "internal", f"{type(e).__name__}: {e}")

    async def _exchange(self, channel: Channel) -> Outcome:
        work, stop, deadline = self._work, self._stop, self._deadline()
        servers = await stop.race(_as_coroutine(self._open_servers(work, channel)), deadline=deadline)
        self._opened.append(servers)
        model = self._model = self._open_model(work, channel)
        self._opened.append(model)
        answer = Answer(work.schema)
        offers = servers.offers()
        self._tools = Toolbox(
            routes(work.grants, answer, offers, _internals(work)),
            servers=servers,
            channel=channel,
            stop=stop,
            answer=answer,
            work=work,
            deadline=deadline,
        )
        self._loop = Loop(
            work, model=model, tools=self._tools, answer=answer, channel=channel, stop=stop, deadline=deadline
        )
        names = sorted({o.server for o in offers})
        channel.log("loop.start", tools=len(self._tools.schemas), servers=names, max_steps=work.limits.rounds)
        return await self._loop.run()

    def _deadline(self) -> float | None:
        """The deadline of the run in the loop's time."""
        at = self._work.limits.deadline
        return None if at is None else asyncio.get_running_loop().time() + (at - time.time())

    def _result(self, outcome: Outcome) -> dict[str, Any]:
        loop, tools = self._loop, self._tools
        return {
            "t": "result",
            "status": outcome.status,
            "output": outcome.output,
            "rounds": loop.rounds if loop else 0,
            "tool_calls": tools.performed if tools else 0,
            "tokens_in": loop.tokens_in if loop else 0,
            "tokens_out": loop.tokens_out if loop else 0,
            "err": outcome.err,
            "health": self._model.health if self._model is not None else None,
        }

    async def _close(self) -> None:
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSING):
                await asyncio.gather(*(part.close() for part in self._opened), return_exceptions=True)


def _internals(work: Work) -> list[ToolSchema]:
    """The internal tools that the supervisor serves to this turn."""
    return [ToolSchema(**tool) for tool in work.frame.get("internals") or ()]


async def _as_coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
