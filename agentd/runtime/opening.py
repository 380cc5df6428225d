"""Opens the store that the configuration chose, and begins the next generation in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from agentd.config import lifetime
from agentd.errors import ConfigError
from agentd.journal.delivery import Health
from agentd.journal.journal import Journal, Settings
from agentd.journal.restored import Restored

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance


async def open_store(instance: Instance, stack: AsyncExitStack, notify: Callable[[Health], None]) -> Restored:
    """Set the instance's store and journal, both closed by `stack`; what the last life left.

    Raises ConfigError for a store nobody serves, StoreError for one that cannot be used.
    """
    document, plugins = instance.document, instance.loaded.plugins
    kind = lifetime.store_kind(document, plugins)
    spec = plugins.stores.get(kind)
    if spec is None:
        raise ConfigError(findings=[("store.kind", plugins.missing("stores", kind))])
    options = getattr(document.store, kind, None) or spec.options()
    instance.store_spec, instance.store_options = spec, options
    store = await stack.enter_async_context(spec.open(options, instance.host))
    settings = Settings(
        instance=instance.name, prefix=document.store.prefix, timeout=document.store.timeout,
        max_value_bytes=document.store.max_value_bytes, on_error=document.store.on_error,
    )  # fmt: skip
    instance.journal = Journal(store, settings, clock=instance.clock, log=instance.log, notify=notify)
    restored = await instance.journal.open(fresh=instance.loaded.invocation.fresh, digest=_digest(instance))
    stack.push_async_callback(instance.journal.close)
    if spec.durable:
        described = spec.describe(options) if spec.describe is not None else {}
        name = "store.file" if kind == "file" else "store.open"
        instance.log(name, generation=restored.generation, **described)
    return restored


def _digest(instance: Instance) -> dict[str, str]:
    """Hashes of the sections that shape durable state; what moved between two lives is told."""
    shaping: Mapping[str, Any] = {
        "agent.name": instance.name,
        "store.prefix": instance.document.store.prefix,
        "workflows": sorted((plan.name, plan.hash) for plan in instance.definitions.current.values()),
        "streams": {name: stream.model_dump() for name, stream in instance.document.streams.items()},
    }
    return {
        name: hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]
        for name, value in shaping.items()
    }
