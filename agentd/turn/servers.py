"""The MCP side of a turn: its servers, opened from the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from agentd.errors import ServerUnavailable
from agentd.mcp.catalogue import Catalogue
from agentd.mcp.meta import call_meta
from agentd.mcp.records import Connected, Elicit, Failed, ServerSpec, Tool
from agentd.ports.model import ToolSchema
from agentd.turn.auth import Asked
from agentd.turn.channel import ELICIT
from agentd.turn.offers import Observation, Offer, Servers

if TYPE_CHECKING:
    from agentd.mcp.connections import Connections
    from agentd.turn.channel import Channel
    from agentd.turn.work import Work


async def open_servers(work: Work, channel: Channel) -> Servers:
    """The servers that the work names.

    With a catalogue handed over nothing is dialled before the first call. Without one every server is connected, side
    by side, and the supervisor judges what came of it; a server that is dead costs its own tools only. Raises
    ServerUnavailable when the supervisor says that it costs the turn.
    """
    frame = work.frame
    if not frame.get("servers"):
        return NoServers()
    from agentd import net
    from agentd.mcp.connections import Connections

    handed: Mapping[str, Any] = frame.get("catalogue") or {}
    known = {name: _handed(entry) for name, entry in handed.items() if entry.get("ok")}
    specs = [_spec(s, known, channel) for s in frame["servers"]]
    env = frame.get("env") or {}
    connections = Connections(
        specs,
        log=channel.log,
        tls_ca=frame.get("tls_ca"),
        elicit=_elicit(channel) if frame.get("elicit") else None,
        proxy=lambda url: net.proxy_for(url, env),
        known=known,
    )
    if frame.get("catalogue") is not None:
        return McpServers(work, specs, connections, known)
    try:
        outcomes = await connections.connect()
        ok, why = await channel.catalogue({name: told(outcome) for name, outcome in outcomes.items()})
    except BaseException:
        await connections.close()
        raise
    if not ok:
        await connections.close()
        raise ServerUnavailable(why or "an MCP server that is required cannot be reached")
    connected = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Connected)}
    return McpServers(work, specs, connections, connected)


def _elicit(channel: Channel) -> Elicit:
    """A server's question becomes the supervisor's, which asks a person; where nobody answers, it is declined."""

    async def elicit(server: str, params: dict[str, Any]) -> dict[str, Any]:
        answer, refused = await channel.tool(ELICIT, {"server": server, "params": params}, key="")
        return {"action": "decline"} if refused or not isinstance(answer, dict) else answer

    return elicit


class NoServers:
    """A turn without MCP servers."""

    def offers(self) -> Sequence[Offer]:
        return ()

    async def call(self, offer: Offer, args: dict[str, Any], *, key: str) -> Observation:
        raise LookupError(offer.full)

    async def close(self) -> None:
        return None


class McpServers:
    """The declared servers, over connections of this turn's own."""

    def __init__(
        self, work: Work, specs: Sequence[ServerSpec], connections: Connections, connected: Mapping[str, Connected]
    ) -> None:
        self._work, self._connections = work, connections
        self._offers = [
            Offer(
                server=o.server,
                tool=o.tool.name,
                full=o.full,
                schema=ToolSchema(name=o.safe, description=o.tool.description, parameters=o.tool.schema),
                read_only=o.tool.read_only,
            )
            for o in Catalogue(specs, connected).offers
        ]

    def offers(self) -> Sequence[Offer]:
        return self._offers

    async def call(self, offer: Offer, args: dict[str, Any], *, key: str) -> Observation:
        told = self._work.frame.get("meta") or {}
        meta = call_meta(
            run_id=told.get("run_id") or self._work.run,
            instance=told.get("instance") or "",
            key=key,
            attempt=self._work.attempt,
            traceparent=told.get("traceparent"),
        )
        result = await self._connections.call(offer.server, offer.tool, args, meta=meta)
        return Observation(text=result.text, is_error=result.is_error)

    async def close(self) -> None:
        await self._connections.close()


_SPEC = frozenset(f.name for f in fields(ServerSpec)) - {"auth", "protocol"}
_TOOL = frozenset(f.name for f in fields(Tool))


def _spec(data: Mapping[str, Any], known: Mapping[str, Connected], channel: Channel) -> ServerSpec:
    given = {k: v for k, v in data.items() if k in _SPEC and v is not None}
    name = data["name"]
    auth = Asked(channel, f"mcp:{name}") if data.get("auth") else None
    return ServerSpec(**given, auth=auth, protocol=known[name].protocol if name in known else None)


def told(outcome: Connected | Failed) -> dict[str, Any]:
    """What the supervisor hears of a server; `offer` is what it may hand to a later turn as its catalogue."""
    if isinstance(outcome, Failed):
        return {"ok": False, "err": outcome.err}
    names = [tool.name for tool in outcome.tools]
    offer = [asdict(tool) for tool in outcome.tools]
    return {"ok": True, "protocol": outcome.protocol, "tools": names, "resources": outcome.resources, "offer": offer}


def _handed(entry: Mapping[str, Any]) -> Connected:
    tools = tuple(Tool(**{k: v for k, v in t.items() if k in _TOOL}) for t in entry.get("offer") or ())
    return Connected(protocol=entry.get("protocol") or "", tools=tools, resources=bool(entry.get("resources")))
