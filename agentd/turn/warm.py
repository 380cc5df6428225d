"""What the zygote does before it forks: import, and use once, what every turn needs."""

from __future__ import annotations

import importlib

_MODULES = (
    "agentd.turn.main",
    "agentd.turn.child",
    "agentd.intelligence.client",
    "agentd.builtin.openai",
    "agentd.builtin.anthropic",
    "jsonschema_rs",
)


def warm() -> None:
    """Import what a turn needs. Dials nothing and leaves no thread: the zygote forks afterwards."""
    for name in _MODULES:
        importlib.import_module(name)
    from agentd import net
    from agentd.mcp import sdk

    net.warm()
    sdk.warm()
