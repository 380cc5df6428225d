"""The tools of a turn: what the model sees, who serves each, and how one call comes to its answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from agentd.errors import AgentdError, DeadlineExceeded
from agentd.ports.model import Message, ToolCall, ToolSchema
from agentd.turn import internal, prompt
from agentd.turn.answer import Answer
from agentd.turn.calls import LOOP, Tally, digest, key
from agentd.turn.channel import Channel
from agentd.turn.offers import Observation, Offer, Servers
from agentd.turn.rules import Outcome, missing
from agentd.turn.stop import Stop, Stopped
from agentd.turn.transcript import to_data
from agentd.turn.work import Grants, Work

_LISTED = 40
"""Tool names that an unknown one is answered with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Who serves a call: this process, the supervisor, or an MCP server."""

    by: Literal["turn", "supervisor", "mcp"]
    full: str
    schema: ToolSchema
    offer: Offer | None = None

    @property
    def parallel(self) -> bool:
        """Whether this call may run beside others: it only reads, and a server says so."""
        return self.offer is not None and self.offer.read_only


def routes(
    grants: Grants, answer: Answer, offers: Iterable[Offer], internals: Iterable[ToolSchema] = ()
) -> dict[str, Route]:
    """The tools that `grants` leave, by the name the model sees; `internals` are those the supervisor serves."""
    found: dict[str, Route] = {}
    for schema in internal.schemas(answer):
        found[schema.name] = Route(by="turn", full=schema.name, schema=schema)
    for schema in internals:
        shown = replace(schema, name=schema.name.replace(".", "_"))
        found[shown.name] = Route(by="supervisor", full=schema.name, schema=shown)
    for offer in offers:
        schema = _renamed(offer.schema, found)
        found[schema.name] = Route(by="mcp", full=offer.full, schema=schema, offer=offer)
    return _retargeted({n: r for n, r in found.items() if _granted(r, grants)}, grants.overrides)


def _renamed(schema: ToolSchema, taken: Container[str]) -> ToolSchema:
    """`schema` under a name of its own: an internal tool keeps the name that both would have."""
    name, n = schema.name, 1
    while name in taken:
        name, n = f"{schema.name[:58]}_mcp{n}", n + 1
    return replace(schema, name=name)


def _granted(route: Route, grants: Grants) -> bool:
    allowed = grants.mcp if route.by == "mcp" else grants.internal
    return _matches(route.full, allowed) and not _matches(route.full, grants.disabled)


def _matches(name: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(name, g) for g in globs)


def _retargeted(found: dict[str, Route], overrides: Mapping[str, str | None]) -> dict[str, Route]:
    """Tools that another one serves keep their name and schema; those overridden with null are gone."""
    by_full = {r.full: r for r in found.values()}
    result: dict[str, Route] = {}
    for name, route in found.items():
        if route.full not in overrides:
            result[name] = route
            continue
        target = by_full.get(overrides[route.full] or "")
        if target is not None:
            result[name] = Route(by=target.by, full=target.full, schema=route.schema, offer=target.offer)
    return result


class Toolbox:
    """Performs calls: every one comes to a tool message, whatever happens to it.

    After a stop or the deadline the calls that are left are answered without being made. `finished` is the outcome
    that `finish` asked for; `looped` the call that came once too often.
    """

    def __init__(
        self,
        found: dict[str, Route],
        *,
        servers: Servers,
        channel: Channel,
        stop: Stop,
        answer: Answer,
        work: Work,
        deadline: float | None = None,
    ) -> None:
        self._routes, self._servers, self._channel, self._stop = found, servers, channel, stop
        self._answer, self._work, self._deadline = answer, work, deadline
        self._tally = Tally()
        self.schemas = [r.schema for r in found.values()]
        self.performed = 0
        self.finished: Outcome | None = None
        self.rejected = 0
        self.looped: str | None = None

    def remember(self, calls: Iterable[ToolCall], ended: Iterable[ToolCall] = ()) -> None:
        """Count calls that an earlier attempt of this turn made and has the answers of; a `finish` in `ended` holds."""
        for call in calls:
            route = self._route(call.name)
            self._tally.add(route.full if route else call.name, call.arguments)
        for call in ended:
            if call.name == internal.FINISH and call.arguments is not None:
                self._finish(call.arguments)

    async def perform(self, calls: Sequence[ToolCall], *, reason: str = "") -> list[Message]:
        """The answers to `calls`, in their order; `reason` is the provider's word for why its answer ended.

        The supervisor hears of each as it comes, but not of calls given up because the turn is told to stop: an
        attempt that follows makes those.
        """
        planned = [self._plan(call, reason) for call in calls]
        if len(calls) > 1 and all(isinstance(p, _Planned) and p.route.parallel for p in planned):
            return list(await asyncio.gather(*(self._answer_to(c, p) for c, p in zip(calls, planned, strict=True))))
        return [await self._answer_to(c, p) for c, p in zip(calls, planned, strict=True)]

    def _plan(self, call: ToolCall, reason: str) -> _Planned | str:
        """What to do for `call`, or why nothing."""
        if self.looped is not None:
            return "not called: the turn ends because a call was repeated"
        route = self._route(call.name)
        full = route.full if route else call.name
        before = self._tally.add(full, call.arguments)
        if before + 1 >= LOOP:
            self.looped = call.name
            return f"not called: the same call of {call.name} was made {LOOP} times"
        if route is None:
            return self._unknown(call.name)
        if call.arguments is None:
            return f"not called: the arguments of {call.name} cannot be read: {call.problem or 'no JSON object'}"
        if lacking := missing(call.arguments, route.schema.parameters, reason):
            return f"not called: the answer was cut before the arguments of {call.name} were whole; {lacking} missing"
        return _Planned(route=route, args=call.arguments, key=key(self._work.scope, full, call.arguments, before))

    def _route(self, name: str) -> Route | None:
        """The route of `name`: as shown, by its full name, or the bare name that exactly one server has."""
        if name in self._routes:
            return self._routes[name]
        same = [r for r in self._routes.values() if r.full == name]
        same = same or [r for r in self._routes.values() if r.offer is not None and r.offer.tool == name]
        return same[0] if len(same) == 1 else None

    def _unknown(self, name: str) -> str:
        names = sorted(self._routes)
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return f"there is no tool {name}; the tools are: {', '.join(names[:_LISTED])}{more}"

    async def _answer_to(self, call: ToolCall, planned: _Planned | str) -> Message:
        if isinstance(planned, str):
            return self._heard(_error(call, planned))
        if self._stop.reason is not None:
            return _error(call, f"not called: {self._stop.reason}")
        if self._late():
            return self._heard(_error(call, "not called: the deadline passed"))
        try:
            seen = await self._serve(call, planned)
        except Stopped as e:
            return _error(call, f"given up before it answered: {e}")
        except DeadlineExceeded:
            return self._heard(_error(call, "given up before it answered: the deadline passed"))
        return self._heard(Message(role="tool", text=seen.text, call_id=call.id, is_error=seen.is_error))

    def _heard(self, answer: Message) -> Message:
        self._channel.message(to_data(answer))
        return answer

    def _late(self) -> bool:
        return self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline

    async def _serve(self, call: ToolCall, planned: _Planned) -> Observation:
        self.performed += 1
        if planned.route.by == "turn":
            return await self._serve_here(planned)
        if planned.route.offer is not None:
            return await self._serve_by_mcp(call, planned, planned.route.offer)
        value, is_error = await self._stop.race(
            self._channel.tool(planned.route.full, planned.args, key=planned.key), deadline=self._deadline, hard=True
        )
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return Observation(text=prompt.wrap(planned.route.full, text), is_error=is_error)

    async def _serve_here(self, planned: _Planned) -> Observation:
        name, args = planned.route.full, planned.args
        if name == internal.FINISH:
            return self._finish(args)
        if name == internal.THINK:
            return Observation(text="noted")
        try:
            return Observation(text=await self._stop.race(internal.sleep(args), deadline=self._deadline))
        except ValueError as e:
            return Observation(text=str(e), is_error=True)

    def _finish(self, args: dict[str, Any]) -> Observation:
        outcome, problems = internal.finish(args, self._answer)
        if outcome is None:
            self.rejected += 1
            return Observation(text="not accepted: " + "; ".join(problems), is_error=True)
        self.finished = self.finished or outcome
        return Observation(text="the work ends here")

    async def _serve_by_mcp(self, call: ToolCall, planned: _Planned, offer: Offer) -> Observation:
        args = planned.args
        ok, why = await self._stop.race(
            self._channel.permit(call=call.id, tool=offer.full, args=args, digest=digest(args), key=planned.key),
            deadline=self._deadline,
        )
        if not ok:
            return Observation(text=f"not allowed: {why or 'the call was refused'}", is_error=True)
        log = self._channel.log
        log("tool.call", server=offer.server, tool=offer.tool, call_id=call.id)
        begun = time.monotonic()
        seen = await self._call(offer, planned)
        ended: dict[str, Any] = {"is_error": seen.is_error, "bytes": len(seen.text.encode("utf-8", "surrogatepass"))}
        if self._work.content:
            ended["result"] = seen.text
        took = round((time.monotonic() - begun) * 1000)
        log("tool.result", server=offer.server, tool=offer.tool, call_id=call.id, dur_ms=took, **ended)
        return Observation(text=prompt.wrap(offer.full, seen.text), is_error=seen.is_error)

    async def _call(self, offer: Offer, planned: _Planned) -> Observation:
        """One MCP call; a fault of the server is told to the model and costs this call only."""
        try:
            work = self._servers.call(offer, planned.args, key=planned.key)
            return await self._stop.race(work, deadline=self._deadline, hard=True)
        except (Stopped, DeadlineExceeded):
            raise
        except AgentdError as e:
            return Observation(text=e.message, is_error=True)
        except Exception as e:  # A library's own errors must not take the turn down either.
            return Observation(text=f"{offer.full} failed: {type(e).__name__}: {e}", is_error=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    route: Route
    args: dict[str, Any]
    key: str


def _error(call: ToolCall, text: str) -> Message:
    return Message(role="tool", text=text, call_id=call.id, is_error=True)
