"""Turns: work that children do. Starts a child, answers its frames, brings home its result."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from agentd.children.frames import Frame, FrameError
from agentd.children.spawner import Child, Spawner
from agentd.errors import ChildDied, ServerUnavailable
from agentd.telemetry.emitter import Telemetry

_SIGN_OF_LIFE = 30.0
"""Seconds a child may take for its first frame: a fork that hangs is killed, not waited for."""
_KILL_GRACE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """How a turn ended.

    `status`: completed, partial, failed, cancelled, refused, exhausted_steps, exhausted_tokens, deadline,
    loop_detected. `error` is ``{code, message}`` or None; `output` the answer, a JSON value.
    """

    status: str
    output: Any = None
    rounds: int = 0
    tool_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    error: dict[str, Any] | None = None
    reason: str = ""
    health: list[list[Any]] | None = None
    """What the turn learnt of each model endpoint, for the next turn."""


@dataclass(slots=True, kw_only=True)
class TurnHooks:
    """What the owner of a turn adds: each may be None.

    `permit` is asked before every tool call and returns a refusal's reason or None; it is awaited, so that the
    checkpoint which announces the call is durable first. `message` sees every message the turn adds. `tool` serves an
    internal tool: ``(name, args, key) -> (value, is_error)``. `auth` answers for the credential of a target:
    ``{headers, retry}``. `catalogue` judges what the servers offer: it raises
    :class:`agentd.errors.ServerUnavailable` to end the turn.
    """

    permit: Callable[[Frame], Awaitable[str | None]] | None = None
    message: Callable[[Frame], None] | None = None
    tool: Callable[[str, dict[str, Any], str], Awaitable[tuple[Any, bool]]] | None = None
    auth: Callable[[Frame], Awaitable[dict[str, Any]]] | None = None
    catalogue: Callable[[dict[str, Any]], None] | None = None


@dataclass(slots=True, eq=False)
class _Turn:
    child: Child
    hooks: TurnHooks
    log: Telemetry
    result: TurnResult | None = None
    refused: ServerUnavailable | None = None
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class Turns:
    """Runs turns, at most `parallel` at once; the others wait in order."""

    def __init__(
        self, spawner: Spawner | None, log: Telemetry, *, parallel: int, hold: Callable[[], Awaitable[None]]
    ) -> None:
        """`hold` returns when a turn may begin: under pressure they queue."""
        self._spawner, self._log, self._hold = spawner, log, hold
        self._gate = asyncio.Semaphore(parallel)
        self._running: set[_Turn] = set()
        self._winding_down = False
        self.queued = 0
        self.total = self.tool_calls = self.tokens_in = self.tokens_out = 0

    def wind_down(self, within: float) -> None:
        """Tell every turn to stop at its next boundary; those still there `within` seconds later meet the ladder.

        Turns that wait for their place begin no more: like those that are stopped, they go on in the next life.
        """
        self._winding_down = True
        for turn in self._running:
            turn.child.send({"t": "cancel", "reason": "draining"})

    @property
    def running(self) -> int:
        """Turns that have a child now."""
        return len(self._running)

    async def run(self, work: Frame, hooks: TurnHooks) -> TurnResult:
        """Do `work` in a child. Raises ChildDied (a failed attempt), or what a hook raised.

        Cancelling the caller cancels the turn: at its next boundary, then with the kill ladder.
        """
        self.queued += 1
        try:
            await self._hold()
            await self._gate.acquire()
        finally:
            self.queued -= 1
        try:
            if self._winding_down:
                raise asyncio.CancelledError
            return await self._run(work, hooks)
        finally:
            self._gate.release()

    async def _run(self, work: Frame, hooks: TurnHooks) -> TurnResult:
        log = self._log.bind(run_id=work["meta"]["run_id"])
        if self._spawner is None:
            raise ChildDied("this instance was started without a process to start children from")
        child = await self._spawner.spawn()
        block = log.bind(agent_id=work["agent_id"], agent_path=work["agent_path"], comp="agent", pid=child.pid)
        turn = _Turn(child, hooks, block)
        self._running.add(turn)
        self.total += 1
        log("turn.spawn", run=work["run"], step=work["step"], turn=work["turn"])
        grace = _KILL_GRACE
        try:
            turn.child.send({"t": "work", **work})
            await self._converse(turn)
        except asyncio.CancelledError:
            grace = await self._wind_down(turn)
            raise
        except FrameError as e:
            raise ChildDied(f"the turn's process broke its protocol: {e}") from e
        finally:
            for task in turn.tasks:
                task.cancel()
            code = await asyncio.shield(turn.child.stop(grace if turn.result is None else 1.0))
            self._running.discard(turn)
        if turn.refused is not None:
            raise turn.refused
        if turn.result is None:
            raise ChildDied(f"the turn's process ended without a result ({_ended(code)})")
        self.tool_calls += turn.result.tool_calls
        self.tokens_in += turn.result.tokens_in
        self.tokens_out += turn.result.tokens_out
        r = turn.result
        log("turn.done", status=r.status, rounds=r.rounds, tool_calls=r.tool_calls, tokens=r.tokens_in + r.tokens_out)
        return r

    async def _wind_down(self, turn: _Turn) -> float:
        """Ask the child to stop at its next boundary and hear it out a moment. Returns what is left for the ladder."""
        turn.child.send({"t": "cancel", "reason": "cancelled"})
        with contextlib.suppress(Exception):
            async with asyncio.timeout(1.0):
                await self._converse(turn)
        return _KILL_GRACE - 1.0

    async def _converse(self, turn: _Turn) -> None:
        """Answer the child's frames until its result, or its end."""
        frames = turn.child.frames()
        try:
            async with asyncio.timeout(_SIGN_OF_LIFE):
                first = await anext(frames, None)
        except TimeoutError:
            return
        while first is not None:
            self._answer(turn, first)
            if turn.result is not None or turn.refused is not None:
                return
            first = await anext(frames, None)

    def _answer(self, turn: _Turn, frame: Frame) -> None:
        kind, hooks, child = frame["t"], turn.hooks, turn.child
        if kind == "log":
            turn.log.emit_frame(frame)
        elif kind == "result":
            turn.result = _result(frame)
        elif kind == "message":
            if hooks.message is not None:
                hooks.message(frame)
        elif kind == "catalogue":
            try:
                if hooks.catalogue is not None:
                    hooks.catalogue(frame["servers"])
            except ServerUnavailable as e:
                turn.refused = e
                return
            child.send({"t": "proceed", "ok": True})
        elif kind == "permit":
            self._start(turn, self._permit(turn, frame))
        elif kind == "tool":
            self._start(turn, self._tool(turn, frame))
        elif kind == "auth":
            self._start(turn, self._auth(turn, frame))

    def _start(self, turn: _Turn, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        turn.tasks.add(task)
        task.add_done_callback(turn.tasks.discard)

    async def _permit(self, turn: _Turn, frame: Frame) -> None:
        reason: str | None = None
        if turn.hooks.permit is not None:
            try:
                reason = await turn.hooks.permit(frame)
            except Exception as e:
                reason = str(e) or type(e).__name__
        turn.child.send({"t": "permit", "id": frame["id"], "ok": reason is None, "reason": reason})

    async def _tool(self, turn: _Turn, frame: Frame) -> None:
        value, is_error = f"no such tool: {frame['name']}", True
        if turn.hooks.tool is not None:
            try:
                value, is_error = await turn.hooks.tool(frame["name"], frame.get("args") or {}, str(frame.get("key")))
            except Exception as e:
                value, is_error = str(e) or type(e).__name__, True
        turn.child.send({"t": "tool", "id": frame["id"], "value": value, "is_error": is_error})

    async def _auth(self, turn: _Turn, frame: Frame) -> None:
        try:
            answer = await turn.hooks.auth(frame) if turn.hooks.auth is not None else {}
        except Exception as e:
            answer = {"err": str(e) or type(e).__name__}
        turn.child.send({"t": "auth", "id": frame["id"], **answer})


def _result(frame: Frame) -> TurnResult:
    return TurnResult(
        status=str(frame.get("status", "failed")),
        output=frame.get("output"),
        rounds=int(frame.get("rounds", 0)),
        tool_calls=int(frame.get("tool_calls", 0)),
        tokens_in=int(frame.get("tokens_in", 0)),
        tokens_out=int(frame.get("tokens_out", 0)),
        error=frame.get("err"),
        reason=str(frame.get("reason") or ""),
        health=frame.get("health"),
    )


def _ended(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
