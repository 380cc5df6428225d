"""What the zygote does before it forks: import, and use once, what every turn needs."""

from __future__ import annotations

import importlib

_MODULES = (
    "agentd.turn.main",
    "agentd.turn.child",
    "agentd.intelligence.client",
    "agentd.builtin.openai",
    "agentd.builtin.anthropic",
)


def warm(*, mcp: bool = True, rehearse: bool = True) -> None:
    """Import what a turn needs. Dials nothing and leaves no thread: the zygote forks afterwards.

    `mcp`: there are MCP servers to talk to. `rehearse`: also use once what is built at first use, which pays from the
    second turn on; without it the first one begins sooner.
    """
    for name in _MODULES:
        importlib.import_module(name)
    from agentd import net

    net.warm()
    if rehearse:
        importlib.import_module("jsonschema_rs")
    if mcp:
        _warm_mcp(rehearse)


def _warm_mcp(rehearse: bool) -> None:
    from agentd.mcp import sdk

    if rehearse:
        sdk.warm()
        return
    with sdk.lean_import():
        for name in ("agentd.mcp.connections", "agentd.mcp.http", "agentd.mcp.wire"):
            importlib.import_module(name)
