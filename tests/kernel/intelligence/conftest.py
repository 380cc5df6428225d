"""A model client over real loopback sockets, with a clock that never waits."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentd import net
from agentd.builtin.anthropic import Anthropic
from agentd.builtin.openai import OpenAI
from agentd.intelligence.client import Endpoint, ModelClient
from agentd.ports.model import Message, ModelReply, ModelRequest, ToolSchema
from agentd.testing.replay import Replay

DATA = Path(__file__).parent / "data"
DIALECTS = {"openai": OpenAI, "anthropic": Anthropic}


class StillClock:
    """Time passes only where somebody sleeps."""

    def __init__(self) -> None:
        self.time, self.slept = 1_764_460_800.25, list[float]()

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += max(0.0, seconds)


@dataclass
class Bench:
    """What a test sees: the log, the clock, and clients to call."""

    clock: StillClock = field(default_factory=StillClock)
    log: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def client(
        self, *urls: str, dialect: str = "openai", endpoint: dict[str, Any] | None = None, **options: Any
    ) -> ModelClient:
        options.setdefault("net", lambda: net.client(environ={}))
        endpoints = [Endpoint(url=url, **(endpoint or {})) for url in urls]
        return ModelClient(
            endpoints,
            DIALECTS[dialect](),
            model="m",
            clock=self.clock,
            chance=lambda: 0.5,
            log=lambda event, /, **fields: self.log.append((event, fields)),
            **options,
        )

    def ask(
        self,
        *urls: str,
        deadline: float | None = None,
        messages: list[Message] | None = None,
        tools: tuple[str, ...] = (),
        schema: dict[str, Any] | None = None,
        **options: Any,
    ) -> ModelReply:
        """One call of a client of its own."""

        async def call() -> ModelReply:
            async with self.client(*urls, **options) as client:
                return await client.call(request(messages, tools, schema), deadline=deadline)

        return asyncio.run(call())

    def events(self, name: str) -> list[dict[str, Any]]:
        return [fields for event, fields in self.log if event == name]


def request(
    messages: list[Message] | None = None, tools: tuple[str, ...] = (), schema: dict[str, Any] | None = None
) -> ModelRequest:
    offered = [ToolSchema(name=t, description=t, parameters={"type": "object", "properties": {}}) for t in tools]
    return ModelRequest(
        model="", messages=messages or [Message(role="user", text="héllo")], tools=offered, schema=schema
    )


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def play() -> Iterator[Callable[..., Replay]]:
    """Starts servers that replay steps, a data file by name, or both."""
    servers: list[Replay] = []

    def start(*steps: Any) -> Replay:
        loaded: list[Any] = []
        for step in steps:
            loaded += (
                json.loads((DATA / step).read_text(encoding="utf-8"))["steps"] if isinstance(step, str) else [step]
            )
        servers.append(Replay(loaded).__enter__())
        return servers[-1]

    yield start
    for server in servers:
        server.__exit__()
