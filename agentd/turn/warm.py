"""What the zygote does before it forks: import what a turn needs, once for all of them."""

from __future__ import annotations


def warm() -> None:
    """Import what a turn needs. Opens nothing, starts no thread: the zygote forks afterwards."""
    import asyncio
    import importlib
    import selectors

    for name in ("httpx", "jsonschema_rs", "agentd.turn.main", "agentd.turn.child"):
        importlib.import_module(name)
    del asyncio, selectors
