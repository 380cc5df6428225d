"""One server: connected in a task of its own, opened once for all who wait, opened again when its session is lost.

The task is what makes servers independent: the SDK's cancel scopes live and die in it, so that servers come and go in
any order and a sick one costs only its own tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from agentd.errors import AgentdError
from agentd.mcp import sdk
from agentd.mcp.catalogue import Pages, judge_tools
from agentd.mcp.faults import fault_of
from agentd.mcp.records import Connected, Elicit, McpFault, Problem, ServerSpec, Tool

if TYPE_CHECKING:
    from agentd.mcp.http import SoftClient
    from agentd.mcp.wire import Wire

T = TypeVar("T")

CLOSE_TIMEOUT = 1.0
"""Seconds a server has to take our leave."""
MAX_BACKOFF = 30.0
_NOT_THIS_WAY = (400, 404, 405)
"""How a server refuses a request of a family it does not speak."""


class Link:
    """One life of a connection: the task that holds it open, and its wire once the server has greeted."""

    def __init__(self, run: Callable[[Link], Awaitable[None]]) -> None:
        self.wire: Wire | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda f: f.cancelled() or f.exception())  # awaited by some, not by all
        self.done = asyncio.Event()
        self.users = 0
        """Those who wait for it or ask over it: a link that is given up is ended after the last of them."""
        self.retired = False
        self.presumed = False
        """Whether the server was not greeted, because it was known."""
        self.task = asyncio.ensure_future(run(self))

    @property
    def alive(self) -> bool:
        """Whether it is open or about to be."""
        return not self.task.done() and not self.done.is_set()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Count a user in and out."""
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1

    async def end(self, *, parting: bool = True) -> None:
        """Close it, within a bound whatever the server does; `parting`: end the session on the server too."""
        if self.wire is not None:
            self.wire.http.parting = parting
        self.done.set()
        if self.wire is None:
            self.task.cancel()
        finished, _ = await asyncio.wait({self.task}, timeout=CLOSE_TIMEOUT)
        if not finished:
            self.task.cancel()
            await asyncio.wait({self.task}, timeout=CLOSE_TIMEOUT)


class Connection:
    """A server as its callers see it: always there to ask, opened when first asked."""

    def __init__(
        self,
        spec: ServerSpec,
        *,
        client: Callable[[ServerSpec], SoftClient],
        elicit: Elicit | None = None,
        known: Connected | None = None,
    ) -> None:
        self.spec = spec
        self.offer = known
        """What it offered when it was last asked."""
        self._known = known
        self._client, self._elicit = client, elicit
        self._protocol = spec.protocol
        self._link: Link | None = None
        self._endings: set[asyncio.Task[None]] = set()
        self._fault: McpFault | None = None
        self._retry_at = 0.0
        self._backoff = 0.5

    async def open(self, within: float) -> Connected:
        """Connect and list, whatever is known and whatever failed last. Raises :class:`McpFault`."""
        self._retry_at, self._known = 0.0, None
        await self._opened(within)
        assert self.offer is not None
        return self.offer

    async def ask(self, what: Callable[[Wire, float], Awaitable[T]], timeout: float | None = None) -> T:
        """`what` over the open wire within `timeout` seconds, opening first if need be.

        When the server does not know our session it is opened anew, once for all who found out, and `what` repeated
        once. Raises :class:`McpFault`.
        """
        timeout = self.spec.timeout if timeout is None else timeout
        until = asyncio.get_running_loop().time() + timeout
        link = await self._opened(timeout)
        try:
            return await self._over(link, what, until)
        except McpFault as fault:
            if not fault.session_lost and not (link.presumed and fault.http_status in _NOT_THIS_WAY):
                raise
        self._retire(link)
        return await self._over(await self._opened(_left(until)), what, until)

    async def _over(self, link: Link, what: Callable[[Wire, float], Awaitable[T]], until: float) -> T:
        assert link.wire is not None
        try:
            with link.used():
                return await what(link.wire, _left(until))
        finally:
            self._let_go(link)

    async def close(self) -> None:
        """End it; safe to repeat."""
        link, self._link = self._link, None
        if link is not None:
            await link.end()
        if self._endings:
            await asyncio.wait(self._endings)

    async def _opened(self, within: float) -> Link:
        """The open link. Whoever comes first opens it, the others wait for the same attempt."""
        if self._link is None or not self._link.alive:
            now = asyncio.get_running_loop().time()
            if self._fault is not None and now < self._retry_at:
                raise self._fault
            self._link = Link(self._live)
        link = self._link
        try:
            with link.used():
                async with asyncio.timeout(within):
                    await asyncio.shield(link.ready)
            return link
        except TimeoutError:
            fault = fault_of(self.spec.name, 0, f"no answer within {within:g} s", {"fault": "Timeout"})
            self._failed(fault)
            self._retire(link)
            raise fault from None

    def _retire(self, link: Link) -> None:
        """Give `link` up, unless somebody already has: nobody new uses it, and it ends with its last user."""
        if self._link is link:
            self._link = None
            link.retired = True
        self._let_go(link)

    def _let_go(self, link: Link) -> None:
        if link.retired and not link.users:
            self._later(link.end(parting=False))

    def _later(self, ending: Any) -> None:
        task = asyncio.ensure_future(ending)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    def _failed(self, fault: McpFault) -> None:
        self._fault = fault
        self._retry_at = asyncio.get_running_loop().time() + self._backoff
        self._backoff = min(self._backoff * 2, MAX_BACKOFF)

    async def _live(self, link: Link) -> None:
        """The life of `link`, in its own task: dial, greet, list, stay."""
        try:
            await self._open_and_stay(link)
        except asyncio.CancelledError:
            _settle(link, McpFault(f"MCP server {self.spec.name!r}: the connection was closed", retry=True))
            raise
        except BaseException as e:
            fault = _fault(self.spec.name, _leaf(e))
            self._failed(fault)
            _settle(link, fault)

    async def _open_and_stay(self, link: Link) -> None:
        sdk.load()
        from agentd.mcp.wire import dial

        spec = self.spec
        async with dial(spec.name, spec.endpoint, self._client(spec), elicit=self._elicit) as wire:
            known, self._known = self._known, None  # believed once: a server that refuses is asked anew
            link.presumed = known is not None and wire.presume(known)
            if not link.presumed:
                await wire.greet(known.protocol if known else self._protocol)
            self._protocol = wire.protocol
            self.offer = known or await _survey(spec, wire)
            self._fault, self._backoff = None, 0.5
            link.wire = wire
            link.ready.set_result(None)
            await link.done.wait()


async def _survey(spec: ServerSpec, wire: Wire) -> Connected:
    """What the server offers; only what it advertises is asked for."""
    has = wire.capabilities
    tools: list[Tool] = []
    problems: list[Problem] = []
    if "tools" in has:
        pages = await drain("tools", wire, spec.timeout)
        bad = wire.mirror(pages.items)
        tools, problems = judge_tools(spec, [t for t in pages.items if t.get("name") not in bad])
        problems += [Problem(tool=name, message=f"left out: {reason}") for name, reason in bad.items()]
        if pages.warning:
            problems.append(Problem(tool="", message=pages.warning))
    return Connected(
        protocol=wire.protocol,
        tools=tuple(tools),
        resources="resources" in has,
        prompts="prompts" in has,
        completions="completions" in has,
        subscribe=bool(has.get("resources", {}).get("subscribe")),
        instructions=wire.instructions,
        problems=tuple(problems),
    )


async def drain(kind: str, wire: Wire, timeout: float) -> Pages:
    """Every page of `kind`. The first page must come; a later one that does not ends the listing with a warning."""
    pages = Pages("resourceTemplates" if kind == "templates" else kind)
    while pages.more:
        try:
            pages.feed(await wire.list_page(kind, pages.cursor, timeout))
        except McpFault as fault:
            if fault.session_lost or pages.cursor is None:
                raise
            pages.stop(fault.message)
    return pages


def _settle(link: Link, fault: McpFault) -> None:
    if not link.ready.done():
        link.ready.set_exception(fault)


def _fault(server: str, error: BaseException) -> McpFault:
    """Any error of a connection's life as a fault; one of ours keeps its words."""
    if isinstance(error, McpFault):
        return error
    words = error.message if isinstance(error, AgentdError) else f"{type(error).__name__}: {error}"
    return fault_of(server, 0, words, {"fault": type(error).__name__})


def _left(until: float) -> float:
    return max(until - asyncio.get_running_loop().time(), 0.001)


def _leaf(error: BaseException) -> BaseException:
    """The first real error in a group of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
