"""The servers of one owner (a turn, or the supervisor), side by side; the SDK is imported when the first is dialled."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentd import net
from agentd.errors import ConfigError
from agentd.mcp import sdk
from agentd.mcp.connection import Connection, drain
from agentd.mcp.records import Connected, Elicit, Failed, Json, McpFault, ServerSpec, Tool, ToolResult
from agentd.mcp.results import read_result
from agentd.ports.host import Log

if TYPE_CHECKING:
    from agentd.mcp.http import SoftClient
    from agentd.mcp.wire import Wire

CONNECT_WITHIN = 5.0
"""Seconds a server has at start-up."""
MAX_ROUNDS = 10
"""How often a server may ask back during one call."""


class Connections:
    """Every server by name. Nothing is dialled before :meth:`connect` or the first request to a server.

    `log` gets `mcp.warning` for what was repaired or left out; the outcome of a connect is the caller's to log.
    `elicit` declares the capability to answer a server's questions, and answers them. `known` is what servers offered
    to an earlier owner: those are dialled at their first request, and not asked again what they offer. `tls_ca` is a
    file of further roots, `proxy` names the proxy for an endpoint (else the environment does), `transport` replaces
    the network. Requests raise :class:`~agentd.mcp.records.McpFault`; an unknown server is a KeyError.
    """

    def __init__(
        self,
        servers: Sequence[ServerSpec],
        *,
        log: Log,
        tls_ca: str | None = None,
        elicit: Elicit | None = None,
        proxy: Callable[[str], str | None] | None = None,
        known: Mapping[str, Connected] | None = None,
        transport: Callable[[], Any] | None = None,
    ) -> None:
        self.specs = tuple(servers)
        self._log = log
        self._tls_ca, self._transport, self._elicit = tls_ca, transport, elicit
        self._proxy = proxy or (lambda url: net.proxy_for(url, os.environ))
        self._by_name = {
            s.name: Connection(s, client=self._client, elicit=elicit, known=(known or {}).get(s.name)) for s in servers
        }

    def _client(self, spec: ServerSpec) -> SoftClient:
        """An HTTP client for one life of one connection."""
        from agentd.mcp.http import SoftClient

        parts = urlsplit(spec.endpoint)
        secure = parts.scheme == "https"
        if not secure and not (parts.scheme == "http" and net.is_loopback(parts.hostname or "")):
            raise ConfigError(f"mcp.servers: {spec.name!r} must be reached by https, or by http on a loopback host")
        roots = net.tls_context(self._tls_ca, os.environ.get("SSL_CERT_FILE")) if secure else None
        return SoftClient(
            headers=spec.headers,
            tls=roots or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            auth=spec.auth,
            proxy=self._proxy(spec.endpoint),
            transport=self._transport() if self._transport else None,
        )

    async def connect(
        self, names: Iterable[str] | None = None, within: float = CONNECT_WITHIN
    ) -> dict[str, Connected | Failed]:
        """Connect the servers (all, or `names`) side by side; each succeeds or fails by itself within the seconds."""
        wanted = list(self._by_name if names is None else names)
        if wanted:
            sdk.load()  # before anybody's seconds begin to count
        outcomes = await asyncio.gather(*(self._connect(name, within) for name in wanted))
        return dict(zip(wanted, outcomes, strict=True))

    async def _connect(self, name: str, within: float) -> Connected | Failed:
        try:
            offer = await self._by_name[name].open(within)
        except McpFault as fault:
            return Failed(err=fault.message)
        for problem in offer.problems:
            self._log("mcp.warning", level="warn", server=name, tool=problem.tool, msg=problem.message)
        return offer

    def offered(self) -> dict[str, Connected]:
        """What each connected server offered when it was last opened."""
        return {name: c.offer for name, c in self._by_name.items() if c.offer is not None}

    async def call(
        self, server: str, tool: str, args: Mapping[str, Any], *, meta: Json | None = None, timeout: float | None = None
    ) -> ToolResult:
        """Call the bare-named `tool`; `timeout` in seconds, else the server's.

        After a lost session the call is repeated once, with the same `meta`. A stateless server may ask a person in
        between; those waits are not counted. What a tool says of its own failure is a result, what the protocol says
        is a fault.
        """
        connection = self._by_name[server]
        more: Json = {}

        async def ask(wire: Wire, seconds: float) -> Json:
            return await wire.call_tool(tool, dict(args), dict(meta or {}), seconds, **more)

        answer = await connection.ask(ask, timeout)
        for _ in range(MAX_ROUNDS):
            given = await self._inputs(server, answer)
            if given is None:
                break
            more = {"input_responses": given, "request_state": answer.get("requestState")}
            answer = await connection.ask(ask, timeout)
        result = read_result(tool, _find(connection.offer, tool), answer)
        for warning in result.warnings:
            self._log("mcp.warning", level="warn", server=server, tool=tool, msg=warning)
        return result

    async def _inputs(self, server: str, answer: Json) -> Json | None:
        """What a person answers to the questions in `answer`; None when it asks none, or none that we answer."""
        asked = answer.get("inputRequests") or {}
        if answer.get("resultType") != "input_required" or self._elicit is None:
            return None
        if any(request.get("method") != "elicitation/create" for request in asked.values()):
            return None
        return {key: await self._elicit(server, request.get("params") or {}) for key, request in asked.items()}

    async def list_resources(self, server: str, timeout: float | None = None) -> list[Json]:
        """Every resource the server lists, as it lists them: ``{uri, name, …}``."""
        return await self._list(server, "resources", timeout)

    async def list_templates(self, server: str, timeout: float | None = None) -> list[Json]:
        """Every resource template the server lists: ``{uriTemplate, name, …}``."""
        return await self._list(server, "templates", timeout)

    async def list_prompts(self, server: str, timeout: float | None = None) -> list[Json]:
        """Every prompt the server lists: ``{name, arguments?, …}``."""
        return await self._list(server, "prompts", timeout)

    async def _list(self, server: str, kind: str, timeout: float | None) -> list[Json]:
        connection = self._by_name[server]

        async def ask(wire: Wire, seconds: float) -> list[Json]:
            offer = connection.offer
            if offer is None or not (offer.prompts if kind == "prompts" else offer.resources):
                return []
            pages = await drain(kind, wire, seconds)
            if pages.warning:
                self._log("mcp.warning", level="warn", server=server, tool="", msg=pages.warning)
            key = {"resources": "uri", "templates": "uriTemplate", "prompts": "name"}[kind]
            return list({str(item.get(key)): item for item in reversed(pages.items)}.values())[::-1]

        return await connection.ask(ask, timeout)

    async def read_resource(
        self, server: str, uri: str, *, meta: Json | None = None, timeout: float | None = None
    ) -> list[Json]:
        """The contents of a resource: ``{uri, mimeType?, text | blob}`` each, never from a cache."""

        async def ask(wire: Wire, seconds: float) -> Json:
            return await wire.read_resource(uri, dict(meta or {}), seconds)

        contents = (await self._by_name[server].ask(ask, timeout)).get("contents")
        return [c for c in contents if isinstance(c, dict)] if isinstance(contents, list) else []

    async def get_prompt(
        self, server: str, name: str, args: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> Json:
        """A prompt filled in: ``{description?, messages: [{role, content}]}``."""

        async def ask(wire: Wire, seconds: float) -> Json:
            return await wire.get_prompt(name, args or {}, seconds)

        return await self._by_name[server].ask(ask, timeout)

    async def complete(
        self,
        server: str,
        ref: Json,
        argument: Mapping[str, str],
        *,
        context: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> list[str]:
        """Values for an argument (``{name, value}``) of the prompt or template `ref`."""

        async def ask(wire: Wire, seconds: float) -> Json:
            return await wire.complete(ref, argument, context or {}, seconds)

        found = (await self._by_name[server].ask(ask, timeout)).get("completion")
        values = found.get("values") if isinstance(found, dict) else None
        return [str(v) for v in values] if isinstance(values, list) else []

    async def close(self, names: Iterable[str] | None = None) -> None:
        """Close the servers (all, or `names`) side by side, within two seconds whatever they do."""
        await asyncio.gather(*(self._by_name[n].close() for n in (self._by_name if names is None else names)))


def _find(offer: Connected | None, tool: str) -> Tool | None:
    return next((t for t in offer.tools if t.name == tool), None) if offer else None
