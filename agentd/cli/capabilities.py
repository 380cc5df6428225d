"""`--capabilities`: what this instance can do, as one JSON object; no endpoint, token or secret in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentd import RUNTIME, __version__
from agentd.config import lifetime
from agentd.errors import ConfigError

if TYPE_CHECKING:
    from agentd.config.load import Loaded


def capabilities(loaded: Loaded) -> dict[str, Any]:
    """Raises :class:`agentd.errors.ConfigError` when the configuration is invalid."""
    document, plugins = loaded.document, loaded.plugins
    if document is None:
        raise ConfigError(findings=[(finding.path, finding.msg) for finding in loaded.errors])
    kind = lifetime.store_kind(document, plugins)
    shape = lifetime.shape(document, plugins)
    return {
        "runtime": RUNTIME,
        "version": __version__,
        "build_features": sorted(plugin.name for plugin in plugins.installed if plugin.state == "loaded"),
        "agent": {"name": lifetime.instance(document, loaded.environ)},
        "intelligence": {"model": document.intelligence.model, "endpoints": len(document.intelligence.endpoints)},
        "mcp_servers": [server.name for server in document.mcp.servers],
        "workflows": [name for d in document.workflows if isinstance(name := d.get("name"), str)],
        "store": {"kind": kind, "defaulted": document.store.kind is None, **_store(loaded, kind)},
        "a2a": None,
        "surfaces": {"cluster": False, "claim.styles": [], "shard": False, "standby": False, "metrics_schema": "1.0"},
        "lifecycle": {"run_until": document.lifecycle.run_until, "daemon": shape == "daemon"},
    }


def _store(loaded: Loaded, kind: str) -> dict[str, Any]:
    spec = loaded.plugins.stores.get(kind)
    if spec is None or spec.describe is None or loaded.document is None:
        return {}
    options = getattr(loaded.document.store, kind, None)
    return spec.describe(options if options is not None else spec.options())
