"""The `agent` step: one turn of the model with tools, in a child, resumed where an earlier attempt left off."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agentd.engine.decision import Done, Failed, Outcome
from agentd.errors import AgentdError, BudgetExceeded, DeadlineExceeded, IntelligenceUnavailable, TaskRefused
from agentd.journal.journal import Journal, Record
from agentd.runtime.grants import refusal
from agentd.runtime.servers import Servers
from agentd.runtime.turns import TurnHooks, TurnResult, Turns
from agentd.runtime.work import Task, build, model_endpoints
from agentd.turn.channel import ELICIT

if TYPE_CHECKING:
    from agentd.config.document import Document
    from agentd.runtime.host import InstanceHost
    from agentd.runtime.live import Call
    from agentd.runtime.steps.internal import Internal
    from agentd.telemetry.emitter import Telemetry

_WAIT_FIRST, _WAIT_MOST = 5.0, 60.0
"""Seconds between a daemon's attempts to reach a model that is unavailable."""

_ENDED_BADLY: Mapping[str, type[AgentdError]] = {
    "refused": TaskRefused,
    "exhausted_steps": BudgetExceeded,
    "exhausted_tokens": BudgetExceeded,
    "deadline": DeadlineExceeded,
}


class Agents:
    """Performs turns for steps. `patient`: a daemon, which keeps work pending while no model can be reached."""

    def __init__(
        self,
        document: Callable[[], Document],
        turns: Turns,
        servers: Servers,
        journal: Journal,
        host: InstanceHost,
        *,
        durable: bool,
        patient: bool,
        instruction: Callable[[], str],
        mock: Callable[[str], str],
        internal: Callable[[], Internal],
        auth: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
    ) -> None:
        self._document, self._turns, self._servers = document, turns, servers
        self._journal, self._host = journal, host
        self._durable, self._patient = durable, patient
        self._instruction, self._mock = instruction, mock
        self._internal, self._auth = internal, auth
        self._talking: dict[str, asyncio.Lock] = {}
        self._health: list[list[Any]] | None = None

    async def agent(self, call: Call) -> Outcome:
        """Perform an `agent` step. A partial answer makes the run partial, whatever its `finish` says."""
        task = self.task(call)
        key = call.fields.get("conversation")
        if key is None:
            return self.outcome(call, await self.perform(call, task))
        lock = self._talking.setdefault(key, asyncio.Lock())
        async with lock:
            return self.outcome(call, await self._converse(call, task, str(key)))

    def task(self, call: Call, **given: Any) -> Task:
        """What the fields of `call` ask for; `given` replaces parts of it."""
        fields, document = call.fields, self._document()
        own, state = fields.get("limits") or {}, call.live.state
        bounds = state.run.limits
        instruction = fields.get("instruction")
        standing = self._instruction()
        if instruction is None:
            task, policy = fields.get("prompt") or document.agent.prompt or "", standing
        else:
            task, policy = fields.get("prompt") or instruction, standing
            if fields.get("prompt"):
                policy = "\n\n".join(filter(None, (standing, instruction)))
        deadlines = [d for d in (call.live.absolute_deadline, _after(self._host.clock.now(), own.get("deadline"))) if d]
        contract = fields.get("output_contract")
        words: dict[str, Any] = {
            "run": call.run_id, "step": call.step_id, "key": call.key, "attempt": call.attempt,
            "instruction": "\n\n".join(filter(None, (policy, contract))),
            "prompt": task,
            "persona": fields.get("system"), "servers": fields.get("servers"), "tools": fields.get("tools"),
            "rounds": _least(own.get("steps"), _left(bounds.steps, state.used - 1 + state.rounds)),
            "tokens": _least(own.get("tokens"), call.options.get("budget"), _left(bounds.tokens, state.tokens)),
            "deadline": min(deadlines, default=None),
            "schema": fields.get("output_schema") or (document.agent.output_schema if instruction is None else None),
            "model": fields.get("model"), "traceparent": _span(call.log),
        }  # fmt: skip
        return Task(**{**words, **given})

    async def perform(self, call: Call, task: Task) -> TurnResult:
        """Run one turn of `task`; what it says is durable before each of its effects."""
        prefix = f"{call.run_id}/{task.step}/"
        transcript = _Transcript(self._journal if self._durable else None, prefix, await self._said(call, prefix))
        wait = _WAIT_FIRST
        while True:
            work = self._frame(task, list(transcript.said))
            hooks = TurnHooks(
                permit=partial(self._permit, task, transcript), message=transcript.hear, catalogue=self._servers.judge,
                tool=partial(self._serve, call, task, transcript), auth=self._auth,
            )  # fmt: skip
            work["model"]["health"] = self._health
            result = await self._turns.run(work, hooks)
            self._health = result.health or self._health
            if result.status == "cancelled":
                # Told to stop by a drain: the step stays as its record says, and goes on in the next life.
                raise asyncio.CancelledError
            if not (self._patient and _may_come_back(result)):
                call.also += transcript.removal()
                return result
            call.log("budget.wait", level="warn", ctx=call.step_id, until_ms=int(wait * 1000), reason="intelligence")
            async with call.waiting():
                await self._host.clock.sleep(wait)
            wait = min(_WAIT_MOST, wait * 2)

    async def _permit(self, task: Task, transcript: _Transcript, frame: Mapping[str, Any]) -> str | None:
        """Leave for one call of an MCP tool: it is granted, whatever was shown, and what led to it is durable."""
        document = self._document()
        granted = document.agent.tools.mcp if task.tools is None else task.tools
        if wrong := refusal(str(frame["tool"]), granted, document.tools):
            return wrong
        return await transcript.permit(frame)

    async def _serve(
        self, call: Call, task: Task, transcript: _Transcript, name: str, args: dict[str, Any], key: str
    ) -> tuple[Any, bool]:
        """Serve an internal tool, once what led to the call is durable. The grant counts, whatever was shown."""
        internal = self._internal()
        if name == ELICIT:
            return await internal.elicit(str(args["server"]), args["params"], call), False
        if not internal.has(name) or not internal.allowed(name, self._granted(task)):
            return f"the tool {name} is not granted", True
        await transcript.permit({})
        return await internal.call(name, args, call, key)

    def _granted(self, task: Task) -> Sequence[str]:
        return self._document().agent.tools.internal if task.internal is None else task.internal

    async def _said(self, call: Call, prefix: str) -> list[dict[str, Any]]:
        """What an attempt of this very step said that came to no end: with its process, or with an earlier life."""
        if not self._durable or (call.attempt == 1 and not call.effect.replay):
            return []
        found = await self._journal.read_many("context", prefix)
        return [found[id] for id in sorted(found)]

    def _frame(self, task: Task, said: list[dict[str, Any]]) -> dict[str, Any]:
        document = self._document()
        names = [s.name for s in document.mcp.servers if task.servers is None or s.name in task.servers]
        endpoints = model_endpoints(document, self._host.secrets)
        for endpoint in endpoints:
            if endpoint["url"].startswith("mock:"):
                endpoint.update(url=self._mock(endpoint["url"]), mock=True)
        frame = build(
            task,
            document,
            instance=self._host.instance,
            secrets=self._host.secrets,
            environ=self._host.environ,
            endpoints=endpoints,
            catalogue=self._servers.catalogue(names),
        )
        frame["transcript"] = said
        if granted := self._granted(task):
            frame["internals"] = self._internal().offered(granted)
        frame["elicit"] = self._internal().reachable
        return frame

    async def _converse(self, call: Call, task: Task, key: str) -> TurnResult:
        """One more turn of the durable conversation `key`."""
        prefix = f"@{quote(key, safe='')}/"  # a key with a slash is not a part of another conversation
        before = await self._journal.read_many("context", prefix)
        messages = [before[id] for id in sorted(before)]
        result = await self.perform(call, replace(task, messages=messages))
        if result.status in ("completed", "partial"):
            turn = [{"role": "user", "text": task.prompt or task.instruction}]
            answer = result.output if isinstance(result.output, str) else _json(result.output)
            turn.append({"role": "assistant", "text": answer})
            # In the commit of the step: a crash neither loses the exchange nor has it twice.
            call.also += [("context", f"{prefix}{len(messages) + i:08d}", m) for i, m in enumerate(turn)]
        return result

    def outcome(self, call: Call, result: TurnResult) -> Outcome:
        """The end of a turn as the end of its step."""
        spent: dict[str, Any] = {"tokens": result.tokens_in + result.tokens_out, "rounds": result.rounds}
        if result.status in ("completed", "partial"):
            if result.status == "partial":
                call.live.record["verdict"] = "partial"
                call.live.touched = True
            return Done(result.output, **spent)
        error = result.error or {}
        wrong = _ENDED_BADLY.get(result.status)
        code = "loop_detected" if result.status == "loop_detected" else str(error.get("code") or "failed")
        if wrong is not None:
            code = wrong.code
        message = str(error.get("message") or result.reason or f"the turn ended as {result.status}")
        return Failed(code, message, retry=wrong is None and code in _MAY_HELP, **spent)


_MAY_HELP = frozenset({"failed", "intelligence", "child", "mcp"})
"""Codes of a failed turn that another attempt may mend."""


class _Transcript:
    """What a turn says, kept so that a later attempt goes on from it. Durable before each tool call, and each answer
    of a tool soon after it came.
    """

    def __init__(self, journal: Journal | None, prefix: str, said: list[dict[str, Any]]) -> None:
        self._journal, self._prefix = journal, prefix
        self.said = list(said)
        self._kept = len(said)
        self._durable: asyncio.Future[None] | None = None

    def hear(self, frame: Mapping[str, Any]) -> None:
        """One more message of the turn."""
        self.said.append(dict(frame["message"]))
        if frame["message"]["role"] == "tool":
            self._keep()

    async def permit(self, frame: Mapping[str, Any]) -> str | None:
        """Leave for one tool call, given once what led to it is durable."""
        self._keep()
        if self._durable is not None:
            await asyncio.shield(self._durable)
        return None

    def _keep(self) -> None:
        if self._journal is not None and self._kept < len(self.said):
            new = list(enumerate(self.said))[self._kept :]
            self._kept = len(self.said)
            self._durable = self._journal.write([("context", self._id(i), message) for i, message in new])
            self._durable.add_done_callback(asyncio.Future.exception)  # it is the next call that is refused

    def _id(self, i: int) -> str:
        return f"{self._prefix}{i:06d}"

    def removal(self) -> list[Record]:
        """The turn is over: what goes in the commit of its step's record, which says what came of it."""
        return [("context", self._id(i), None) for i in range(self._kept)] if self._journal is not None else []


def _span(log: Telemetry) -> str | None:
    return log.trace.traceparent if log.trace is not None else None


def _left(limit: int | None, used: int) -> int | None:
    """What is left of a bound of the run: a turn that begins gets one at least."""
    return None if limit is None else max(1, limit - used)


def _least(*bounds: int | None) -> int | None:
    return min((b for b in bounds if b is not None), default=None)


def _may_come_back(result: TurnResult) -> bool:
    """Whether the turn failed for want of a model that may be reached later."""
    error = result.error or {}
    retryable = (error.get("fields") or {}).get("retryable", True)
    return error.get("code") == IntelligenceUnavailable.code and bool(retryable)


def _after(now: float, seconds: float | None) -> float | None:
    return None if seconds is None else now + seconds


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
