"""The supervisor's own connections to MCP servers: behind steps, declaring no client capability.

The SDK is imported in a thread when the first connection is wanted. A server that is dead costs its own steps; a
daemon tries again with backoff, and the server is known as soon as it is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentd.config.secrets import is_reference
from agentd.runtime import credentials

if TYPE_CHECKING:
    from agentd.config.document import McpServer
    from agentd.mcp.connections import Connections
    from agentd.mcp.records import ServerSpec
    from agentd.runtime.instance import Instance

_RETRY_FIRST, _RETRY_MOST = 1.0, 30.0


class OwnConnections:
    """All declared servers, dialled at the first use or by :meth:`boot`."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._opening: asyncio.Task[Connections] | None = None

    async def use(self) -> Connections:
        """The connections; a server is dialled with its first request."""
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())
        return await asyncio.shield(self._opening)

    async def boot(self) -> None:
        """Connect every server side by side and judge the outcome.

        A job, and an instance with a required server, waits for it and cannot go on without what it needs: raises
        ServerUnavailable. A daemon is ready at once and keeps trying.
        """
        declared = self._instance.document.mcp.servers
        if self._instance.shape == "job" or any(server.required for server in declared):
            await self._connect(server.name for server in declared)
        else:
            self._instance.background(self._connect(server.name for server in declared))

    async def _connect(self, names: Iterable[str]) -> None:
        connections = await self.use()
        from agentd.turn.servers import told

        outcomes = await connections.connect(names)
        found = {name: told(outcome) for name, outcome in outcomes.items()}
        self._instance.servers.judge(found)
        for name, entry in found.items():
            if not entry["ok"] and self._instance.shape == "daemon":
                self._instance.background(self._keep_trying(connections, name))

    async def _keep_trying(self, connections: Connections, name: str) -> None:
        """Until the server is there. That it is not was said once."""
        from agentd.turn.servers import told

        wait = _RETRY_FIRST
        while True:
            await self._instance.clock.sleep(wait)
            entry = told((await connections.connect([name]))[name])
            if entry["ok"]:
                self._instance.servers.judge({name: entry})
                return
            wait = min(_RETRY_MOST, wait * 2)

    async def _open(self) -> Connections:
        document, environ = self._instance.document, self._instance.host.environ
        await asyncio.to_thread(_import_sdk)
        from agentd import net
        from agentd.mcp.connections import Connections

        specs = [self._spec(server) for server in document.mcp.servers]
        return Connections(
            specs,
            log=self._instance.log,
            tls_ca=document.security.tls_ca,
            proxy=lambda url: net.proxy_for(url, environ),
        )

    def _spec(self, server: McpServer) -> ServerSpec:
        from agentd.mcp.records import ServerSpec

        instance = self._instance
        auth = instance.credentials.of(credentials.server(server.name))
        referred = {name: value for name, value in server.headers.items() if is_reference(value)}
        if referred:
            auth = credentials.Referred(referred, instance.host.secrets, auth)
        return ServerSpec(
            name=server.name,
            endpoint=server.endpoint,
            headers={name: value for name, value in server.headers.items() if name not in referred},
            ns=server.ns,
            allow=server.allow,
            exclude=server.exclude,
            timeout=server.timeout or instance.document.mcp.default_timeout,
            required=server.required,
            tags=server.tags,
            auth=auth,
        )

    async def close(self) -> None:
        """Take leave of every server."""
        if self._opening is not None:
            with contextlib.suppress(Exception):
                await (await self._opening).close()


def _import_sdk() -> None:
    from agentd.mcp.sdk import lean_import

    with lean_import():
        for name in ("agentd.mcp.connections", "agentd.mcp.http", "agentd.mcp.wire"):
            importlib.import_module(name)
