"""Scripted and real MCP servers, and connections that are closed again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentd.mcp.connections import Connections
from agentd.mcp.records import ServerSpec
from agentd.testing.mcp_script import ScriptedMcpServer

DATA = Path(__file__).parent / "data"


class Logged:
    """Collects events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, /, *, level: str = "info", msg: str = "", **fields: Any) -> None:
        self.events.append((event, {"level": level, "msg": msg, **fields}))

    def of(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def log() -> Logged:
    return Logged()


@pytest.fixture
def scripted() -> Iterator[Callable[[dict[str, Any] | str], ScriptedMcpServer]]:
    """Starts a scripted server for a scenario, or for a file of the data."""
    servers: list[ScriptedMcpServer] = []

    def start(scenario: dict[str, Any] | str) -> ScriptedMcpServer:
        servers.append(ScriptedMcpServer(case(scenario) if isinstance(scenario, str) else scenario))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
async def connections(log: Logged, anyio_backend: str) -> AsyncIterator[Callable[..., Connections]]:
    """Makes connections to servers by name; further keywords go to each spec."""
    opened: list[Connections] = []

    def to(*, elicit: Any = None, known: Any = None, spec: dict[str, Any] | None = None, **urls: str) -> Connections:
        specs = [ServerSpec(name=name, endpoint=url, **(spec or {})) for name, url in urls.items()]
        opened.append(Connections(specs, log=log, elicit=elicit, known=known))
        return opened[-1]

    yield to
    for one in opened:
        await one.close()


def case(name: str) -> dict[str, Any]:
    """A scenario of the data, as `C13/three_pages`."""
    return json.loads((DATA / f"{name}.json").read_text())
