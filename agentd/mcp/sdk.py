"""Imports the client half of the official SDK, for a third less time and memory than its package would.

``import mcp`` also imports the server half (starlette, uvicorn, …) and builds some five hundred pydantic models. A turn
is a fresh process that needs a dozen of them, so here the packages run their own imports only when somebody asks them
for a name, models are built when first used, and the collector does not walk a heap that only grows.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class _LazyPackage(ModuleType):
    """A package whose `__init__` runs at the first name that no import of a submodule has bound."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


@contextmanager
def lean_import() -> Iterator[None]:
    """Within it, importing ``mcp.…`` costs what the imported modules cost, once and for all."""
    from pydantic import BaseModel, ConfigDict

    collecting = gc.isenabled()
    gc.disable()
    config = BaseModel.model_config
    BaseModel.model_config = ConfigDict(defer_build=True)  # inherited by the classes made meanwhile
    try:
        if "mcp" not in sys.modules:
            package = _lazy("mcp")
            package.client = _lazy("mcp.client")  # type: ignore[attr-defined]
        yield
    finally:
        BaseModel.model_config = config
        _hush()
        if collecting:
            gc.enable()


def load() -> None:
    """Import what a connection is made of; nothing when that is done. Takes a second on a slow machine."""
    if "agentd.mcp.wire" not in sys.modules:
        with lean_import():
            importlib.import_module("agentd.mcp.wire")


def _hush() -> None:
    """Keep the SDK's own log from stderr, where Python writes what no handler takes: our faults tell it already."""
    for name in ("mcp.client", "mcp.shared", "client"):
        logger = logging.getLogger(name)
        logger.propagate = False
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _lazy(name: str) -> ModuleType:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _LazyPackage
    sys.modules[name] = package
    return package


def warm() -> None:
    """Import and use everything a connection needs, without a network: for the process that children are forked from.

    One connection of each protocol family is made in memory, so that what is built at first use is there. Runs an
    event loop of its own and leaves no thread.
    """
    import asyncio

    asyncio.run(_rehearse())


async def _rehearse() -> None:
    from agentd.mcp.connections import Connections
    from agentd.mcp.records import ServerSpec

    for known in ("2025-11-25", "2026-07-28"):
        spec = ServerSpec(name="rehearsal", endpoint=f"http://127.0.0.1/{known}", protocol=known)
        connections = Connections([spec], log=_silent, transport=_stage)
        await connections.connect()
        await connections.call("rehearsal", "t", {"a": 1})
        await connections.close()


def _silent(event: str, /, *, level: str = "info", msg: str = "", **fields: Any) -> None:
    """A log nobody reads."""


def _stage() -> Any:
    """A transport that plays a server of either family."""
    import json

    import httpx2

    def play(request: httpx2.Request) -> httpx2.Response:
        message = json.loads(request.content or b"{}")
        answer = _LINES.get(message.get("method"))
        if answer is None:
            return httpx2.Response(202 if request.method == "POST" else 405)
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": message["id"], "result": answer})

    return httpx2.MockTransport(play)


_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
_LINES: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "rehearsal", "version": "1"},
    },
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    },
    "tools/list": {"tools": [{"name": "t", "inputSchema": _SCHEMA, "outputSchema": _SCHEMA}]},
    "tools/call": {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"a": 1}},
}
